"""The scorer role: from an upload to scores. Holds no answers where code is run.

A scores file is read and checked; a scoring module is unpacked and asked in a sandbox.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.errors import AssayError, PlatformError, SubmitterError
from benchmarks.questions import QuestionFolder
from benchmarks.schema import Benchmark
from evaluator.bundled import bundled_hashes
from evaluator.environments.cache import EnvironmentCache
from evaluator.environments.naming import operator_names, recorded_lock
from evaluator.hub.model_cache import ModelCache
from evaluator.in_use import in_use
from evaluator.isolation.availability import IsolationChoice, choice_of, machine_isolation
from evaluator.isolation.backend import Backend, IsolationStatus
from evaluator.isolation.job import Job, Limits, ModelFiles
from evaluator.isolation.session import ScorerSession
from evaluator.scorers.fitting import library_problem, this_machine
from evaluator.scorers.registry import ScorerRow, load_rows
from evaluator.scoring.asking import Engine
from evaluator.scoring.engine import LocalEngine
from evaluator.scoring.sandbox import SandboxClient
from evaluator.submission import builtin
from evaluator.submission.archives.archive import taken_in
from evaluator.submission.runs import (
    FileRun,
    ModuleRun,
    ModuleWork,
    Run,
    environment_of,
    fingerprint_of,
)
from evaluator.worker.tasks import WorkerRole
from leaderboard.records import Kind, Submission
from leaderboard.submission_service import SandboxAvailability

log = logging.getLogger(__name__)

OWN_CODE = "our own code, in a process of its own"


@dataclass(frozen=True)
class Sandboxes:
    """How modules are boxed on one machine."""

    isolation: IsolationStatus  # what isolates strangers' code here
    own: Backend  # the backend for the modules that are part of Assay, where nothing isolates
    limits: Limits  # of one submission
    # models of the Hub that modules name; None: those that name any are not run
    model_cache: ModelCache | None = None
    # environments that modules name or bring; None: those that do are not run
    environments: EnvironmentCache | None = None

    def choose(self, submission: Submission) -> tuple[Backend, tuple[str, ...]]:
        """The backend a module is run in, and the layers to record."""
        if not self.isolation.isolates and submission.content_sha256 in bundled_hashes():
            return self.own, (OWN_CODE,)
        return self.isolation.require(), self.isolation.layers

    @contextmanager
    def boxed(
        self, submission: Submission, upload: Path | bytes, scratch: Path
    ) -> Iterator[ScorerSession]:
        """A box in which nothing of the module has run yet; see `starting`."""
        with self.starting(submission, upload, scratch) as start:
            yield start()

    @contextmanager
    def starting(
        self, submission: Submission, upload: Path | bytes, scratch: Path
    ) -> Iterator[Callable[[], ScorerSession]]:
        """Starts boxes in which nothing of the module has run yet; all have ended afterwards."""
        backend, _ = self.choose(submission)
        with (
            self._models(submission) as models,
            unpacked(submission, upload, scratch) as folder,
            self._environment(submission, folder) as environment,
            ExitStack() as started,
        ):
            job = Job(
                folder,
                submission.entry_point,
                submission.weights or None,
                self.limits,
                models=models,
                environment=environment,
            )

            def start() -> ScorerSession:
                session = backend.start(job)
                started.callback(session.close)
                return session

            yield start

    @contextmanager
    def _models(self, submission: Submission) -> Iterator[tuple[ModelFiles, ...]]:
        """What a box cannot fetch for itself; it stays as long as the box may need it."""
        if not submission.models:
            yield ()
            return
        if self.model_cache is None:
            raise PlatformError(
                "no_models_here",
                "This machine has no place for models of the Hub.",
                "Give the worker a folder for them.",
            )
        with self.model_cache.lent(submission.models) as models:
            yield models

    @contextmanager
    def _environment(self, submission: Submission, folder: Path) -> Iterator[Path | None]:
        """The packages of a module; they stay as long as its boxes may need them."""
        if not submission.environment:
            yield None
            return
        if self.environments is None:
            raise PlatformError(
                "no_environments_here",
                "This machine has no place for environments of modules.",
                "Give the worker a folder for them.",
            )
        with self.environments.lent(recorded_lock(submission.environment, folder)) as environment:
            yield environment


@contextmanager
def unpacked(submission: Submission, upload: Path | bytes, scratch: Path) -> Iterator[Path]:
    """The module's folder, removed afterwards."""
    # A neutral name: the box can read the names of what is bound into it.
    place = fresh_below(scratch)
    with ExitStack() as stack:
        stack.enter_context(in_use(place))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        try:
            content = stack.enter_context(taken_in(_on_disk(upload, place), place))
        except SubmitterError as error:
            raise _changed(submission, error.message) from error
        if content.sha256 != submission.content_sha256:
            raise _changed(submission, "Its content has another hash.")
        yield content.folder


