"""The judge role: from scores to rows.

Runs no stranger's code and needs no GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from benchmarks.inference import versions
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, ScoreTable
from evaluator.worker.ending.sameness import score_hashes
from leaderboard.publication.results import Published, ResultFiles, result_files
from leaderboard.publication.withheld import public_result
from leaderboard.ranking.draws import Draws
from leaderboard.records import Cost, Findings, JudgeRun, RunResult, Submission
from leaderboard.trust import TrustReport


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
        tag: of the export whose opaque ids the scores are under; empty: they are under their own.
        contract: version of what the scorer was given; None where no code was run.
        judges: of generations: entry id to the run of each metric that scored them; the table has
            a column of each that gave scores.
    """

    benchmark: str
    table: ScoreTable
    isolation: tuple[str, ...]
    cost: Cost | None = None
    findings: Findings | None = None
    trust: TrustReport | None = None
    tag: str = ""
    contract: int | None = None
    judges: Mapping[str, JudgeRun] = field(default_factory=dict)


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
        protocol=benchmark.card.protocol,
        contract=scored.contract,
        rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=plan.seed,
        n_resamples=plan.n_resamples,
        isolation=scored.isolation,
        versions=versions("pillow"),  # Scorers are given what it decodes.
        sources=dict(answers.sources),
        cost=scored.cost,
        findings=scored.findings,
        repaired={metric: len(pairs) for metric, pairs in scored.table.repaired.items()},
        trust=_of_its_own(scored.trust, benchmark),
        scores_sha256=score_hashes(scored.table),
        judged_at=judged_at,
    )
    if not benchmark.card.answers_public:
        result = public_result(result)
    return Judged(
        Published(submission, result, Draws(measured.resamples, measured.contributions)),
        measured,
        scored.table,
        benchmark.card.answers_public,
    )


def _of_its_own(trust: TrustReport | None, benchmark: Benchmark) -> TrustReport | None:
    """The checks without their examples, where these are pairs of another benchmark."""
    if trust is None or trust.benchmark == benchmark.name:
        return trust
    checks = (check.model_copy(update={"example": None}) for check in trust.checks)
    return trust.model_copy(update={"checks": tuple(checks)})
