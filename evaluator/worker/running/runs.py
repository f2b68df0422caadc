"""Run of one submission: a file that is read, or a module that is asked."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.questions import QuestionFolder
from benchmarks.schema import Benchmark, Questions, ScoreTable
from benchmarks.scores import check_mostly_scored, load_bytes, parse_scores
from evaluator.scoring.asking import ClientSource, Engine
from evaluator.scoring.engine import EngineOptions, ScoreColumn, run_plan
from evaluator.scoring.plan import PLAN_VERSION, ScoringPlan
from evaluator.scoring.progress import Progress
from evaluator.scoring.shards import ShardFolder, run_fingerprint
from evaluator.trust import Trial, sampled, tried
from evaluator.worker.ending.judging import Scored
from evaluator.worker.running.run_boxes import Printing
from evaluator.worker.running.run_records import cost_record, findings_record
from leaderboard.records import Submission
from leaderboard.trust import TrustReport

AS_SUBMITTED = ("scores as submitted, not re-run",)
IN_PLAN_ORDER = EngineOptions(window=1)
"""A stranger's module sees images in the order of a keyed hash and in no other."""

Tell = Callable[[Progress], None]


class Run(Protocol):
    """One submission, opened for scoring."""

    @property
    def log(self) -> str:
        """What the scorer printed so far."""

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """The scores on one benchmark."""


@dataclass(frozen=True)
class FileRun:
    """A scores file: nothing is run."""

    submission: Submission
    upload: Path
    log: str = ""

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """See `Run`."""
        table = parse_scores(
            load_bytes(self.upload),
            self.upload.name,
            benchmark,
            benchmark.answers(data),
            metric=self.submission.name,
            lower_is_better=self.submission.lower_is_better,
        )
        n = len(table.overall)
        for metric in table.metrics:
            check_mostly_scored(
                int(table.overall[metric].notna().sum()), n, f"{metric} on {benchmark.name}"
            )
        tell(Progress(done=n, total=n, rate=0.0, eta_s=0.0, stage="reading"))
        return Scored(benchmark.name, table, AS_SUBMITTED)


@dataclass(frozen=True)
class ModuleWork:
    """What is to be done with a module.

    Attributes:
        submission: whose it is.
        layers: what isolates it.
        shards: folder of what is finished.
        engine: carries its batches.
        questions: what is asked under opaque ids; None: what the benchmark itself gives.
    """

    submission: Submission
    layers: tuple[str, ...]
    shards: Path
    engine: Engine
    questions: QuestionFolder | None = None

    def asked(self, benchmark: Benchmark, data: Path | None) -> Questions:
        """The questions of a benchmark."""
        if self.questions is None:
            return benchmark.questions(data)
        return self.questions.questions(benchmark)

    def tag(self, benchmark: Benchmark) -> str:
        """Of the export the questions are from; empty where they are under their own ids."""
        return "" if self.questions is None else self.questions.about(benchmark.name).tag


class ModuleRun:
    """A scoring module in its box; one box serves all benchmarks of a submission.

    Args:
        work: what is to be done.
        source: of its askers.
        printing: the box, where it is on this machine; its log is read there.
        trial: of askers for the trust checks; None: the same.
    """

    def __init__(
        self,
        work: ModuleWork,
        source: ClientSource,
        printing: Printing | None = None,
        trial: ClientSource | None = None,
    ) -> None:
        self._work = work
        self._source = source
        self._printing = printing
        self._trial = trial or source
        self._trust: TrustReport | None = None

    @property
    def log(self) -> str:
        """See `Run`; what a module prints on another machine stays there."""
        return self._printing.log if self._printing else ""

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """See `Run`."""
        work = self._work
        questions, tag = work.asked(benchmark, data), work.tag(benchmark)
        total = len(questions.pairs)
        tell(Progress(done=0, total=total, rate=0.0, eta_s=None, stage="starting"))
        trial = None if self._trust else self._tried(questions, benchmark.name, tell)
        revision = " ".join(filter(None, (benchmark.card.revision, tag)))
        column = self.column(questions, (benchmark.name, revision), tell)
        verdict = column.verdict
        check_mostly_scored(verdict.scored, verdict.pairs, benchmark.name, verdict.unscored)
        if trial is not None:
            self._trust = trial.after({str(pair): score for pair, score in column.overall.items()})
        return Scored(
            benchmark.name,
            self._table(column),
            work.layers,
            cost_record(column.cost),
            findings_record(column),
            self._trust,
            tag,
            contract=PLAN_VERSION,
        )

    def column(self, questions: Questions, of: tuple[str, str], tell: Tell) -> ScoreColumn:
        """The scores of any questions; what was scored before is kept.

        Args:
            questions: what is asked.
            of: the name and the revision that they go by; scores of another revision are not kept.
            tell: is told of progress.
        """
        name, revision = of
        return run_plan(
            ScoringPlan.of(questions, secrets.token_bytes(32)),
            questions,
            self._source,
            ShardFolder(
                self._work.shards / name,
                run_fingerprint(
                    submission=self._source.fingerprint, benchmark=name, revision=revision
                ),
            ),
            tell,
            engine=self._work.engine,
            options=IN_PLAN_ORDER,
        )

    def _tried(self, questions: Questions, benchmark: str, tell: Tell) -> Trial:
        """The trust checks, on pairs of the first benchmark; they stand for the whole run."""
        total = len(questions.pairs)

        def told(_done: int, _of: int) -> None:
            tell(Progress(done=0, total=total, rate=0.0, eta_s=None, stage="checking"))

        few = sampled(questions, secrets.token_bytes(32))
        with self._trial.open() as asker:
            return tried(asker, few, benchmark, told)

    def _table(self, column: ScoreColumn) -> ScoreTable:
        name = self._work.submission.metrics[0]
        return ScoreTable(
            column.overall.to_frame(name),
            elements={} if column.elements is None else {name: column.elements},
            directions=dict.fromkeys(self._work.submission.lower_is_better, -1),
        )