def fresh_below(folder: Path) -> Path:
    """A new folder whose name nobody else can find out, as long as this made the one above it.

    Its files can be read by anyone, since a box may run as any user; the way to them is not shown.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o711, parents=True)
    place = folder / uuid.uuid4().hex
    place.mkdir()
    return place


def _on_disk(upload: Path | bytes, place: Path) -> Path:
    if isinstance(upload, Path):
        return upload
    archive = place / "upload.zip"
    archive.write_bytes(upload)
    return archive


def _changed(submission: Submission, why: str) -> PlatformError:
    return PlatformError(
        "upload_changed",
        f"The stored upload of {submission.submission_id} is not what was submitted. {why}",
    )


@dataclass(frozen=True)
class PackedModule:
    """A module that is boxed wherever it is opened; see `ClientSource`. It travels with pickle.

    The archive is read only when it is sent to another machine, with everything else of this.
    """

    submission: Submission  # whose module it is
    upload: Path | bytes  # the archive
    own: Backend  # as in `Sandboxes`
    limits: Limits  # of the submission; each box of it has them
    # what isolates it on the worker's machine, and must wherever else it is opened
    layers: tuple[str, ...]
    hidden: tuple[Path, ...] = ()  # folders that the box must not see
    # as in `Sandboxes`; its folder is one of the machine where the module is opened
    model_cache: ModelCache | None = None
    # what isolates it there: the same as on the worker's machine
    choice: IsolationChoice = IsolationChoice.AUTO
    environments: EnvironmentCache | None = None  # as in `Sandboxes`, on that machine

    def __getstate__(self) -> dict[str, Any]:
        upload = self.upload
        data = upload.read_bytes() if isinstance(upload, Path) else upload
        return {**self.__dict__, "upload": data}

    @property
    def fingerprint(self) -> str:
        """See `ClientSource`."""
        return fingerprint_of(self.submission)

    @contextmanager
    def open(self) -> Iterator[SandboxClient]:
        """See `ClientSource`."""
        isolation = machine_isolation(*self.hidden, choice=self.choice)
        sandboxes = Sandboxes(isolation, self.own, self.limits, self.model_cache, self.environments)
        _, layers = sandboxes.choose(self.submission)
        wanted = () if self.layers == (OWN_CODE,) else self.layers
        if lacking := [layer for layer in wanted if layer not in layers]:
            raise PlatformError(
                "isolation_differs",
                f"A machine of the cluster lacks {', '.join(lacking)}, which the worker's has.",
                "Every machine that runs submissions must isolate them alike; see `doctor`.",
            )
        with (
            tempfile.TemporaryDirectory(prefix="assay-") as scratch,
            sandboxes.boxed(self.submission, self.upload, Path(scratch)) as session,
            session,
        ):
            yield SandboxClient(session, environment_of(self.submission), self.submission.outputs)


LEFT_BEHIND_S = 24 * 3600.0
"""Rest beyond the time of its two boxes."""


@dataclass(frozen=True)
class ScorerRole:
    """Runs scoring modules on this machine."""

    isolation: IsolationStatus  # what isolates strangers' code here
    own: Backend  # the backend for the modules that are part of Assay, where nothing isolates
    scratch: Path  # folder for unpacked modules and finished shards; may be lost at any time
    limits: Limits  # of one submission
    engine: Engine = field(default_factory=LocalEngine)  # carries the batches of modules
    # folder of models of the Hub that modules name; None: one beside the scratch
    models: Path | None = None
    # key of the account that runs this; where nothing isolates, only its own code is run
    operator: str = ""
    # what is asked, where that is exported and no benchmark data are here
    questions: QuestionFolder | None = None
    # environments that modules name or bring; None: those that do are not run
    environments: EnvironmentCache | None = None

    @property
    def model_cache(self) -> ModelCache:
        """Models that modules name, fetched before their boxes start."""
        return ModelCache(self.models or self.scratch.parent / "models")

    @property
    def availability(self) -> SandboxAvailability:
        """Whether strangers' code is taken."""
        return SandboxAvailability(self.isolation.ok, self.isolation.reason, self.isolation.remedy)

    @property
    def layers(self) -> tuple[str, ...]:
        """What isolates strangers' code."""
        return self.isolation.layers

    def can_run(self, submission: Submission) -> bool:
        """Whether this machine may run the module.

        It may where code is isolated, and elsewhere what is part of Assay itself or, if the
        operator chose no isolation, the operator's own.
        """
        if submission.kind is Kind.GENERATIONS:  # no code: that of the metrics is looked at alone
            return True
        if submission.builtin:
            return self._holds(submission.builtin)
        if self.isolation.isolates or submission.content_sha256 in bundled_hashes():
            return True
        return self.isolation.ok and submission.account == self.operator != ""

    @cached_property
    def _rows(self) -> Mapping[str, ScorerRow]:
        return load_rows()

    def _holds(self, row: str) -> bool:
        """Whether a built-in metric fits; one that is not known here is taken, and fails with why."""
        known = self._rows.get(row)
        if known is None:
            return True
        if library_problem(known) is not None:
            return False
        if known.environment and known.environment not in operator_names():
            return False
        # The machines of a cluster are not looked at.
        return self.engine.name != "local" or this_machine().problem(known) is None

    def layers_of(self, submission: Submission) -> tuple[str, ...]:
        """What isolates a module, for the record."""
        return builtin.LAYERS if submission.builtin else self.sandboxes.choose(submission)[1]

    @contextmanager
    def fetched(
        self, submission: Submission, fetch: Callable[[Submission, Path], None]
    ) -> Iterator[Path]:
        """The upload of a submission on this machine, removed afterwards."""
        place = fresh_below(self.scratch / "unpacked")
        try:
            upload = place / Path(submission.archive).name
            with in_use(place):
                fetch(submission, upload)
                yield upload
        finally:
            shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def open(self, submission: Submission, upload: Path) -> Iterator[Run]:
        """Open a submission; everything it started has ended afterwards."""
        if submission.kind is Kind.SCORES:
            yield FileRun(submission, upload)
            return
        with self.open_module(submission, upload, self.shards_of(submission)) as run:
            yield run

    @contextmanager
    def open_module(
        self, submission: Submission, upload: Path, shards: Path
    ) -> Iterator[ModuleRun]:
        """Open a scoring module, whatever it is to be asked."""
        layers = self.layers_of(submission)
        with suppress(FileExistsError):  # scores of submissions that may be private
            (self.scratch / "shards").mkdir(mode=0o700, parents=True)
        work = ModuleWork(submission, layers, shards, self.engine, self.questions)
        if submission.builtin:
            yield ModuleRun(work, builtin.source_from(submission, upload))
            return
        if self.engine.name != "local":
            hidden = (self.scratch.parent,)
            packed = PackedModule(
                submission,
                upload,
                self.own,
                self.limits,
                layers,
                hidden,
                self.model_cache,
                choice_of(self.isolation),
                self.environments,
            )
            yield ModuleRun(work, packed)
            return
        place = self.scratch / "unpacked"
        with self.sandboxes.starting(submission, upload, place) as start, ExitStack() as stack:
            yield ModuleRun.in_sandboxes(work, start, stack)

    @property
    def sandboxes(self) -> Sandboxes:
        """How modules are boxed on this machine."""
        return Sandboxes(self.isolation, self.own, self.limits, self.model_cache, self.environments)

    def shards_of(self, submission: Submission) -> Path:
        """Folder of the finished shards of a submission."""
        return self.scratch / "shards" / submission.submission_id

    def sweep(self, now_s: float) -> None:
        """Remove what workers that were killed left unpacked, long ago."""
        for place in (self.scratch / "unpacked").glob("*"):
            if place.stat().st_mtime < now_s - LEFT_BEHIND_S - 2 * self.limits.job_s:
                shutil.rmtree(place, ignore_errors=True)

    def with_shards(self) -> tuple[str, ...]:
        """Ids of submissions of which shards are kept."""
        return tuple(sorted(place.name for place in (self.scratch / "shards").glob("*")))

    def forget(self, submission: Submission) -> None:
        """Drop what was kept for a restart."""
        shutil.rmtree(self.shards_of(submission), ignore_errors=True)


