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
from leaderboard.draws import Draws
from leaderboard.ledger import Ledger
from leaderboard.records import Cost, Findings, RunResult, Status, Submission
from leaderboard.results import ResultFiles, read_published, result_files
from leaderboard.snapshot import Published
from leaderboard.store.interface import Store, transact
from leaderboard.trust import TrustReport

_FIGURES_DEPEND_ON = ("numpy", "pandas", "scipy", "pillow")


@dataclass(frozen=True)
class Scored:
    """The scores of one submission on one benchmark, and how they came about.

    Attributes:
        benchmark: the benchmark's name.
        table: the scores.
        isolation: layers in force while the scorer ran.
        cost: what the run used; None where no code was run.
        findings: what is to be known of its items; None where no code was run.
        trust: what the scorer was put through; None where no code was run.
    """

    benchmark: str
    table: ScoreTable
    isolation: tuple[str, ...]
    cost: Cost | None = None
    findings: Findings | None = None
    trust: TrustReport | None = None


@dataclass(frozen=True)
class Judged:
    """One run, ready to be published."""

    published: Published
    measured: Measured
    table: ScoreTable

    answers_public: bool

    def files(self) -> ResultFiles:
        """The files of the run."""
        return result_files(
            self.published.result,
            self.measured,
            self.table,
            answers_public=self.answers_public,
        )


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
    measured = benchmark.evaluate(scored.table, answers)
    result = RunResult(
        submission_id=submission.submission_id,
        benchmark=benchmark.name,
        revision=benchmark.card.revision,
        rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=plan.seed,
        n_resamples=plan.n_resamples,
        isolation=scored.isolation,
        versions=versions(),
        sources=dict(answers.sources),
        cost=scored.cost,
        findings=_shown(scored.findings, benchmark),
        repaired={metric: len(pairs) for metric, pairs in scored.table.repaired.items()},
        trust=_without_examples(scored.trust, benchmark),
        judged_at=judged_at,
    )
    return Judged(
        Published(submission, result, Draws(measured.resamples, measured.contributions)),
        measured,
        scored.table,
        benchmark.card.answers_public,
    )


def _shown(findings: Findings | None, benchmark: Benchmark) -> Findings | None:
    """Examples tell of single items, which is not for all eyes where answers are private."""
    if findings is None or benchmark.card.answers_public:
        return findings
    return findings.model_copy(update={"examples": ()})


def _without_examples(trust: TrustReport | None, benchmark: Benchmark) -> TrustReport | None:
    """As `_shown`: only pairs of this benchmark are named, and only if its answers are public."""
    if trust is None or (trust.benchmark == benchmark.name and benchmark.card.answers_public):
        return trust
    checks = (check.model_copy(update={"example": None}) for check in trust.checks)
    return trust.model_copy(update={"checks": tuple(checks)})


def versions() -> dict[str, str]:
    """Versions of what the figures depend on."""
    found = {name: version(name) for name in _FIGURES_DEPEND_ON}
    return {"python": platform.python_version(), **found}


class Publisher:
    """Builds the snapshot from everything published, anew only when that has changed.

    Args:
        store: what is published there.
        registry: gives the cards; their benchmarks have boards.
    """

    def __init__(self, store: Store, registry: Mapping[str, Benchmark]) -> None:
        self._store = store
        self._cards = {name: benchmark.card for name, benchmark in registry.items()}
        self._built_from: object = None
        self._built: dict[str, bytes] = {}

    def snapshot_files(self, built_at: datetime, new: Sequence[Judged] = ()) -> dict[str, bytes]:
        """The snapshot of everything published so far and of `new` runs, which replace older ones.

        A commit that loses its race calls this again; unless the race was lost to another
        publication, the answer is at hand.
        """
        shown = [status for status in Ledger(self._store).statuses() if status.on_boards]
        fresh = [j.published.result for j in new]
        key = (
            [(s.submission.submission_id, s.since) for s in shown],
            [(r.submission_id, r.benchmark, r.judged_at) for r in fresh],
        )
        if key != self._built_from:
            built = snapshot.build_snapshot(self._runs(shown, new), self._cards, built_at)
            self._built = {snapshot.PATH: built.model_dump_json().encode()}
            self._built_from = key
        return self._built

    def publish_cards(self, built_at: datetime) -> None:
        """Make the boards show the benchmarks known here, if the snapshot shows others."""
        shown = snapshot.read_snapshot(self._store.public)
        if shown is None or {n: b.card for n, b in shown.boards.items()} != self._cards:
            transact(
                self._store.public, lambda: self.snapshot_files(built_at), "boards of new cards"
            )

    def _runs(self, shown: Sequence[Status], new: Sequence[Judged]) -> list[Published]:
        replaced = {j.published.submission.submission_id for j in new}
        kept = [s for s in shown if s.submission.submission_id not in replaced]
        return [*read_published(self._store, kept, self._cards), *(j.published for j in new)]
