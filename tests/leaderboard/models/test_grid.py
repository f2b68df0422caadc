"""The model track: what is to be scored first, and how pages read its files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from benchmarks.errors import TransientError
from leaderboard.models.entries import PATH, ModelEntry, ModelTrack, parse_track, track_bytes
from leaderboard.models.grid import PERTURBED, grid, images_to_score, missing
from leaderboard.models.model_card import ImagesSeen
from leaderboard.models.ranked_metrics import RankedMetric
from leaderboard.models.reading import KeptFile
from leaderboard.records import Kind, Submission
from leaderboard.store.interface import transact
from leaderboard.store.memory import MemoryRepository
from tests.leaderboard.models.made_up_models import judge_run

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def metric(name: str, seconds: float | None, first_tiers: int = 0) -> RankedMetric:
    submission = Submission(
        submission_id=f"{name}-0123456789", kind=Kind.METRIC, name=name, metrics=(name,),
        benchmarks=(), submitter="ada", content_sha256="0" * 64, archive="a", received_at=NOW,
    )  # fmt: skip
    return RankedMetric(submission, f"{name}-0123456789/{name}", seconds, first_tiers)


def entry(name: str, images: int, *judges: RankedMetric, seeds: int = 1) -> ModelEntry:
    seen = ImagesSeen(
        prompt_set="set", revision="1", seeds=tuple(range(seeds)), wanted=images, present=images
    )
    return ModelEntry(
        submission_id=name, model=name, submitter="ada", images=seen, received_at=NOW,
        judges={one.entry_id: judge_run(one.entry_id) for one in judges},
        published_at=NOW, since=NOW,
    )  # fmt: skip


def track(*entries: ModelEntry) -> ModelTrack:
    return ModelTrack({one.submission_id: one for one in entries})


# What is to be scored
def test_what_is_worth_most_by_the_second_comes_first_and_what_is_done_last() -> None:
    slow, quick, good = metric("slow", 2.0), metric("quick", 0.1), metric("good", 0.1, 3)
    cells = grid(track(entry("model", 10)), (slow, quick, good))
    assert [cell.metric for cell in cells] == [good, quick, slow]
    cells = grid(track(entry("model", 10, quick)), (quick, slow))
    found = [(cell.metric, cell.done, cell.seconds) for cell in cells]
    assert found == [(slow, False, 40.0), (quick, True, 0.0)]
    (untimed,) = grid(track(entry("model", 10)), (metric("untimed", None),))
    assert untimed.seconds > 0


def test_the_cost_counts_every_image_and_the_changed_ones_of_at_most_200_prompts() -> None:
    assert images_to_score(entry("few", 30, seeds=3).images) == 30 + 10
    assert images_to_score(entry("many", 4000, seeds=2).images) == 4000 + PERTURBED


def test_a_metric_that_failed_is_not_missing() -> None:
    one, two = metric("one", 0.1), metric("two", 0.1)
    failed = {one.entry_id: judge_run(one.entry_id, failed="It broke.")}
    assert missing(failed, (one, two)) == [two]


# What pages read: once per change, and as before while the store is away
@dataclass
class Away:
    """A repository that goes away."""

    public: MemoryRepository
    away: bool = False

    def read(self, path: str) -> bytes:
        if self.away:
            raise TransientError("away", "No answer.")
        return self.public.read(path)


def test_a_file_is_parsed_again_only_when_it_has_changed() -> None:
    store, parsed = MemoryRepository(), list[bytes]()

    def parse(content: bytes) -> bytes:
        parsed.append(content)
        return content

    kept: KeptFile[bytes] = KeptFile(store, "f", parse, b"none")
    assert kept.now() == b"none"
    transact(store, lambda: {"f": b"one"}, "one")
    assert [kept.now(), kept.now()] == [b"one", b"one"]
    assert parsed == [b"one"]
    transact(store, lambda: {"f": None}, "gone")
    assert kept.now() == b"none"


def test_while_the_store_is_away_what_was_read_last_stays() -> None:
    store = Away(MemoryRepository(), away=True)
    kept: KeptFile[bytes] = KeptFile(store, "f", bytes, b"none")  # type: ignore[arg-type]
    with pytest.raises(TransientError):
        kept.now()
    store.away = False
    transact(store.public, lambda: {"f": b"one"}, "one")
    assert kept.now() == b"one"
    store.away = True
    assert kept.now() == b"one"


def test_a_track_comes_back_as_it_was_written() -> None:
    written, store = track(entry("model", 10)), MemoryRepository()
    transact(store, lambda: {PATH: track_bytes(written)}, "models")
    assert KeptFile(store, PATH, parse_track, ModelTrack()).now() == written
