"""Submitted files: masks by `.npz`, scores alone by CSV."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse_track2.load import SIZE, MaskedScores, Track2Answers, pack, unpack
from benchmarks.evalmuse_track2.protocol import EvalMuseTrack2
from benchmarks.schema import ScoreTable
from benchmarks.scores import parse_scores, read_scores, write_scores
from tests.benchmarks.evalmuse_track2.npz_files import Calls, npz

IMAGES = ("a", "b", "c")
EMPTY = pack(np.zeros((SIZE, SIZE), bool))
ANSWERS = Track2Answers(
    IMAGES, IMAGES, pd.Series([1.0, 2.0, 3.0], IMAGES), dict.fromkeys(IMAGES, EMPTY)
)
MASKS = {name: np.random.default_rng(ord(name)).random((SIZE, SIZE)) > 0.9 for name in "cabd"}
CSV = b"pair_id,score\na,1\nb,\nc,3\n"


def as_npz(names: str = "cab", score: float = 2.0) -> bytes:
    masks = np.stack([MASKS[name] for name in names])
    return npz(images=np.array(list(names)), scores=np.full(len(names), score), masks=masks)


def parse(content: bytes, name: str) -> ScoreTable:
    return parse_scores(content, name, EvalMuseTrack2(), ANSWERS, metric="detector")


def test_masks_and_scores_are_read_in_the_order_of_the_benchmark() -> None:
    table = parse(as_npz(), "output.npz")
    assert isinstance(table, MaskedScores)
    assert table.metrics == ("detector",)
    assert table.overall.index.tolist() == list(IMAGES)
    assert table.overall["detector"].tolist() == [2.0, 2.0, 2.0]
    for image in IMAGES:
        assert np.array_equal(unpack(table.masks["detector"][image]), MASKS[image])
    assert len(EvalMuseTrack2().evaluate(table, ANSWERS, 10).rows) == 8


@pytest.mark.parametrize("name", ["scores", "scores.csv"])
def test_a_file_is_told_by_its_content_and_read_from_disk(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(as_npz())
    table = read_scores(tmp_path / name, EvalMuseTrack2(), ANSWERS)
    assert isinstance(table, MaskedScores)
    assert table.metrics == ("score",)


def test_an_ordinary_scores_file_has_no_masks_and_can_be_written_again() -> None:
    assert not isinstance(parse(CSV, "scores.csv"), MaskedScores)
    again = parse(write_scores(parse(as_npz(), "x.npz")), "scores.parquet")
    assert again.overall["detector"].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (as_npz("ca"), "missing_pairs", r"lacks 1 of the 3 images.*'b'"),
        (as_npz("cad"), "unknown_pairs", "'d'"),
        (as_npz(score=float("nan")), "no_scores", "no image a score"),
    ],
)
def test_every_image_is_there_once_and_some_have_a_score(
    content: bytes, code: str, says: str
) -> None:
    with pytest.raises(SubmitterError, match=says) as caught:
        parse(content, "x")
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["x.npz", "x.PKL", "x.pickle", "x.zip"])
def test_a_name_that_promises_masks_must_hold_them(name: str) -> None:
    with pytest.raises(SubmitterError, match=r"is no \.npz file") as caught:
        parse(CSV, name)
    assert caught.value.code == "unreadable_scores"
    assert "FORMAT.md" in caught.value.hint


@pytest.mark.parametrize("name", ["output.pkl", "output.csv", "output.npz"])
def test_a_pickle_and_an_array_of_objects_are_refused_and_never_run(
    tmp_path: Path, name: str
) -> None:
    marker = tmp_path / "ran"
    call = Calls(marker)
    objects = npz(images=np.array([call], dtype=object))
    for content in (pickle.dumps({"a": call}), pickle.dumps({"a": call}, 2), objects):
        with pytest.raises(SubmitterError) as caught:
            parse(content, name)
        assert caught.value.code == "unreadable_scores"
    assert not marker.exists()


@pytest.mark.slow
def test_registering_it_does_not_import_opencv() -> None:
    code = "import sys; import benchmarks.evalmuse_track2.protocol; sys.exit('cv2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
