"""Run of one submission: a file that is read, or a module that is asked."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol, Self

import pandas as pd

from benchmarks.questions import QuestionFolder
from benchmarks.schema import Benchmark, Questions, ScoreTable
from benchmarks.scores import check_mostly_scored, load_bytes, parse_scores
from evaluator.controls import Output, controls_of_each, crossed
from evaluator.isolation.session import ScorerSession
from evaluator.scoring.asking import PLAN_VERSION, ClientSource, Engine, Finding, ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder, run_fingerprint
from evaluator.scoring.comparing import Comparisons
from evaluator.scoring.engine import EngineOptions, run_plan
from evaluator.scoring.progress import Progress
from evaluator.scoring.sandbox import StartedSandboxes
from evaluator.trust import Trial, order_figures, sampled, trials
from leaderboard.records import Cost, FindingExample, Findings, JudgeRun, OutputReport, Submission
from leaderboard.trust import TrustReport

MOST_EXAMPLES = 50


def findings_record(column: ScoreColumn) -> Findings:
    """How much of a run was scored, and what was found on the way: counts and some examples."""
    return Findings(
        pairs=column.verdict.pairs,
        scored=column.verdict.scored,
        unscored=dict(column.verdict.unscored),
        counts=dict(Counter(finding.code for finding in column.findings).most_common()),
        examples=tuple(FindingExample(**asdict(one)) for one in _examples(column.findings)),
        environment=dict(column.environment),
        orders=None if column.margins is None else order_figures(column.margins),
    )


def _examples(findings: Sequence[Finding]) -> Iterator[Finding]:
    """As many of each code as there is room for, so that a frequent one hides no other."""
    codes = Counter(finding.code for finding in findings)
    room = MOST_EXAMPLES
    for place, (code, n) in enumerate(sorted(codes.items(), key=lambda item: item[1])):
        share = min(n, room // (len(codes) - place))
        room -= share
        yield from [finding for finding in findings if finding.code == code][:share]


def fingerprint_of(submission: Submission) -> str:
    """Of what decides a module's scores: its content, and packages that are not Assay's own."""
    return "-".join(filter(None, (submission.content_sha256, submission.environment)))


def environment_of(submission: Submission) -> dict[str, str]:
    """What the record of a run says of the packages that were not Assay's own."""
    return {"environment": submission.environment} if submission.environment else {}


AS_SUBMITTED = ("scores as submitted, not re-run",)
IN_PLAN_ORDER = EngineOptions(window=1)
"""A stranger's module sees images in the order of a keyed hash and in no other."""

Tell = Callable[[Progress], None]


@dataclass(frozen=True)
class Scored:
    """The scores of one submission on one benchmark, and how they came about."""

    benchmark: str  # the benchmark's name
    table: ScoreTable  # the scores
    isolation: tuple[str, ...]  # layers in force while the scorer ran
    cost: Cost | None = None  # what the run used; None where no code was run
    findings: Findings | None = None  # what is to be known of its items; None where no code was run
    trust: TrustReport | None = None  # what the scorer was put through; None where no code was run
    # of the export whose opaque ids the scores are under; empty: they are under their own
    tag: str = ""
    contract: int | None = None  # version of what the scorer was given; None where no code was run
    # of generations: entry id to the run of each metric that scored them; the table has a column of
    # each that gave scores
    judges: Mapping[str, JudgeRun] = field(default_factory=dict)
    # metric to what was found of it, where a module has several outputs; then `findings` and `trust`
    # are None, and the table has a column of each that is on the benchmark
    outputs: Mapping[str, OutputReport] = field(default_factory=dict)

    @property
    def reports(self) -> Mapping[str, TrustReport]:
        """Metric to what it was put through."""
        if self.trust is not None:
            return dict.fromkeys(self.table.metrics, self.trust)
        return {name: one.trust for name, one in self.outputs.items() if one.trust is not None}

    def findings_of(self, metric: str) -> Findings | None:
        """What is to be known of the items of the run of a metric."""
        return self.outputs[metric].findings if metric in self.outputs else self.findings


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
    """What is to be done with a module."""

    submission: Submission  # whose it is
    layers: tuple[str, ...]  # what isolates it
    shards: Path  # folder of what is finished
    engine: Engine  # carries its batches
    # what is asked under opaque ids; None: what the benchmark itself gives
    questions: QuestionFolder | None = None

    def questions_of(self, benchmark: Benchmark, data: Path | None) -> Questions:
        """The questions of a benchmark."""
        if self.questions is None:
            return benchmark.questions(data)
        return self.questions.questions(benchmark)

    def tag(self, benchmark: Benchmark) -> str:
        """Of the export the questions are from; empty where they are under their own ids."""
        return "" if self.questions is None else self.questions.about(benchmark.name).tag


