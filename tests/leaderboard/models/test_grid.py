"""The grid of metrics and generations: order by worth, costs known beforehand."""

from __future__ import annotations

from datetime import UTC, datetime

from leaderboard.models.entries import ModelEntry, ModelTrack
from leaderboard.models.grid import PERTURBED, grid, images_to_score, missing
from leaderboard.models.model_card import ImagesSeen
from leaderboard.models.ranked_metrics import RankedMetric
from leaderboard.records import JudgeRun, Kind, Submission

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SHA = "0" * 64


def metric(name: str, seconds: float | None, first_tiers: int = 0) -> RankedMetric:
    submission = Submission(
        submission_id=f"{name}-0123456789",
        kind=Kind.METRIC,
        name=name,
        metrics=(name,),
        benchmarks=(),
        submitter="ada",
        content_sha256=SHA,
        archive="a",
        received_at=NOW,
    )
    return RankedMetric(submission, f"{name}-0123456789/{name}", seconds, first_tiers)


def entry(name: str, images: int, *judges: RankedMetric, seeds: int = 1) -> ModelEntry:
    runs = {
        one.entry_id: JudgeRun(
            submission_id=one.submission.submission_id, metric=one.submission.name, scored_at=NOW
        )
        for one in judges
    }
    return ModelEntry(
        submission_id=name,
        model=name,
        submitter="ada",
        images=ImagesSeen(
            prompt_set="set",
            revision="1",
            seeds=tuple(range(seeds)),
            wanted=images,
            present=images,
        ),
        judges=runs,
        received_at=NOW,
        published_at=NOW,
        since=NOW,
    )


def track(*entries: ModelEntry) -> ModelTrack:
    return ModelTrack({one.submission_id: one for one in entries})


def test_what_is_worth_most_by_the_second_comes_first() -> None:
    slow, quick, good = metric("slow", 2.0), metric("quick", 0.1), metric("good", 0.1, 3)
    cells = grid(track(entry("model", 10)), (slow, quick, good))
    assert [cell.metric for cell in cells] == [good, quick, slow]


def test_what_is_done_costs_nothing_and_comes_last() -> None:
    quick, slow = metric("quick", 0.1), metric("slow", 2.0)
    cells = grid(track(entry("model", 10, quick)), (quick, slow))
    assert [(cell.metric, cell.done, cell.seconds) for cell in cells] == [
        (slow, False, 40.0),
        (quick, True, 0.0),
    ]


def test_the_cost_counts_every_image_and_the_changed_ones_of_at_most_200_prompts() -> None:
    assert images_to_score(entry("few", 30, seeds=3).images) == 30 + 10
    assert images_to_score(entry("many", 4000, seeds=2).images) == 4000 + PERTURBED


def test_a_metric_that_nobody_timed_has_a_cost_all_the_same() -> None:
    (cell,) = grid(track(entry("model", 10)), (metric("untimed", None),))
    assert cell.seconds > 0


def test_a_metric_that_failed_is_not_missing() -> None:
    one = metric("one", 0.1)
    judged = entry("model", 10, one).judges
    failed = {name: run.model_copy(update={"failed": "It broke."}) for name, run in judged.items()}
    assert missing(failed, (one, metric("two", 0.1))) == [metric("two", 0.1)]
