"""Shards: kept whole or not at all, and never believed without proof."""

from __future__ import annotations

import dataclasses
import errno
import logging
import math
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from evaluator.scoring.asking import PLAN_VERSION, Finding, Work
from evaluator.scoring.column import (
    AnswerRow,
    ElementScore,
    Part,
    ShardFolder,
    merged_parts,
    run_fingerprint,
)
from tests.evaluator.scorers.common import refusal

PART = Part(
    scores={"a": 0.1, "b": math.nan},
    elements=(ElementScore("a", "e0", 0.3), ElementScore("a", "e1", math.nan)),
    answers=(
        AnswerRow("a", "q1", "Is there a cat?", "yes", "Yes.", 1.0, True),
        AnswerRow("b", "q2", "", "no", "", math.nan, False),
    ),
    findings=(
        Finding("no_score", "pair", "b", "No score: it was not given.", scored=False),
        Finding("text_truncated", "text", "t", "Cut – after 77 tokens.", scored=True),
    ),
    environment={"device": "cpu"},
    asks_elements=True,
    images=2,
    work=Work(calls=3, images_decoded=2, images_encoded=2, texts_encoded=1, seconds=1.5, usd=0.5),
    peak_memory_bytes=10,
)
WANTED = {"a", "b", "c", "d"}


@pytest.fixture
def shards(tmp_path: Path) -> ShardFolder:
    return ShardFolder(tmp_path / "run", "fingerprint")


def test_a_part_comes_back_to_the_bit(shards: ShardFolder) -> None:
    shards.write(PART)
    assert repr(shards.load(WANTED)) == repr(PART)


def test_scores_of_several_outputs_come_back_with_the_pairs_that_have_them(
    shards: ShardFolder,
) -> None:
    part = dataclasses.replace(PART, others={"a": (0.5, math.nan)}, elements=())
    shards.write(part)
    assert repr(shards.load(WANTED)) == repr(part)


def test_a_shard_of_a_release_without_prices_is_read_as_unpaid(
    shards: ShardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_it_was(work: Work) -> dict[str, object]:
        return {name: value for name, value in dataclasses.asdict(work).items() if name != "usd"}

    monkeypatch.setattr("evaluator.scoring.column.asdict", as_it_was)
    shards.write(dataclasses.replace(PART, findings=()))
    found = shards.load(WANTED)
    assert found.work == dataclasses.replace(PART.work, usd=0.0)
    assert set(found.scores) == {"a", "b"}


def test_parts_come_back_together(shards: ShardFolder) -> None:
    shards.write(PART)
    shards.write(Part(scores={"c": 2.0}, images=1, work=Work(seconds=0.5), peak_memory_bytes=30))
    whole = shards.load(WANTED)
    assert set(whole.scores) == {"a", "b", "c"}
    assert (whole.images, whole.work.seconds, whole.peak_memory_bytes) == (3, 2.0, 30)


def test_a_run_without_shards_has_done_nothing(shards: ShardFolder) -> None:
    assert shards.load(WANTED) == merged_parts([]) == Part()


@pytest.mark.parametrize("at", [0, 60, -1])
def test_a_damaged_shard_is_removed_and_logged(
    shards: ShardFolder, caplog: pytest.LogCaptureFixture, at: int
) -> None:
    path = shards.write(PART)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert shards.load(WANTED) == Part()
    assert not path.exists()
    assert path.name in caplog.text
    assert "damaged" in caplog.text


def test_a_shard_that_was_not_finished_is_removed(shards: ShardFolder) -> None:
    path = shards.write(PART)
    half = path.with_suffix(".draft")
    path.rename(half)
    assert shards.load(WANTED) == Part()
    assert not half.exists()


@pytest.mark.parametrize(
    "other",
    [
        {"submission": "another"},
        {"benchmark": "another"},
        {"revision": "another"},
        {"plan_version": PLAN_VERSION + 1},
    ],
)
def test_a_shard_of_another_run_is_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, other: dict[str, str | int]
) -> None:
    same: dict[str, str | int] = {"submission": "s", "benchmark": "b", "revision": "r"}
    path = ShardFolder(tmp_path, run_fingerprint(**same)).write(PART)  # type: ignore[arg-type]
    assert ShardFolder(tmp_path, run_fingerprint(**same)).load(WANTED).scores  # type: ignore[arg-type]
    foreign = run_fingerprint(**(same | other))  # type: ignore[arg-type]
    assert ShardFolder(tmp_path, foreign).load(WANTED) == Part()
    assert not path.exists()
    assert "another submission, revision or plan" in caplog.text


def test_pairs_nobody_asked_for_are_removed(shards: ShardFolder) -> None:
    shards.write(PART)
    assert shards.load({"a"}) == Part()


def test_pairs_that_are_there_twice_count_once(shards: ShardFolder) -> None:
    shards.write(Part(scores={"a": 1.0}))
    shards.write(Part(scores={"a": 2.0, "b": 2.0}))
    assert len(shards.load(WANTED).scores) in {1, 2}
    assert len(list(shards.folder.iterdir())) == 1


def test_a_full_disk_is_a_fault_of_the_world_and_leaves_what_was_kept(
    shards: ShardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards.write(PART)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with refusal("disk_failed", "No space left on device", kind=TransientError):
        shards.write(Part(scores={"c": 2.0}))
    assert not list(shards.folder.glob("*.draft"))
    assert set(shards.load(WANTED).scores) == {"a", "b"}


def test_a_folder_among_the_shards_is_left_alone(shards: ShardFolder) -> None:
    shards.write(PART)
    (shards.folder / "lost+found").mkdir()
    assert set(shards.load(WANTED).scores) == {"a", "b"}
    shards.clear()
    assert shards.load(WANTED) == Part()


def test_a_shard_that_another_worker_takes_away_while_it_is_read_is_no_defect(
    shards: ShardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards.write(PART)
    read = Path.read_bytes

    def gone(path: Path) -> bytes:
        path.unlink()
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", gone)
    assert shards.load(WANTED) == Part()
