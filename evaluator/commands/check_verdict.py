"""Verdict of `check`: may the module rank; one answer for people, programs and exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.submission.checking.dry_run import BenchmarkRun, DryRun
from leaderboard.ranking.rank_ranges import MAX_MISSING


@dataclass(frozen=True)
class Verdict:
    """What a dry run comes to.

    Attributes:
        good: it ran to its end and may rank on all that it was asked.
        said: in a sentence.
        remarks: what is to be known of scores that do not stand in the way.
    """

    good: bool
    said: str
    remarks: tuple[str, ...] = ()


def verdict_of(found: DryRun, bounds: tuple[float, float] | None = None) -> Verdict:
    """The verdict on a dry run.

    Args:
        found: what it found.
        bounds: the smallest and largest score that the manifest states, if it does.
    """
    if found.failure is not None or found.trust is None:
        return Verdict(False, "It failed, and would fail in a worker: nothing would be scored.")
    remarks = (*_all_the_same(found.runs), *_out_of_bounds(found.runs, bounds))
    against = []
    if found.trust.failed:
        against.append(found.trust.why_not)
    against += [said for run in found.runs if (said := _missing(run))]
    if against:
        return Verdict(False, f"Would not rank: {'; '.join(against)}.", remarks)
    return Verdict(True, "Passed every trust check: it may rank.", remarks)


def _missing(run: BenchmarkRun) -> str:
    """Why too few pairs of a benchmark have scores; empty where they are enough."""
    missing = float(run.scores.isna().mean())
    if missing <= MAX_MISSING:
        return ""
    return (
        f"{100 * missing:.0f} % of the scores on {run.drawn.name} are missing, and a ranking "
        f"takes at most {100 * MAX_MISSING:g} %"
    )


def _all_the_same(runs: Sequence[BenchmarkRun]) -> tuple[str, ...]:
    same = [run.drawn.name for run in runs if run.scores.nunique() == 1]
    if not same:
        return ()
    return (f"Every score on {', '.join(same)} is the same: it tells no image from another.",)


def _out_of_bounds(
    runs: Sequence[BenchmarkRun], bounds: tuple[float, float] | None
) -> tuple[str, ...]:
    if bounds is None:
        return ()
    low, high = bounds
    outside = sum(int(((run.scores < low) | (run.scores > high)).sum()) for run in runs)
    if not outside:
        return ()
    asked = sum(run.drawn.n_pairs for run in runs)
    return (
        f"{outside} of {asked} scores lie outside the range {low:g} to {high:g} that assay.toml "
        "states: correct it, or leave it out.",
    )
