"""An uploaded scoring module, unpacked and put into a box: on this machine, or on an actor's."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.bundled import bundled_hashes
from evaluator.hub.model_shelf import ModelShelf
from evaluator.in_use import in_use
from evaluator.isolation.backend import Backend, IsolationStatus
from evaluator.isolation.gate import IsolationChoice, machine_isolation
from evaluator.isolation.job import Job, ModelFiles
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.session import ScorerSession
from evaluator.scoring.sandbox import SandboxClient
from evaluator.submission.archives.archive import taken_in
from leaderboard.records import Submission

OWN_CODE = "our own code, in a process of its own"


@dataclass(frozen=True)
class Boxes:
    """How modules are boxed on one machine.

    Attributes:
        isolation: what isolates strangers' code here.
        own: the backend for the modules that are part of Assay, where nothing isolates.
        limits: of one submission.
        shelf: models of the Hub that modules name; None: those that name any are not run.
    """

    isolation: IsolationStatus
    own: Backend
    limits: Limits
    shelf: ModelShelf | None = None

    def choose(self, submission: Submission) -> tuple[Backend, tuple[str, ...]]:
        """The backend a module is run in, and the layers to record.

        Raises:
            PlatformError: `isolation_unavailable`.
        """
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
        """Starts boxes in which nothing of the module has run yet; all have ended afterwards.

        Args:
            submission: whose module it is.
            upload: the archive, as the store keeps it.
            scratch: folder to unpack in.

        Raises:
            PlatformError: `isolation_unavailable`, `upload_changed`, `no_models_here`.
            SubmitterError: `model_missing`, `model_unsafe`, `model_too_large`.
            TransientError: `hub_unreachable`.
        """
        backend, _ = self.choose(submission)
        with (
            self._models(submission) as models,
            unpacked(submission, upload, scratch) as folder,
            ExitStack() as started,
        ):
            job = Job(
                folder,
                submission.entry_point,
                submission.weights or None,
                self.limits,
                models=models,
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
        if self.shelf is None:
            raise PlatformError(
                "no_models_here",
                "This machine has no place for models of the Hub.",
                "Give the worker a folder for them.",
            )
        with self.shelf.lent(submission.models) as models:
            yield models


@contextmanager
def unpacked(submission: Submission, upload: Path | bytes, scratch: Path) -> Iterator[Path]:
    """The module's folder, removed afterwards.

    Args:
        submission: whose module it is.
        upload: the archive, as the store keeps it.
        scratch: folder to unpack in.

    Raises:
        PlatformError: `upload_changed`, the archive is not what was submitted.
    """
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

    Args:
        folder: made if it is not there.
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

    Attributes:
        submission: whose module it is.
        upload: the archive.
        own: as in `Boxes`.
        limits: of the submission; each box of it has them.
        layers: what isolates it on the worker's machine, and must wherever else it is opened.
        hidden: folders that the box must not see.
        shelf: as in `Boxes`; its folder is one of the machine where the module is opened.
        choice: what isolates it there: the same as on the worker's machine.
    """

    submission: Submission
    upload: Path | bytes
    own: Backend
    limits: Limits
    layers: tuple[str, ...]
    hidden: tuple[Path, ...] = ()
    shelf: ModelShelf | None = None
    choice: IsolationChoice = IsolationChoice.AUTO

    def __getstate__(self) -> dict[str, Any]:
        upload = self.upload
        data = upload.read_bytes() if isinstance(upload, Path) else upload
        return {**self.__dict__, "upload": data}

    @property
    def fingerprint(self) -> str:
        """See `ClientSource`."""
        return self.submission.content_sha256

    @contextmanager
    def open(self) -> Iterator[SandboxClient]:
        """See `ClientSource`.

        Raises:
            PlatformError: `isolation_differs`, another machine isolates less.
            SubmitterError: `import_failed`, `init_failed`, ...
        """
        isolation = machine_isolation(*self.hidden, choice=self.choice)
        boxes = Boxes(isolation, self.own, self.limits, self.shelf)
        _, layers = boxes.choose(self.submission)
        wanted = () if self.layers == (OWN_CODE,) else self.layers
        if lacking := [layer for layer in wanted if layer not in layers]:
            raise PlatformError(
                "isolation_differs",
                f"A machine of the cluster lacks {', '.join(lacking)}, which the worker's has.",
                "Every machine that runs submissions must isolate them alike; see `doctor`.",
            )
        with (
            tempfile.TemporaryDirectory(prefix="assay-") as scratch,
            boxes.boxed(self.submission, self.upload, Path(scratch)) as session,
            session,
        ):
            yield SandboxClient(session)