@dataclass
class CodeSlot:
    """The place on this machine where code runs, one submission after the other."""

    scorers: ScorerRole  # runs scoring modules
    role: WorkerRole = WorkerRole.BOTH  # of the worker; a judge runs nothing
    broken: AssayError | None = None  # why nothing more may run there; empty while all is well

    @property
    def availability(self) -> SandboxAvailability:
        """Whether strangers' code is run here."""
        if not self.role.scores:
            return SandboxAvailability(
                False, "This worker judges and runs no code.", "Another one has to run it."
            )
        if self.broken is not None:
            return SandboxAvailability(False, self.broken.message, self.broken.hint)
        return self.scorers.availability

    def can_run(self, submission: Submission) -> bool:
        """Whether this module may run here; nothing may beside what another left behind."""
        return self.role.scores and self.broken is None and self.scorers.can_run(submission)

    def can_ask(self, benchmark: Benchmark, data: Path | None) -> bool:
        """Whether its questions are here, with their images; those of models bring their own."""
        if benchmark.track == "models":
            return benchmark.has_answers(data)
        questions = self.scorers.questions
        if questions is None:
            return benchmark.has_questions(data)
        try:
            return questions.has(benchmark)
        except PlatformError as error:
            log.warning("Nothing is scored on %s: %s", benchmark.name, error)
            return False
