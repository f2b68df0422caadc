"""Recomputation of published rows from published scores, and their comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from benchmarks.rows import Row
from benchmarks.schema import Benchmark
from benchmarks.scores import parse_scores
from leaderboard.ledger.editions import Edition
from leaderboard.ledger.held import results_folder
from leaderboard.publication.withheld import DECIMALS
from leaderboard.records import Kind, RunResult, Status, Submission
from leaderboard.store.interface import NotFoundError, Store

TOLERANCE = 1e-9
"""Relative; of sums of floats in another order on another machine."""
_VALUES = ("value", "ci_low", "ci_high", "n_items", "n_clusters", "n_missing")
_IDENTITY = ("metric", "measure", "variant", "split", "facet", "skill")


@dataclass(frozen=True)
class Recomputed:
    """What came out of computing the rows of a run again.

    Attributes:
        benchmark: of the run.
        rows: how many were published.
        different: those that came out otherwise, in words.
        why_not: why they could not be computed again; empty where they could.
    """

    benchmark: str
    rows: int
    different: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def same(self) -> bool:
        """Whether nothing contradicts what is published."""
        return not self.different

    @property
    def words(self) -> str:
        """A sentence for the reader."""
        if self.why_not:
            return f"{self.benchmark}: not computed again: {self.why_not}"
        if self.same:
            return f"{self.benchmark}: all {self.rows} rows come out as published."
        shown = "; ".join(self.different[:5])
        return (
            f"{self.benchmark}: {len(self.different)} of {self.rows} rows come out otherwise: "
            f"{shown}."
        )

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "benchmark": self.benchmark,
            "rows": self.rows,
            "same": self.same and not self.why_not,
            "different": list(self.different),
            "why_not": self.why_not,
        }


def recomputed(
    store: Store,
    status: Status,
    result: RunResult,
    registry: Mapping[str, Benchmark],
    data: Path | None,
) -> Recomputed:
    """Compute the rows of a run again from the scores that are stored with it.

    Args:
        store: where the scores are.
        status: of the submission.
        result: what was published.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
    """
    n_rows = len(result.rows)

    def not_done(why: str) -> Recomputed:
        return Recomputed(result.benchmark, n_rows, why_not=why)

    benchmark = registry.get(result.benchmark)
    if benchmark is None:
        return not_done("this installation does not know the benchmark.")
    made, here = Edition.of_result(result), Edition.of_card(benchmark.card)
    if (made.revision, made.protocol) != (here.revision, here.protocol):
        return not_done(f"it was judged on {made.words}, and {here.words} is here.")
    if not benchmark.has_answers(data):
        return not_done("the benchmark's data is not here; name its folder with --data.")
    found = _scores(store, status.submission, result, benchmark)
    if found is None:
        return not_done("its scores are not in this store.")
    answers = benchmark.answers(data)
    table = parse_scores(
        found.content,
        found.name,
        benchmark,
        answers,
        metric=status.submission.name,
        lower_is_better=status.submission.lower_is_better,
    )
    tolerance = TOLERANCE if benchmark.card.answers_public else 10.0**-DECIMALS
    return compared(result, benchmark.evaluate(table, answers).rows, tolerance)


def compared(result: RunResult, again: Sequence[Row], tolerance: float = TOLERANCE) -> Recomputed:
    """What is published against what came out."""
    found = {_key(row.to_json()): row.to_json() for row in again}
    different = []
    for row in result.rows:
        other = found.pop(_key(row), None)
        if other is None:
            different.append(f"{_name(row)} does not come out at all")
            continue
        for field in _VALUES:
            if not _equal(row.get(field), other.get(field), tolerance):
                different.append(f"{_name(row)}: {field} {row.get(field)} is {other.get(field)}")
                break
    different += [f"{_name(row)} is not published" for row in found.values()]
    return Recomputed(result.benchmark, len(result.rows), tuple(different))


class _Scores(NamedTuple):
    content: bytes
    name: str
    """Tells its format."""


def _scores(
    store: Store, submission: Submission, result: RunResult, benchmark: Benchmark
) -> _Scores | None:
    name = f"{result.benchmark}.scores.parquet"
    places = [
        (store.public, f"results/{result.submission_id}/{name}"),
        (store.private, f"results/{result.submission_id}/{name}"),
        (store.private, f"{results_folder(result.submission_id)}{name}"),
    ]
    own_formats = type(benchmark).parse_special is not Benchmark.parse_special
    if own_formats and submission.kind is Kind.SCORES:
        # The upload may hold more than scores, for example masks, which no table has.
        places = [(store.private, submission.archive)]
    for repository, path in places:
        try:
            return _Scores(repository.read(path), PurePosixPath(path).name)
        except NotFoundError:
            continue
    return None


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(field) for field in _IDENTITY)


def _name(row: Mapping[str, Any]) -> str:
    return " ".join(str(row[field]) for field in _IDENTITY if row.get(field))


def _equal(one: float | None, other: float | None, tolerance: float) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=tolerance)
