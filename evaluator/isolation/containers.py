"""Strangers' code in containers, by Docker or Podman, with gVisor below where it is set up.

The engine must be on this machine: a box sees files of it, and is looked at from outside.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import Popen

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.backend import REQUIRED, Layer, Probe
from evaluator.isolation.cgroups import Bounds, Cgroup, bounds, cgroup_of, held_bytes
from evaluator.isolation.container_engine import (
    BOX_LABEL,
    SUPERVISOR_LABEL,
    BoxPlan,
    Engine,
    EngineError,
    Pipes,
    arguments,
    binds,
    diagnose,
    memory_bound,
    named_pipes,
    process_bound,
    ready_image,
    with_first,
)
from evaluator.isolation.inside.first import RUNNER_KILLED
from evaluator.isolation.job import Job, Limits
from evaluator.isolation.layout import CPU, Interpreter, device_inside, usually_hidden
from evaluator.isolation.processes import PROC, marks_folder, started, user_of
from evaluator.isolation.session import KILLED, Sandbox, ScorerSession, one_line
from evaluator.isolation.syscalls import oci_profile
from evaluator.isolation.users import LOCKS, Slot, require_readable, take_slot

_SOME_MACHINES_LACK = (Path("/etc/ld.so.cache"),)


@dataclass(frozen=True)
class Containers:
    """A backend for strangers' code."""

    engine: Engine  # that runs the containers
    name: str  # stable name, stored with each result
    gvisor: bool = False  # whether the engine's runtime is gVisor
    # folders that a box must not see; a probe that sees one refuses
    hidden: tuple[Path, ...] = field(default_factory=usually_hidden)

    def probe(self) -> Probe:
        """Remove what killed workers left, start a real box, and look around inside and outside."""
        try:
            sweep_folders()
            sweep(self.engine)
            version = self.engine.version()
            interpreter = Interpreter.running_inside()
            command = layout.inspection_command(interpreter, self.hidden)
            with self._without_job(with_first(command, "--wait")) as box:
                return looked_at(box, _limits_of(None), gvisor=self.gvisor, version=version)
        except EngineError as error:
            reason, remedy = diagnose(self.engine.kind, error.said)
        except PlatformError as error:
            reason, remedy = error.message, error.hint
        return Probe(ok=False, reason=reason, remedy=remedy)

    def start(self, job: Job) -> ScorerSession:
        """Start a box; see `Backend.start`."""
        try:
            return self._start(job)
        except EngineError as error:
            raise self._not_started(error.said) from error

    def _start(self, job: Job) -> ScorerSession:
        inside = replace(job, device=device_inside(job.device))
        command = layout.runner_command(Interpreter.running_inside(), inside)
        with start_folder() as folder:
            profile = _filter_file(folder, gpu=job.device != CPU)
            pipes = None if self.gvisor else named_pipes(folder)
            box = self._spawn(
                job, with_first(command, *([] if pipes is None else ["--pipes"])), profile, pipes
            )
            return self._session(box, job)

    def _session(self, box: ContainerSandbox, job: Job) -> ScorerSession:
        with ExitStack() as undo:
            undo.callback(box.release)
            undo.callback(box.end)
            session = ScorerSession(box, job.limits, bounds_data=job.device == CPU)
            undo.pop_all()
        try:
            running(box)
            if box.known.cgroup is None:
                raise PlatformError(
                    "box_not_started",
                    "A container started, but its processes cannot be seen from here.",
                    "Run the worker on the engine's own machine, with the host's process ids (--pid host) "
                    "where it is in a container itself.",
                )
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
    def _without_job(self, command: tuple[str, ...]) -> Iterator[ContainerSandbox]:
        with start_folder() as folder:
            box = self._spawn(None, command, _filter_file(folder, gpu=False), None)
            try:
                yield box
            finally:
                box.end()
                box.release()

    def _spawn(
        self, job: Job | None, command: tuple[str, ...], profile: Path, pipes: Pipes | None
    ) -> ContainerSandbox:
        with ExitStack() as undo:
            if pipes is not None:
                undo.callback(pipes.close)
            slot = _slot()
            undo.callback(slot.release)
            plan = self._plan(job, command, profile, slot.uid)
            if pipes is not None:
                plan = replace(plan, binds=(*plan.binds, *pipes.binds))
            if job is not None:
                require_readable(job.folders, slot.uid, reached=True)
            process = self._attached(plan)
            undo.pop_all()  # all of it is the box's from now on
        return ContainerSandbox(process, self.engine, plan.name, pipes, slot.release)

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
        interpreter = Interpreter.running_inside()
        limits = _limits_of(job)
        return BoxPlan(
            name=f"assay-box-{os.getpid()}-{secrets.token_hex(6)}",
            supervisor=this_supervisor(),
            image=ready_image(self.engine),
            uid=uid,
            limits=limits,
            binds=binds(
                interpreter,
                job,
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


def docker(environ: Mapping[str, str], host: str | None = None) -> Containers:
    """Boxes by Docker."""
    return Containers(Engine.docker(environ, host), "docker")


def podman(environ: Mapping[str, str]) -> Containers:
    """Boxes by Podman, as its own configuration sets it up."""
    return Containers(Engine.podman(environ), "podman")


def gvisor(environ: Mapping[str, str], host: str | None = None) -> Containers:
    """Boxes by Docker with gVisor below."""
    return Containers(Engine.docker(environ, host, runtime="runsc"), "gvisor", gvisor=True)


def _limits_of(job: Job | None) -> Limits:
    return Limits() if job is None else job.limits


def _filter_file(folder: Path, *, gpu: bool) -> Path:
    """The system-call filter as a file, which the client reads while the box starts."""
    path = folder / "filter.json"
    path.write_text(json.dumps(oci_profile(gpu=gpu)))
    return path


def _slot() -> Slot:
    """A user for one box; an engine without root maps it to one of the worker's own."""
    return take_slot(LOCKS if os.geteuid() == 0 else marks_folder().parent / "users")


_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.05
_NAMESPACES = ("ipc", "mnt", "net", "pid", "uts")
_REMEDY = (
    "Keep the project, its store and home folders out of /usr, which every box sees, and see that "
    "the engine has control groups for memory, processes and processors."
)

ANSWERED_BY_GVISOR = frozenset({Layer.SYSTEM_CALLS, Layer.USER_NAMESPACES})
"""With gVisor no call reaches this machine's kernel, and a namespace inside is gVisor's own."""


class ClientEndedError(EngineError):
    """The attached client ended before there was a container."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What this machine says about a running container."""

    uid: int  # as whom its first process runs
    shared: tuple[str, ...]  # namespaces that it has in common with the worker
    bounds: Bounds | None  # what the kernel holds it to; None where it cannot be seen
    command: str  # how that process was started


def looked_at(box: ContainerSandbox, limits: Limits, *, gvisor: bool, version: str) -> Probe:
    """Look at a box whose first process waits for a byte, then let it look around inside."""
    try:
        outside = _outside(running(box), box)
    except ClientEndedError as error:
        _, said = box.process.communicate()
        raise EngineError(one_line(said)) from error
    printed = _inspection(box)
    found = {name: fault for name, held, fault in _rows(printed) if held != "yes"}
    held = [name for name, is_held, _ in _rows(printed) if is_held == "yes"]
    if not held:
        return Probe(
            ok=False,
            reason="A container started, but nothing could be checked inside it.",
            remedy="Look at the Python installation of the worker.",
        )
    # What both sides judge, this one knows better.
    for layer, fault in seen_outside(outside, limits, gvisor=gvisor).items():
        found.pop(layer, None)
        if fault:
            found[layer] = fault
        else:
            held.append(layer)
    return verdict(held, found, gvisor=gvisor, version=version)


def seen_outside(outside: Outside, limits: Limits, *, gvisor: bool) -> Mapping[Layer, str]:
    """Layers that only this side can judge, and what is wrong with each; empty for nothing."""
    held = outside.bounds or Bounds(None, None, None)
    judged = {
        Layer.PROCESS: "",
        Layer.IPC: _kept_apart(outside.shared, gvisor=gvisor),
        Layer.KERNEL_UID: "" if outside.uid else "to the kernel, its user is root",
        Layer.PROCESS_LIMIT: _bounded(
            held.processes, process_bound(limits, gvisor=gvisor), "processes"
        ),
        Layer.MEMORY_CGROUP: _bounded(held.memory, memory_bound(limits, gvisor=gvisor), "memory"),
        Layer.CPU_CGROUP: _bounded(held.processors, limits.threads, "processors"),
    }
    if gvisor:
        is_gvisor = "runsc" in outside.command.split("\0")[0]
        judged[Layer.GVISOR] = "" if is_gvisor else "it is not gVisor that runs it"
    return judged


def verdict(held: list[str], faults: Mapping[str, str], *, gvisor: bool, version: str) -> Probe:
    """Whether strangers' code may run in such a box."""
    excused = ANSWERED_BY_GVISOR if gvisor else frozenset()
    told = {name: fault for name, fault in faults.items() if name not in excused}
    missing = REQUIRED - excused - set(held) - set(told)
    told |= {layer: f"{layer} was not checked" for layer in sorted(missing)}
    layers = (*dict.fromkeys(held), version)
    if told:
        reason = f"Inside a container, not all is as it must be: {'; '.join(told.values())}."
        return Probe(ok=False, layers=layers, reason=reason, remedy=_REMEDY)
    return Probe(ok=True, layers=layers)


def running(box: ContainerSandbox) -> int:
    """The first process of a box that is being started."""
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline:
        if pid := box.adopt():
            return pid
        if box.process.poll() is not None:
            raise ClientEndedError("the container ended at once")
        time.sleep(_LOOK_EVERY_S)
    raise EngineError(f"no container within {_WITHIN_S:g} s")


def _outside(pid: int, box: ContainerSandbox) -> Outside:
    cgroup = box.known.cgroup
    try:
        return Outside(
            uid=user_of(pid),
            shared=_shared(pid, box),
            bounds=None if cgroup is None else bounds(cgroup),
            command=(PROC / str(pid) / "cmdline").read_text(errors="replace"),
        )
    except (FileNotFoundError, ProcessLookupError) as error:
        message = "its processes cannot be seen from the worker, which must be on the same machine"
        raise EngineError(message) from error


def _shared(pid: int, box: ContainerSandbox) -> tuple[str, ...]:
    """Namespaces in common with this process, as the kernel says, or else the engine."""
    try:
        return tuple(
            name
            for name in _NAMESPACES
            if (PROC / str(pid) / "ns" / name).stat().st_ino
            == (PROC / "self/ns" / name).stat().st_ino
        )
    except PermissionError:  # a user other than root may not look
        mode = box.engine.call(
            "container", "inspect", "--format", "{{.HostConfig.IpcMode}}", box.name
        )
        return () if mode == "private" else ("ipc",)


def _kept_apart(shared: tuple[str, ...], *, gvisor: bool) -> str:
    # Of these, gVisor needs none of this machine's: it has its own inside.
    return f"it shares namespaces: {', '.join(shared)}" if shared and not gvisor else ""


def _inspection(box: ContainerSandbox) -> str:
    """What `inspection` prints, once it may begin."""
    process = box.process
    process.stdin.write(b"!")  # type: ignore[union-attr] # it has its three pipes
    # Its input stays open: to its first process, the end of it is the end of the worker.
    kept, process.stdin = process.stdin, None
    try:
        printed, _ = process.communicate(timeout=_WITHIN_S)
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"a container did not answer within {_WITHIN_S:g} s") from error
    finally:
        process.stdin = kept
    return printed.decode(errors="replace")


def _rows(printed: str) -> list[tuple[str, str, str]]:
    rows = [line.split("\t", 2) for line in printed.splitlines()]
    return [(row[0], row[1], row[2]) for row in rows if len(row) == 3]


def _bounded(held: float | None, wanted: float, what: str) -> str:
    """What is wrong with a bound, as it was read back."""
    if held is not None and held <= wanted:
        return ""
    return f"the kernel does not bound its {what}"


_LISTED = f'{{{{.Id}}}} {{{{index .Config.Labels "{SUPERVISOR_LABEL}"}}}}'
_PREFIX = "assay-start-"


def this_supervisor() -> str:
    """What names this process for good: number, start, and the namespace that counts both."""
    return f"{os.getpid()}-{started(os.getpid())}-{_namespace()}"


@contextmanager
def start_folder(place: Path | None = None) -> Iterator[Path]:
    """A folder for files that a container needs only while it starts; removed afterwards."""
    prefix = f"{_PREFIX}{this_supervisor()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as name:
        yield Path(name)


def sweep_folders(place: Path | None = None) -> int:
    """Remove the `start_folder`s of this user's workers that live no longer; how many there were."""
    listed = (place or Path(tempfile.gettempdir())).glob(f"{_PREFIX}*")
    left = [
        folder
        for folder in listed
        if _is_own_folder(folder) and _is_gone(folder.name.removeprefix(_PREFIX).rpartition("-")[0])
    ]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)  # another worker may sweep as well
    return len(left)


