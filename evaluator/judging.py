"""The judge role: from scores to rows, and from all published runs to the snapshot.

Runs no stranger's code and needs no GPU.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, ScoreTable
from leaderboard import snapshot
from leaderboard.ledger import Ledger
from leaderboard.records import Cost, RunResult, Submission
from leaderboard.results import read_published, result_files
from leaderboard.snapshot import Published, build_snapshot
from leaderboard.store.interface import Store, transact

_FIGURES_DEPEND_ON = ("numpy", "pandas", "scipy", "pillow")


@dataclass(frozen=True)
class Scored:
    """The scores of one submission on one benchmark, and how they came about.

    Attributes:
        benchmark: the benchmark's name.
        table: the scores.
        isolation: layers in force while the scorer ran.
        cost: what the run used; None where no code was run.
    """

    benchmark: str
    table: ScoreTable
    isolation: tuple[str, ...]
    cost: Cost | None = None


@dataclass(frozen=True)
class Judged:
    """One run, ready to be published."""

    published: Published
    measured: Measured
    table: ScoreTable

    def files(self) -> dict[str, bytes]:
        """The public files of the run."""
        return result_files(self.published.result, self.measured, self.table)


def judge(
    submission: Submission,
    scored: Scored,
    benchmark: Benchmark,
    data: Path | None,
    judged_at: datetime,
) -> Judged:
    """Compute every measure of one run.

    Raises:
        SubmitterError: the benchmark's answers are not here.
    """
    answers = benchmark.answers(data)
    plan = benchmark.plan(answers)
    measured = benchmark.measure(scored.table, answers, plan)
    result = RunResult(
        submission_id=submission.submission_id,
        benchmark=benchmark.name,
        revision=benchmark.card.revision,
        rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=plan.seed,
        n_resamples=plan.n_resamples,
        isolation=scored.isolation,
        versions=versions(),
        cost=scored.cost,
        repaired={metric: len(pairs) for metric, pairs in scored.table.repaired.items()},
        judged_at=judged_at,
    )
    return Judged(Published(submission, result, measured.resamples), measured, scored.table)


def versions() -> dict[str, str]:
    """Versions of what the figures depend on."""
    found = {name: version(name) for name in _FIGURES_DEPEND_ON}
    return {"python": platform.python_version(), **found}


def snapshot_files(
    store: Store,
    registry: Mapping[str, Benchmark],
    built_at: datetime,
    new: Sequence[Judged] = (),
) -> dict[str, bytes]:
    """The snapshot of everything published so far and of `new` runs."""
    replaced = {j.published.submission.submission_id for j in new}
    kept = [
        run
        for run in read_published(store.public, Ledger(store).statuses())
        if run.submission.submission_id not in replaced
    ]
    runs = [*kept, *(j.published for j in new)]
    cards = {name: benchmark.card for name, benchmark in registry.items()}
    built = build_snapshot(runs, cards, built_at)
    return {snapshot.PATH: built.model_dump_json().encode()}


def publish_cards(store: Store, registry: Mapping[str, Benchmark], built_at: datetime) -> None:
    """Make the boards show the benchmarks known here, if the snapshot shows others."""
    shown = snapshot.read_snapshot(store.public)
    cards = {name: benchmark.card for name, benchmark in registry.items()}
    if shown is not None and {n: b.card for n, b in shown.boards.items()} == cards:
        return
    transact(store.public, lambda: snapshot_files(store, registry, built_at), "boards of new cards")
