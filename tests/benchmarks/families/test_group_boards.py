"""Boards of groups: small files in the layouts of the releases, and the counts of their cards."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.families.controls import run_controls
from benchmarks.families.group import GroupAnswers, GroupBenchmark
from benchmarks.schema import ScoreTable
from tests.benchmarks.families.cards import registry
from tests.kit.refusals import refused

CHANGES = (
    "add_att",
    "add_obj",
    "replace_att",
    "replace_obj",
    "replace_rel",
    "swap_att",
    "swap_obj",
)
SUBSETS = ("ag", "youcook2", "gebc", "kubric_attr", "kubric_cnt", "kubric_loc", "sd")


def winoground(data: Path) -> None:
    (data / "winoground").mkdir()
    n = 3
    columns = {
        "id": list(range(n)),
        "image_0": [{"bytes": f"0 of {k}".encode(), "path": None} for k in range(n)],
        "image_1": [{"bytes": f"1 of {k}".encode(), "path": None} for k in range(n)],
        "caption_0": [f"an old {k} kisses a young {k}" for k in range(n)],
        "caption_1": [f"a young {k} kisses an old {k}" for k in range(n)],
        "tag": ["Adjective"] * n,
        "collapsed_tag": ["Object", "Relation", "Object"],
    }
    pq.write_table(pa.table(columns), data / "winoground" / "test.parquet")


def naturalbench_retrieval(data: Path) -> None:
    folder = data / "naturalbench_retrieval"
    folder.mkdir()
    rows = [
        {"index": k, "image_0": f"{k}_0.jpg", "image_1": f"{k}_1.jpg",
         "caption_0": f"{k} red", "caption_1": f"{k} blue"} for k in range(3)
    ]  # fmt: skip
    (folder / "metadata.json").write_text(json.dumps(rows))
    with zipfile.ZipFile(folder / "NaturalBench-Retrieval.zip", "w") as archive:
        for row in rows:
            for name in (row["image_0"], row["image_1"]):
                archive.writestr(f"NaturalBench-Retrieval/images/{name}", str(name))


def eqben(data: Path) -> None:
    (data / "eqben").mkdir()
    for subset in SUBSETS:
        rows = [
            {"image0": f"{subset}/{k}/0.png", "image1": f"{subset}/{k}/1.png",
             "caption0": f"{subset} {k} sits", "caption1": f"{subset} {k} stands", "video": k // 2} for k in range(4)
        ]  # fmt: skip
        (data / "eqben" / f"{subset}.jsonl").write_text("\n".join(map(json.dumps, rows)))


def sugarcrepe(data: Path) -> None:
    (data / "sugarcrepe").mkdir()
    for change in CHANGES:
        rows = {
            str(k): {"filename": f"{k // 2}.jpg", "caption": f"{change} {k}",
                     "negative_caption": f"{change} not {k}"} for k in range(4)
        }  # fmt: skip
        (data / "sugarcrepe" / f"{change}.json").write_text(json.dumps(rows))
    with zipfile.ZipFile(data / "sugarcrepe" / "val2017.zip", "w") as archive:
        for k in range(2):
            archive.writestr(f"val2017/{k}.jpg", str(k))


BOARDS: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (winoground, naturalbench_retrieval, eqben, sugarcrepe)
}


def board(name: str, data: Path) -> tuple[GroupBenchmark, GroupAnswers]:
    """The board of a card without counts and hashes, which are those of the whole release."""
    BOARDS[name](data)
    whole = registry()[name].card
    files = tuple(file.model_copy(update={"sha256": ""}) for file in whole.files)
    card = whole.model_copy(update={"counts": {}, "files": files})
    one = GroupBenchmark(card, data)  # type: ignore[arg-type]
    answers = one.answers(data)
    assert isinstance(answers, GroupAnswers)
    return one, answers


@pytest.mark.parametrize("name", BOARDS)
def test_a_metric_that_knows_what_belongs_together_is_all_right(tmp_path: Path, name: str) -> None:
    one, answers = board(name, tmp_path)
    gold = one.gold_of_pairs(answers)
    scores = ScoreTable(pd.DataFrame({"gold": gold, "other": -gold}, list(answers.pair_ids)))
    rows = one.measure(scores, answers, one.plan(answers, 0)).rows
    assert {(row.metric, row.value) for row in rows} == {("gold", 1.0), ("other", 0.0)}
    assert any(one.card.headline.matches(row) for row in rows)
    own = {text: image for text, image, truth in zip(
        answers.items.pairs["text"], answers.items.pairs["image"], gold, strict=True
    ) if truth}  # fmt: skip
    assert len(own) == len(answers.lines) * (1 if name == "sugarcrepe" else 2)


@pytest.mark.parametrize("name", BOARDS)
def test_controls_reach_the_figures_of_the_card(tmp_path: Path, name: str) -> None:
    one, answers = board(name, tmp_path)
    found = run_controls(one, answers, None, 0)
    for label, golden in one.card.golden.items():
        if golden.metric != "constant":  # Of the release itself; `bench check` compares them.
            continue
        fields = {"measure": golden.measure, "split": golden.split}
        assert found.value(golden.metric, **fields) == pytest.approx(
            golden.value, abs=golden.tol
        ), label
    assert one.chance(answers) == pytest.approx(found.value(
        "constant", measure=one.card.headline.measure, split=one.card.headline.split
    ))  # fmt: skip


@pytest.mark.parametrize("name", BOARDS)
def test_a_part_of_a_release_is_refused(tmp_path: Path, name: str) -> None:
    BOARDS[name](tmp_path)
    if not registry()[name].card.counts:
        assert name == "naturalbench_retrieval"
        return
    with refused("data_malformed"):
        registry()[name].answers(tmp_path)


@pytest.mark.parametrize("name", ["winoground", "naturalbench_retrieval", "sugarcrepe"])
def test_scorers_get_the_images_of_each_pair(tmp_path: Path, name: str) -> None:
    one, answers = board(name, tmp_path)
    assert one.has_images(tmp_path)
    questions = one.questions(tmp_path)
    assert set(questions.texts.values()) == set(answers.items.pairs["text"])
    for pair in questions.pairs:
        content = questions.images[pair.image_id]().decode()
        if name == "winoground":
            assert content[-1] in questions.texts[pair.text_id]
        else:
            assert content == pair.image_id.removesuffix(".jpg" if name == "sugarcrepe" else "")


def test_splits_and_skills_are_parts_of_the_releases(tmp_path: Path) -> None:
    crepe, answers = board("sugarcrepe", tmp_path)
    assert tuple(answers.items.skills()) == CHANGES
    assert answers.clusters == ("0.jpg", "1.jpg")
    assert crepe.card.skills.keys() == set(CHANGES)
    ben, answers = board("eqben", tmp_path)
    scores = ScoreTable(pd.DataFrame({"m": 0.0}, list(answers.pair_ids)))
    rows = ben.measure(scores, answers, ben.plan(answers, 0)).rows
    assert tuple(dict.fromkeys(row.split for row in rows)) == SUBSETS
    assert {row.n_clusters for row in rows} == {2}