def sweep(engine: Engine) -> int:
    """Remove the boxes of workers that live no longer; how many there were."""
    listed = engine.call("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={BOX_LABEL}=1")
    left = [name for name in listed.split() if _is_orphaned(engine, name)]
    for name in left:
        engine.remove(name)
    return len(left)


def _is_orphaned(engine: Engine, name: str) -> bool:
    try:
        told = engine.call("container", "inspect", "--format", _LISTED, name)
    except EngineError:  # gone since it was listed
        return False
    return _is_gone(told.partition(" ")[2])


def _is_own_folder(path: Path) -> bool:
    """No link, and nobody else's: anyone may write in a folder for temporary files."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_gone(supervisor: str) -> bool:
    """Whether a worker named by `this_supervisor` lives no longer; False where that is not told."""
    words = supervisor.split("-")
    if len(words) != 3 or not words[0].isdigit():
        return False
    pid, began, namespace = words
    # In another namespace the number says nothing here; that worker's own machine sweeps it.
    return namespace == _namespace() and str(started(int(pid))) != began


def _namespace() -> str:
    return str((PROC / "self/ns/pid").stat().st_ino)


_GONE_WITHIN_S = 10.0
_CLIENT_FOLLOWS_WITHIN_S = 2.0
_ENDED_LOOK_EVERY_S = 0.02
_STARVED_TOLD_WITHIN_S = 1.5


@dataclass
class _Known:
    """What is learnt about a container while it runs."""

    cgroup: Cgroup | None = None
    ended_by_us: bool = False
    let_go: bool = False
    starved: bool | None = None


@dataclass(frozen=True)
class ContainerSandbox(Sandbox):
    """One container.

    Its processes and their memory are what its cgroups count. With gVisor that is the whole
    sandbox: gVisor's own processes and memory, among them everything the scorer holds.
    """

    engine: Engine  # that runs it
    name: str  # of the container
    pipes: Pipes | None = None  # that carry the protocol, where it does not go through the client
    let_go: Callable[[], None] = lambda: None  # called once when nothing of it is left
    known: _Known = field(default_factory=_Known)

    @property
    def request_fd(self) -> int:
        """Where requests are written."""
        return self.pipes.requests if self.pipes else super().request_fd

    @property
    def reply_fd(self) -> int:
        """Where replies are read."""
        return self.pipes.replies if self.pipes else super().reply_fd

    @property
    def bounds_memory(self) -> bool:
        """The kernel does; a box where it does not is not started."""
        return self.known.cgroup is not None

    def adopt(self) -> int:
        """Learn where its processes are counted; the process id of its first, 0 if there is none."""
        found = self.engine.container(self.name)
        if found is None or not found.pid:
            return 0
        self.known.cgroup = cgroup_of(found.pid)
        return found.pid

    def pids(self) -> list[int]:
        """Living processes of the box."""
        return sorted(self.known.cgroup.pids()) if self.known.cgroup else []

    def memory_bytes(self, pids: Sequence[int]) -> int:  # noqa: ARG002 - the kernel's own sum
        """Memory they hold together, files in memory included."""
        if self.known.cgroup is None:
            return 0
        return held_bytes(self.known.cgroup)

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in it for lack of memory."""
        if self.known.starved is None:
            if self.known.cgroup and self.known.cgroup.out_of_memory():
                self.known.starved = True
            elif self.process.poll() is not None and not self.known.ended_by_us:
                self.known.starved = self._ended_starved()
        return bool(self.known.starved)

    @property
    def bounds_processes(self) -> bool:
        """The kernel does; of gVisor's own threads, too, so that it cannot tell."""
        return self.known.cgroup is not None

    def out_of_processes(self) -> bool:
        """Whether the kernel refused it a process or thread, as far as its cgroup is still there."""
        return self.known.cgroup is not None and self.known.cgroup.out_of_processes()

    def killed_from_outside(self) -> bool:
        """Whether the first process was killed, which nothing beside it can."""
        return super().exit_code(0) == KILLED and not self.known.ended_by_us

    def exit_code(self, timeout_s: float) -> int | None:
        """Exit code as a shell gives it, or None while it runs."""
        code = super().exit_code(timeout_s)
        return KILLED if code == RUNNER_KILLED else code

    def end(self) -> bool:
        """Kill and remove it; False if something of it is left."""
        self.known.ended_by_us = True
        gone = self._removed()
        if self.exit_code(_CLIENT_FOLLOWS_WITHIN_S) is None:
            self.process.kill()
            self.process.wait()
        if gone and not self.known.let_go:
            self.known.let_go = True
            self.let_go()
        return gone

    def release(self) -> None:
        """Close the descriptors."""
        super().release()
        if self.pipes is not None:
            self.pipes.close()

    def _ended_starved(self) -> bool:
        """Whether the engine says so; it may learn of it a moment after the client has ended."""
        if self.process.returncode not in {KILLED, RUNNER_KILLED}:
            return False
        deadline = time.monotonic() + _STARVED_TOLD_WITHIN_S
        while True:
            try:
                found = self.engine.container(self.name)
            except EngineError:
                return False
            if found is None or found.out_of_memory or time.monotonic() >= deadline:
                return found is not None and found.out_of_memory
            time.sleep(_ENDED_LOOK_EVERY_S * 5)

    def _removed(self) -> bool:
        deadline = time.monotonic() + _GONE_WITHIN_S
        while True:
            try:
                self.engine.remove(self.name)
                if self.engine.container(self.name) is None and not self.pids():
                    return True
            except EngineError:  # busy with it, or not answering
                pass
            if time.monotonic() > deadline:
                return False
            time.sleep(_ENDED_LOOK_EVERY_S)
