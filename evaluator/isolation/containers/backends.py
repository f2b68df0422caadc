"""Strangers' code in containers, by Docker or Podman, with gVisor below where it is set up.

The engine must be on this machine: a box sees files of it, and is looked at from outside.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import Popen

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.backend import Probe
from evaluator.isolation.bubblewrap import graphics
from evaluator.isolation.bubblewrap.slots import LOCKS, Slot, take_slot
from evaluator.isolation.bubblewrap.staging import require_readable
from evaluator.isolation.containers.arguments import BoxPlan, arguments, binds, with_first
from evaluator.isolation.containers.box import ContainerBox
from evaluator.isolation.containers.engine import Engine, EngineError
from evaluator.isolation.containers.image import Image, Skeleton
from evaluator.isolation.containers.pipes import Pipes, named_pipes
from evaluator.isolation.containers.probe import looked_at, running
from evaluator.isolation.containers.seccomp_profile import oci_profile
from evaluator.isolation.containers.sweep import start_folder, sweep, sweep_folders, this_supervisor
from evaluator.isolation.containers.trouble import diagnose
from evaluator.isolation.job import Job
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising import broken
from evaluator.isolation.supervising.session import ScorerSession
from evaluator.isolation.unseen import usually_hidden

_SOME_MACHINES_LACK = (Path("/etc/ld.so.cache"),)


@dataclass(frozen=True)
class Containers:
    """A backend for strangers' code.

    Attributes:
        engine: that runs the containers.
        name: stable name, stored with each result.
        image: what they start from.
        gvisor: whether the engine's runtime is gVisor.
        hidden: folders that a box must not see; a probe that sees one refuses.
    """

    engine: Engine
    name: str
    image: Image = field(default_factory=Skeleton)
    gvisor: bool = False
    hidden: tuple[Path, ...] = field(default_factory=usually_hidden)

    def probe(self) -> Probe:
        """Remove what killed workers left, start a real box, and look around inside and outside."""
        try:
            sweep_folders()
            sweep(self.engine)
            version = self.engine.version()
            interpreter = self.image.interpreter(self.engine)
            command = layout.inspection_command(interpreter, self.hidden)
            with self._without_job(with_first(command, "--wait")) as box:
                return looked_at(box, _limits_of(None), gvisor=self.gvisor, version=version)
        except EngineError as error:
            reason, remedy = diagnose(self.engine.kind, error.said)
        except PlatformError as error:
            reason, remedy = error.message, error.hint
        return Probe(ok=False, reason=reason, remedy=remedy)

    def start(self, job: Job) -> ScorerSession:
        """Start a box; see `Backend.start`.

        Raises:
            PlatformError: `box_not_started`, `device_unavailable`, `not_readable` or
                `no_user_for_box`, with reason and remedy.
        """
        try:
            return self._start(job)
        except EngineError as error:
            raise self._not_started(error.said) from error

    def _start(self, job: Job) -> ScorerSession:
        inside = replace(job, device=graphics.inside(job.device))
        command = layout.runner_command(self.image.interpreter(self.engine), inside)
        with start_folder() as folder:
            profile = _filter_file(folder, gpu=job.device != graphics.CPU)
            pipes = None if self.gvisor else named_pipes(folder)
            box = self._spawn(job, with_first(command, *_options(pipes)), profile, pipes)
            return self._session(box, job)

    def _session(self, box: ContainerBox, job: Job) -> ScorerSession:
        with ExitStack() as undo:
            undo.callback(box.release)
            undo.callback(box.end)
            session = ScorerSession(box, job.limits, bounds_data=job.device == graphics.CPU)
            undo.pop_all()
        try:
            running(box)
            if box.known.cgroup is None:
                raise _not_here()
            session.await_box()
            if box.pipes is not None:
                box.pipes.settle()
        except BaseException as error:
            session.close()
            if isinstance(error, EngineError | PlatformError) and session.log:
                # What the engine or the interpreter printed says more.
                raise self._not_started(" ".join(session.log.split())) from error
            raise
        return session

    @contextmanager
    def _without_job(self, command: tuple[str, ...]) -> Iterator[ContainerBox]:
        with start_folder() as folder:
            box = self._spawn(None, command, _filter_file(folder, gpu=False), None)
            try:
                yield box
            finally:
                box.end()
                box.release()

    def _spawn(
        self, job: Job | None, command: tuple[str, ...], profile: Path, pipes: Pipes | None
    ) -> ContainerBox:
        with ExitStack() as undo:
            if pipes is not None:
                undo.callback(pipes.close)
            slot = _slot()
            undo.callback(slot.release)
            plan = self._plan(job, command, profile, slot.uid)
            if pipes is not None:
                plan = replace(plan, binds=(*plan.binds, *pipes.binds))
            if job is not None:
                folders = (job.folder, *(model.folder for model in job.models))
                require_readable(folders, slot.uid, reached=True)
            process = self._attached(plan)
            undo.pop_all()  # all of it is the box's from now on
        return ContainerBox(process, self.engine, plan.name, pipes, slot.release)

    def _attached(self, plan: BoxPlan) -> Popen[bytes]:
        """Create a container and start it; where either fails, nothing of it stays."""
        words = arguments(self.engine.kind, plan)
        try:
            self.engine.call(*words)
            return self.engine.attached(plan.name)
        except BaseException:
            # An engine that gave no answer in time may have created it all the same.
            with suppress(EngineError, PlatformError):
                self.engine.remove(plan.name)
            raise

    def _plan(self, job: Job | None, command: tuple[str, ...], profile: Path, uid: int) -> BoxPlan:
        interpreter = self.image.interpreter(self.engine)
        limits = _limits_of(job)
        return BoxPlan(
            name=f"assay-box-{os.getpid()}-{secrets.token_hex(6)}",
            supervisor=this_supervisor(),
            image=self.image.ready(self.engine),
            uid=uid,
            limits=limits,
            binds=binds(
                interpreter,
                job,
                machine=self.image.binds_this_machine,
                exists=[path for path in _SOME_MACHINES_LACK if path.exists()],
            ),
            variables=layout.variables(interpreter, limits),
            command=command,
            profile=profile,
            device="cpu" if job is None else job.device,
            runtime=self.engine.runtime,
            gvisor=self.gvisor,
        )

    def _not_started(self, printed: str) -> PlatformError:
        reason, remedy = diagnose(self.engine.kind, printed)
        return PlatformError("box_not_started", reason, remedy)


def docker(
    environ: Mapping[str, str], host: str | None = None, image: Image | None = None
) -> Containers:
    """Boxes by Docker."""
    return Containers(Engine.docker(environ, host), "docker", image or Skeleton())


def podman(environ: Mapping[str, str], image: Image | None = None) -> Containers:
    """Boxes by Podman, as its own configuration sets it up."""
    return Containers(Engine.podman(environ), "podman", image or Skeleton())


def gvisor(
    environ: Mapping[str, str], host: str | None = None, image: Image | None = None
) -> Containers:
    """Boxes by Docker with gVisor below."""
    engine = Engine.docker(environ, host, runtime="runsc")
    return Containers(engine, "gvisor", image or Skeleton(), gvisor=True)


def _limits_of(job: Job | None) -> Limits:
    return Limits() if job is None else job.limits


def _options(pipes: Pipes | None) -> tuple[str, ...]:
    return () if pipes is None else ("--pipes",)


def _filter_file(folder: Path, *, gpu: bool) -> Path:
    """The system-call filter as a file, which the client reads while the box starts."""
    path = folder / "filter.json"
    path.write_text(json.dumps(oci_profile(gpu=gpu)))
    return path


def _slot() -> Slot:
    """A user for one box; an engine without root maps it to one of the worker's own."""
    return take_slot(LOCKS if os.geteuid() == 0 else broken.marks_folder().parent / "users")


def _not_here() -> PlatformError:
    return PlatformError(
        "box_not_started",
        "A container started, but its processes cannot be seen from here.",
        "Run the worker on the engine's own machine, with the host's process ids (--pid host) "
        "where it is in a container itself.",
    )