class ModuleRun:
    """A scoring module in its sandbox; one serves all benchmarks of a submission."""

    def __init__(
        self,
        work: ModuleWork,
        source: ClientSource,
        log: Callable[[], str] = str,
        trial: ClientSource | None = None,
    ) -> None:
        self._work = work
        self._source = source
        self._log = log
        self._trial = trial or source
        self._trust: dict[str, TrustReport] = {}

    @classmethod
    def in_sandboxes(
        cls, work: ModuleWork, start: Callable[[], ScorerSession], until: ExitStack
    ) -> Self:
        """A run in one sandbox, which lives until then, with trust checks in another before it.

        Where further outputs are tried later, on the first of their benchmarks, it ends for that and
        another takes its place: two never run at once.

        In one and the same a scorer would know which pairs it was tried on, and could be honest
        about those alone; and what is another each time that it is made would look the same.
        """
        started: list[ScorerSession] = []

        def sandbox() -> ScorerSession:
            started.append(start())
            return started[-1]

        content, made_with = fingerprint_of(work.submission), environment_of(work.submission)
        outputs = work.submission.outputs
        source = StartedSandboxes(sandbox, content, until, made_with, outputs)

        def alone() -> ScorerSession:
            source.end()
            return sandbox()

        return cls(
            work,
            source,
            lambda: started[-1].log if started else "",
            StartedSandboxes(alone, content, environment=made_with, outputs=outputs),
        )

    @property
    def log(self) -> str:
        """See `Run`; what a module prints on another machine stays there."""
        return self._log()

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """See `Run`."""
        work = self._work
        questions, tag = work.questions_of(benchmark, data), work.tag(benchmark)
        revision = " ".join(filter(None, (benchmark.card.revision, tag)))
        comparisons = None
        if work.submission.method == "compare":
            comparisons = Comparisons.of(questions, f"{benchmark.name} {revision}".encode())
        asked = comparisons.questions if comparisons else questions
        total = len(asked.pairs)
        tell(Progress(done=0, total=total, rate=0.0, eta_s=None, stage="starting"))
        on = work.submission.metrics_on(benchmark.name)
        untried = [name for name in on if name not in self._trust]
        trial = self._tried(untried, asked, questions, benchmark.name, tell) if untried else {}
        answered = self.column(asked, (benchmark.name, revision), tell)
        column = comparisons.column(answered) if comparisons else answered
        columns = dict(zip(work.submission.metrics, column.outputs, strict=True))
        shown = {name: columns[name] for name in on}
        for name, one in shown.items():
            what = f"{name} on {benchmark.name}" if column.others else benchmark.name
            check_mostly_scored(one.verdict.scored, one.verdict.pairs, what, one.verdict.unscored)
        if trial:
            if column.margins is not None:
                trial = {name: one.with_orders(column.margins) for name, one in trial.items()}
            run = dict(zip(work.submission.metrics, answered.outputs, strict=True))
            self._trust |= {name: one.after(_scores(run[name])) for name, one in trial.items()}
        reports = {
            name: OutputReport(findings=findings_record(one), trust=self._trust[name])
            for name, one in shown.items()
        }
        only = OutputReport() if column.others else reports[work.submission.metrics[0]]
        return Scored(
            benchmark.name,
            self._table(shown),
            work.layers,
            column.cost,
            only.findings,
            only.trust,
            tag,
            contract=PLAN_VERSION,
            outputs=reports if column.others else {},
        )

    def column(self, questions: Questions, of: tuple[str, str], tell: Tell) -> ScoreColumn:
        """The scores of any questions; what was scored before is kept."""
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
            outputs=self._work.submission.outputs,
        )

    def _tried(
        self,
        metrics: Sequence[str],
        asked: Questions,
        questions: Questions,
        benchmark: str,
        tell: Tell,
    ) -> dict[str, Trial]:
        """Metric to its trust checks, on pairs of its first benchmark; they stand for the whole run.

        `asked`: the questions as the metric is asked them, two images together where it compares.
        """
        total = len(asked.pairs)

        def show(_done: int, _of: int) -> None:
            tell(Progress(done=0, total=total, rate=0.0, eta_s=None, stage="checking"))

        few = sampled(asked, secrets.token_bytes(32))
        own = self._work.submission
        compares = own.method == "compare"
        crossing = crossed(questions, secrets.token_bytes(32))
        with self._trial.open() as asker:
            tests = trials(asker, few, benchmark, own.outputs, show)
            sides = [
                Output(-1 if name in own.lower_is_better else 1, trial.rounding)
                for name, trial in zip(own.metrics, tests, strict=True)
            ]
            found = controls_of_each(asker, crossing, sides, compares=compares)
            show(0, 0)
        return {
            name: trial.with_controls(one.prompt, one.content)
            for name, trial, one in zip(own.metrics, tests, found, strict=True)
            if name in metrics
        }

    def _table(self, columns: Mapping[str, ScoreColumn]) -> ScoreTable:
        """Scores of metrics; those of comparisons and with elements stand alone."""
        return ScoreTable(
            pd.DataFrame({name: one.overall for name, one in columns.items()}),
            elements={n: one.elements for n, one in columns.items() if one.elements is not None},
            margins={n: one.margins for n, one in columns.items() if one.margins is not None},
            directions={n: -1 for n in self._work.submission.lower_is_better if n in columns},
        )


def _scores(column: ScoreColumn) -> dict[str, float]:
    return {str(pair): score for pair, score in column.overall.items()}
