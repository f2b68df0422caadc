"""The scorer role: from an upload to scores. Holds no answers where code is run.

A scores file is read and checked; a scoring module is unpacked and asked in a box.
"""

from __future__ import annotations

import secrets
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.errors import PlatformError
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.scores import parse_scores
from evaluator.bundled import bundled_hashes
from evaluator.isolation.backend import Backend, IsolationStatus
from evaluator.isolation.limits import Limits
from evaluator.isolation.session import ScorerSession
from evaluator.judging import Scored
from evaluator.run_records import cost_record, findings_record
from evaluator.scoring.box import BoxSource
from evaluator.scoring.engine import EngineOptions, ScoreColumn, run_plan
from evaluator.scoring.plan import ScoringPlan
from evaluator.scoring.progress import Progress
from evaluator.scoring.shards import ShardFolder, run_fingerprint
from evaluator.submission.archive import read_content
from leaderboard.desk import Gate
from leaderboard.records import Kind, Submission

AS_SUBMITTED = ("scores as submitted, not re-run",)
OWN_CODE = "our own code, in a process of its own"

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
    """

    isolation: IsolationStatus
    own: Backend
    scratch: Path
    limits: Limits

    @property
    def gate(self) -> Gate:
        """Whether strangers' code is taken."""
        return Gate(self.isolation.ok, self.isolation.reason, self.isolation.remedy)

    @property
    def layers(self) -> tuple[str, ...]:
        """What isolates strangers' code."""
        return self.isolation.layers

    def can_run(self, submission: Submission) -> bool:
        """Whether this machine may run the module: it is isolated, or part of Assay itself."""
        return self.isolation.ok or submission.content_sha256 in bundled_hashes()

    @contextmanager
    def open(self, submission: Submission, upload: bytes) -> Iterator[Run]:
        """Open a submission; everything it started has ended afterwards."""
        if submission.kind is Kind.SCORES:
            yield FileRun(submission, upload)
            return
        with self._unpacked(submission, upload) as folder, ExitStack() as stack:
            backend, layers = self.choose(submission)
            session = backend.start(
                folder, submission.entry_point, submission.weights or None, self.limits
            )
            run = ModuleRun(submission, session, stack, layers, self.shards_of(submission))
            # Entering runs the module's own code, which may fail: the run's log must outlive it.
            stack.callback(session.close)
            yield run

    def choose(self, submission: Submission) -> tuple[Backend, tuple[str, ...]]:
        """The backend a module is run in, and the layers to record.

        Raises:
            PlatformError: `isolation_unavailable`.
        """
        if self.isolation.backend is None and submission.content_sha256 in bundled_hashes():
            return self.own, (OWN_CODE,)
        return self.isolation.require(), self.isolation.layers

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

    @contextmanager
    def _unpacked(self, submission: Submission, upload: bytes) -> Iterator[Path]:
        # A neutral name: the box can read the names of what is bound into it.
        place = self.scratch / "unpacked" / uuid.uuid4().hex
        place.mkdir(parents=True)
        try:
            archive = place / "upload.zip"
            archive.write_bytes(upload)
            content = read_content(archive)
            if content.sha256 != submission.content_sha256:
                raise PlatformError(
                    "upload_changed",
                    f"The stored upload of {submission.submission_id} is not what was submitted.",
                )
            archive.unlink()
            folder = place / "module"
            folder.mkdir()
            content.unpack_to(folder)
            yield folder
        finally:
            shutil.rmtree(place, ignore_errors=True)


@dataclass(frozen=True)
class FileRun:
    """A scores file: nothing is run."""

    submission: Submission
    upload: bytes
    log: str = ""

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """See `Run`."""
        table = parse_scores(
            self.upload,
            Path(self.submission.archive).name,
            benchmark,
            benchmark.answers(data),
            metric=self.submission.name,
            lower_is_better=self.submission.lower_is_better,
        )
        n = len(table.overall)
        tell(Progress(done=n, total=n, rate=0.0, eta_s=0.0, stage="reading"))
        return Scored(benchmark.name, table, AS_SUBMITTED)


class ModuleRun:
    """A scoring module in its box; one box serves all benchmarks of a submission."""

    def __init__(
        self,
        submission: Submission,
        session: ScorerSession,
        stack: ExitStack,
        layers: tuple[str, ...],
        shards: Path,
    ) -> None:
        self._submission = submission
        self._session = session
        self._source = BoxSource(session, submission.content_sha256, until=stack)
        self._layers = layers
        self._shards = shards

    @property
    def log(self) -> str:
        """See `Run`."""
        return self._session.log

    def scores_of(self, benchmark: Benchmark, data: Path | None, tell: Tell) -> Scored:
        """See `Run`."""
        questions = benchmark.questions(data)
        tell(Progress(done=0, total=len(questions.pairs), rate=0.0, eta_s=None, stage="starting"))
        column = run_plan(
            ScoringPlan.of(questions, secrets.token_bytes(32)),
            questions,
            self._source,
            ShardFolder(
                self._shards / benchmark.name,
                run_fingerprint(
                    submission=self._source.fingerprint,
                    benchmark=benchmark.name,
                    revision=benchmark.card.revision,
                ),
            ),
            tell,
            options=IN_PLAN_ORDER,
        )
        return Scored(
            benchmark.name,
            self._table(column),
            self._layers,
            cost_record(column.cost),
            findings_record(column),
        )

    def _table(self, column: ScoreColumn) -> ScoreTable:
        name = self._submission.metrics[0]
        return ScoreTable(
            column.overall.to_frame(name),
            elements={} if column.elements is None else {name: column.elements},
            directions=dict.fromkeys(self._submission.lower_is_better, -1),
        )
