"""Scores come back from opaque ids to the right pairs, or not at all."""

from __future__ import annotations

import random
import stat
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.errors import PlatformError
from benchmarks.question_folder import Key, export_questions, key_path
from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from tests.benchmarks.exporting import Exported, Parted, exported_to
from tests.benchmarks.toy import PAIRS


@pytest.fixture
def toy(tmp_path: Path) -> Exported:
    return exported_to(tmp_path / "out")


def test_the_key_lies_outside_and_is_for_its_owner_alone(toy: Exported) -> None:
    path = key_path(toy.out, "toy")
    assert path == toy.out / "toy.key.parquet"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in toy.out.iterdir()) == ["toy", "toy.key.parquet"]


def test_scores_come_back_under_the_ids_of_the_benchmark_in_its_order(toy: Exported) -> None:
    brightness = {i: toy.questions.images[i]() for i in toy.questions.images}
    wanted = {read(): n for n, read in enumerate(Parted().questions(None).images.values())}
    scores = {p.pair_id: float(wanted[brightness[p.image_id]]) for p in toy.questions.pairs}
    restored = toy.key.restore(scores)
    assert list(restored.items()) == [("a", 0.0), ("b", 1.0), ("c", 2.0)]
    del scores[next(o for o, pair in toy.key.pairs.items() if pair == "b")]
    assert toy.key.restore(scores) == {"a": 0.0, "c": 2.0}


def test_a_whole_table_comes_back_with_its_elements(toy: Exported) -> None:
    found, key = toy.questions, toy.key
    texts = {p.pair_id: p.text_id for p in found.pairs}
    rows = [
        (p, e.element_id, float(len(e.text))) for p, t in texts.items() for e in found.elements[t]
    ]
    index = pd.Index(list(texts), name="pair_id")
    table = ScoreTable(
        pd.DataFrame({"m": [float(ord(key.pairs[p])) for p in texts]}, index=index),
        elements={"m": pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])},
        directions={"m": -1},
    )
    restored = key.restore_table(table)
    assert restored.overall["m"].to_dict() == {"a": 97.0, "b": 98.0, "c": 99.0}
    assert tuple(restored.overall.index) == PAIRS
    assert restored.overall.index.name == "pair_id"
    assert restored.directions == {"m": -1}
    assert restored.elements["m"].values.tolist() == [
        ["a", "1", 5.0],
        ["a", "0", 4.0],
        ["b", "1", 5.0],
        ["b", "0", 4.0],
        ["c", "1", 5.0],
    ]


def test_scores_of_another_export_are_refused_not_given_to_the_wrong_pairs(
    toy: Exported, tmp_path: Path
) -> None:
    export_questions(Parted(), None, tmp_path / "again")
    foreign = dict.fromkeys(Key.read(key_path(tmp_path / "again", "toy")).pairs, 1.0)
    with pytest.raises(PlatformError, match="3 pair ids") as raised:
        toy.key.restore(foreign)
    assert raised.value.code == "key_mismatch"
    with pytest.raises(PlatformError, match="question ids"):
        toy.key.original("a")


@pytest.mark.parametrize("content", [None, b"", b"PAR1 no table PAR1"])
def test_what_is_no_key_says_so(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "k").write_bytes(content)
    with pytest.raises(PlatformError) as raised:
        Key.read(tmp_path / "k")
    assert raised.value.code == "key_unreadable"


def test_an_id_that_is_there_twice_gets_no_key() -> None:
    questions = Parted().questions(None)
    twice = replace(questions, pairs=(*questions.pairs, questions.pairs[0]))
    with pytest.raises(PlatformError) as raised:
        Key.drawn(Parted(), twice, random.Random(0))
    assert raised.value.code == "questions_inconsistent"


def test_the_numbers_are_a_shuffle_that_is_drawn_anew_for_each_key() -> None:
    benchmark = load_registry()["demo_ts2"]
    questions = benchmark.questions(None)
    keys = [Key.drawn(benchmark, questions, random.Random(seed)) for seed in range(2)]
    orders = [
        [names[opaque] for opaque in sorted(names)]
        for key in keys
        for names in (key.pairs, key.images)
    ]
    orders.append([pair.pair_id for pair in questions.pairs])
    assert len({tuple(order) for order in orders}) == 5
    assert all(sorted(order) == sorted(orders[-1]) for order in orders)
