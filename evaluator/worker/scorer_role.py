"""The scorer role: from an upload to scores. Holds no answers where code is run.

A scores file is read and checked; a scoring module is unpacked and asked in a box.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.schema import Benchmark, Questions, ScoreTable
from benchmarks.scores import load_bytes, parse_scores
from evaluator.bundled import bundled_hashes
from evaluator.hub.model_shelf import ModelShelf
from evaluator.isolation.backend import Backend, IsolationStatus
from evaluator.isolation.gate import choice_of
from evaluator.isolation.limits import Limits
from evaluator.scoring.asking import AskerSource
from evaluator.scoring.engine import EngineOptions, ScoreColumn, run_plan
from evaluator.scoring.engines import Engine
from evaluator.scoring.local import LocalEngine
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.progress import Progress
from evaluator.scoring.shards import ShardFolder, run_fingerprint
from evaluator.trust.checks import Trial, tried
from evaluator.trust.sampling import sampled
from evaluator.worker.judging import Scored
from evaluator.worker.module_box import Boxes, PackedModule, fresh_below
from evaluator.worker.run_boxes import Printing, RunBoxes
from evaluator.worker.run_records import cost_record, findings_record
from leaderboard.desk import Gate
from leaderboard.records import Kind, Submission
from leaderboard.trust import TrustReport

AS_SUBMITTED = ("scores as submitted, not re-run",)
IN_PLAN_ORDER = EngineOptions(window=1)
"""A stranger's module sees images in the order of a keyed hash and in no other."""

LEFT_BEHIND_S = 24 * 3600.0
"""Longer than any submission may run."""

Tell = Callable[[Progress], None]


class Run(Protocol):
    """One submission, opened for scoring."""

    @property
    def log(self) -> str:
        """What the scorer printed so far."""

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """The scores on one benchmark."""


@dataclass(frozen=True)
class ScorerRole:
    """Runs scoring modules on this machine.

    Attributes:
        isolation: what isolates strangers' code here.
        own: the backend for the modules that are part of Assay, where nothing isolates.
        scratch: folder for unpacked modules and finished shards; may be lost at any time.
        limits: of one submission.
        engine: carries the batches of modules.
        models: folder of models of the Hub that modules name; None: one beside the scratch.
        operator: key of the account that runs this; where nothing isolates, only its own code is
            run.
    """

    isolation: IsolationStatus
    own: Backend
    scratch: Path
    limits: Limits
    engine: Engine = field(default_factory=LocalEngine)
    models: Path | None = None
    operator: str = ""

    @property
    def shelf(self) -> ModelShelf:
        """Models that modules name, fetched before their boxes start."""
        return ModelShelf(self.models or self.scratch.parent / "models")

    @property
    def gate(self) -> Gate:
        """Whether strangers' code is taken."""
        return Gate(self.isolation.ok, self.isolation.reason, self.isolation.remedy)

    @property
    def layers(self) -> tuple[str, ...]:
        """What isolates strangers' code."""
        return self.isolation.layers

    def can_run(self, submission: Submission) -> bool:
        """Whether this machine may run the module.

        It may where code is isolated, and elsewhere what is part of Assay itself or, if the
        operator chose no isolation, the operator's own.
        """
        if self.isolation.isolates or submission.content_sha256 in bundled_hashes():
            return True
        return self.isolation.ok and submission.account == self.operator != ""

    @contextmanager
    def fetched(
        self, submission: Submission, fetch: Callable[[Submission, Path], None]
    ) -> Iterator[Path]:
        """The upload of a submission on this machine, removed afterwards.

        Args:
            submission: its whole record.
            fetch: copies its upload to a new file.
        """
        place = fresh_below(self.scratch / "unpacked")
        try:
            upload = place / Path(submission.archive).name
            fetch(submission, upload)
            yield upload
        finally:
            shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def open(self, submission: Submission, upload: Path) -> Iterator[Run]:
        """Open a submission; everything it started has ended afterwards.

        Args:
            submission: its whole record.
            upload: as `fetched` gives it.
        """
        if submission.kind is Kind.SCORES:
            yield FileRun(submission, upload)
            return
        _, layers = self.boxes.choose(submission)
        with suppress(FileExistsError):  # scores of submissions that may be private
            (self.scratch / "shards").mkdir(mode=0o700, parents=True)
        work = ModuleWork(submission, layers, self.shards_of(submission), self.engine)
        if self.engine.name != "local":
            hidden = (self.scratch.parent,)
            packed = PackedModule(
                submission,
                upload,
                self.own,
                self.limits,
                layers,
                hidden,
                self.shelf,
                choice_of(self.isolation),
            )
            yield ModuleRun(work, packed)
            return
        place = self.scratch / "unpacked"
        with self.boxes.starting(submission, upload, place) as start, ExitStack() as stack:
            boxes = RunBoxes(start, submission.content_sha256, stack)
            yield ModuleRun(work, boxes.for_run, boxes, boxes.for_trial)

    @property
    def boxes(self) -> Boxes:
        """How modules are boxed on this machine."""
        return Boxes(self.isolation, self.own, self.limits, self.shelf)

    def shards_of(self, submission: Submission) -> Path:
        """Folder of the finished shards of a submission."""
        return self.scratch / "shards" / submission.submission_id

    def sweep(self, now_s: float) -> None:
        """Remove what workers that were killed left unpacked, more than a day ago."""
        for place in (self.scratch / "unpacked").glob("*"):
            if place.stat().st_mtime < now_s - LEFT_BEHIND_S:
                shutil.rmtree(place, ignore_errors=True)

    def forget(self, submission: Submission) -> None:
        """Drop what was kept for a restart."""
        shutil.rmtree(self.shards_of(submission), ignore_errors=True)


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
    """

    submission: Submission
    layers: tuple[str, ...]
    shards: Path
    engine: Engine


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
        source: AskerSource,
        printing: Printing | None = None,
        trial: AskerSource | None = None,
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
        questions = benchmark.questions(data)
        total = len(questions.pairs)
        tell(Progress(done=0, total=total, rate=0.0, eta_s=None, stage="starting"))
        trial = None if self._trust else self._tried(questions, benchmark.name, tell)
        work = self._work
        column = run_plan(
            ScoringPlan.of(questions, secrets.token_bytes(32)),
            questions,
            self._source,
            ShardFolder(
                work.shards / benchmark.name,
                run_fingerprint(
                    submission=self._source.fingerprint,
                    benchmark=benchmark.name,
                    revision=benchmark.card.revision,
                ),
            ),
            tell,
            engine=work.engine,
            options=IN_PLAN_ORDER,
        )
        if trial is not None:
            self._trust = trial.after({str(pair): score for pair, score in column.overall.items()})
        return Scored(
            benchmark.name,
            self._table(column),
            work.layers,
            cost_record(column.cost),
            findings_record(column),
            self._trust,
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
