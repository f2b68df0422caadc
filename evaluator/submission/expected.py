"""Expected time of a whole run on every benchmark, from a dry run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.schema import Benchmark
from evaluator.isolation.limits import Limits
from evaluator.submission.costs import (
    Projection,
    Ran,
    of_questions,
    pace_of,
    projections,
    trust_span_s,
)
from evaluator.submission.dry_run import BenchmarkRun, DryRun


@dataclass(frozen=True)
class Expectation:
    """Times on a machine like this."""

    # of every benchmark; empty where the dry run did not come to its end
    later: tuple[Projection, ...] = ()
    # the least and the most seconds of what happens once: start and trust checks
    once_s: tuple[float, float] = (0.0, 0.0)


def expectation(
    found: DryRun,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    limits: Limits,
    wanted: Sequence[str],
) -> Expectation:
    """What is to be expected after a dry run."""
    if found.failure is not None or found.costs is None or found.start_s is None:
        return Expectation()
    small = bool(wanted) and registry[wanted[0]].card.simulated
    tests = trust_span_s(found.costs, found.runs[0].testing_s, small=small)
    once_s = found.start_s + tests[0], found.start_s + tests[1]
    later = projections(
        registry,
        data,
        found.costs,
        once_s=once_s[1],
        limits=limits,
        wanted=wanted,
        pace=pace_of(found.costs, [ran(run) for run in found.runs]),
    )
    return Expectation(later, once_s)


def ran(run: BenchmarkRun) -> Ran:
    """A run of the check, as the projection takes it."""
    card, cost = run.drawn.card, run.scored.cost
    size = of_questions(run.drawn.questions(None), small=card.simulated)
    scorer_s = 0.0 if cost is None else cost.seconds
    return Ran(card.family, size, scorer_s, run.asking_s, run.measuring_s)
