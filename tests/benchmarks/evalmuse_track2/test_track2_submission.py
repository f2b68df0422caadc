"""Submitted files: masks by `.npz` and `.pkl`, scores alone by CSV."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse_track2.answers import MaskedScores, Track2Answers
from benchmarks.evalmuse_track2.benchmark import EvalMuseTrack2
from benchmarks.evalmuse_track2.masks import SIZE, pack, unpack
from benchmarks.schema import ScoreTable
from benchmarks.scores import parse_scores, read_scores, write_scores
from tests.benchmarks.evalmuse_track2.hostile import bombs, broken, entry, executing, npz, pickled

IMAGES = ("a", "b", "c")
EMPTY = pack(np.zeros((SIZE, SIZE), bool))
ANSWERS = Track2Answers(
    IMAGES, IMAGES, pd.Series([1.0, 2.0, 3.0], IMAGES), dict.fromkeys(IMAGES, EMPTY)
)
MASKS = {name: np.random.default_rng(ord(name)).random((SIZE, SIZE)) > 0.9 for name in "cab"}


def as_npz(names: str = "cab", score: float = 2.0) -> bytes:
    masks = np.stack([MASKS[name] for name in names])
    return npz(images=np.array(list(names)), scores=np.full(len(names), score), masks=masks)


def as_pickle(names: str = "cab", score: float = 2.0) -> bytes:
    return pickled({name: entry(MASKS[name].astype(np.uint8), score) for name in names})


def parse(content: bytes, name: str) -> ScoreTable:
    return parse_scores(content, name, EvalMuseTrack2(), ANSWERS, metric="detector")


@pytest.mark.parametrize(
    ("content", "name"), [(as_npz(), "output.npz"), (as_pickle(), "output.pkl")]
)
def test_masks_and_scores_are_read_in_the_order_of_the_benchmark(content: bytes, name: str) -> None:
    table = parse(content, name)
    assert isinstance(table, MaskedScores)
    assert table.metrics == ("detector",)
    assert table.overall.index.tolist() == list(IMAGES)
    assert table.overall["detector"].tolist() == [2.0, 2.0, 2.0]
    for image in IMAGES:
        assert np.array_equal(unpack(table.masks["detector"][image]), MASKS[image])
    assert len(EvalMuseTrack2().evaluate(table, ANSWERS, 10).rows) == 8


def test_a_file_is_told_by_its_content_and_read_from_disk(tmp_path: Path) -> None:
    for name, content in (("scores", as_npz()), ("scores.csv", as_pickle())):
        (tmp_path / name).write_bytes(content)
        table = read_scores(tmp_path / name, EvalMuseTrack2(), ANSWERS)
        assert isinstance(table, MaskedScores)
        assert table.metrics == ("score",)


def test_an_ordinary_scores_file_has_no_masks_and_can_be_written_again() -> None:
    table = parse(b"pair_id,score\na,1\nb,\nc,3\n", "scores.csv")
    assert not isinstance(table, MaskedScores)
    again = parse(write_scores(parse(as_npz(), "x.npz")), "scores.parquet")
    assert again.overall["detector"].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("make", [as_npz, as_pickle])
def test_every_image_is_there_once_and_no_other(make: object) -> None:
    assert callable(make)
    with pytest.raises(SubmitterError, match=r"lacks 1 of the 3 images.*'b'") as caught:
        parse(make("ca"), "x")
    assert caught.value.code == "missing_pairs"
    MASKS["d"] = MASKS["a"]
    try:
        with pytest.raises(SubmitterError, match="'d'") as caught:
            parse(make("cad"), "x")
    finally:
        del MASKS["d"]
    assert caught.value.code == "unknown_pairs"


@pytest.mark.parametrize("make", [as_npz, as_pickle])
def test_scores_may_be_missing_but_not_all(make: object) -> None:
    assert callable(make)
    with pytest.raises(SubmitterError) as caught:
        parse(make(score=float("nan")), "x")
    assert caught.value.code == "no_scores"


@pytest.mark.parametrize("name", ["x.npz", "x.PKL", "x.pickle", "x.zip"])
def test_a_name_that_promises_masks_must_hold_them(name: str) -> None:
    with pytest.raises(SubmitterError, match="is neither a") as caught:
        parse(b"pair_id,score\na,1\nb,2\nc,3\n", name)
    assert caught.value.code == "unreadable_scores"
    assert "FORMAT.md" in caught.value.hint


def test_hostile_files_end_in_an_error_for_their_sender(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    for content in [*executing(str(marker)).values(), *bombs().values(), *broken().values()]:
        with pytest.raises(SubmitterError) as caught:
            parse(content, "output.pkl")
        assert caught.value.code in ("unreadable_scores", "missing_pairs", "unknown_pairs")
        assert len(caught.value.message) < 500
    assert not marker.exists()


def test_registering_it_does_not_import_opencv() -> None:
    code = "import sys; import benchmarks.evalmuse_track2.benchmark; sys.exit('cv2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
