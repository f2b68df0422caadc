"""Strangers' code in namespaces of its own, made by bubblewrap.

Own pid, network, mount, ipc, uts and user namespaces; a read-only root without this machine's
folders; an empty environment; no capabilities; a filter of system calls; bounds by cgroups where
there are any; and, where the worker is root, a user of its own for every box.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import cgroups, layout, users
from evaluator.isolation.backend import Probe
from evaluator.isolation.bubblewrap.launch import Look, Plan, diagnose, launch, not_started, nothing
from evaluator.isolation.bubblewrap.sandbox import NamespaceSandbox
from evaluator.isolation.cgroups import Places
from evaluator.isolation.job import Job
from evaluator.isolation.layers import REQUIRED, Layer
from evaluator.isolation.layout import PACKAGE, Interpreter, usually_hidden
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising import processes
from evaluator.isolation.supervising.log import one_line
from evaluator.isolation.supervising.session import ScorerSession

_SET_UP_S = 30.0
_UNBOUNDED = 1 << 40
_REMEDY = (
    "Keep the project, its store and home folders out of /usr, which every box sees, and see what "
    "`python -m evaluator doctor` says about this machine."
)

SWITCHABLE = frozenset(
    {
        Layer.NETWORK, Layer.IPC, Layer.FILESYSTEM, Layer.MEMORY_FOLDERS, Layer.KERNEL_SETTINGS,
        Layer.ENVIRONMENT, Layer.CAPABILITIES, Layer.USER_NAMESPACES, Layer.KERNEL_UID,
        Layer.SYSTEM_CALLS, Layer.PROCESS_LIMIT, Layer.MEMORY_CGROUP, Layer.MEMORY_WATCHDOG,
        Layer.CPU_CGROUP, Layer.CPU_NICENESS,
    }
)  # fmt: skip
"""Layers that can be turned off one by one, to see what each of them stops."""


@dataclass(frozen=True)
class Bubblewrap:
    """The backend for strangers' code."""

    executable: str = "bwrap"  # how bubblewrap is called here
    # folders that a box must not see; a probe that sees one refuses
    hidden: tuple[Path, ...] = field(default_factory=usually_hidden)
    name: str = "bubblewrap"
    # layers that are turned off, of `SWITCHABLE`: for tests only. A probe then refuses
    without: frozenset[Layer] = frozenset()
    places: Callable[[], Places] = cgroups.machine_cgroups  # where cgroups may be made

    def __post_init__(self) -> None:
        if fixed := self.without - SWITCHABLE:
            raise ValueError(f"{', '.join(sorted(fixed))} cannot be turned off")

    def probe(self) -> Probe:
        """Start a real box without a submission and look at it, from inside and from outside."""
        if shutil.which(self.executable) is None:
            return Probe(
                ok=False,
                reason="Bubblewrap is not installed.",
                remedy="Install it (apt install bubblewrap) and start the worker again.",
            )
        interpreter = Interpreter.running_inside()
        command = layout.inspection_command(interpreter, self.hidden)
        sweep(self.places())
        found: list[Finding] = []
        try:
            plan = self._plan(interpreter, None, Limits())
            box = self._spawn(plan, command, lambda box: found.extend(seen(box)))
        except PlatformError as error:
            return Probe(ok=False, reason=error.message, remedy=error.hint)
        try:
            told, printed = box.process.communicate(timeout=_SET_UP_S)
        except subprocess.TimeoutExpired:
            return Probe(
                ok=False, reason="A box did not answer in time.", remedy="Look at the machine."
            )
        finally:
            box.end()
            box.release()
        if not told:
            reason, remedy = diagnose(one_line(printed))
            return Probe(ok=False, reason=reason, remedy=remedy)
        return judge(told.decode(errors="replace"), found, without=self.without)

    def start(self, job: Job) -> ScorerSession:
        """Start a box; see `Backend.start`."""
        interpreter = Interpreter.running_inside()
        here = replace(job, device=layout.device_inside(job.device))
        command = layout.runner_command(interpreter, here)
        box = self._spawn(self._plan(interpreter, job, job.limits), command)
        limits = _loosened(job.limits, self.without)
        session = ScorerSession(box, limits, bounds_data=job.device == layout.CPU)
        try:
            return session.await_box()
        except PlatformError as error:
            raise not_started(" ".join(session.log.split())) from error

    def _plan(self, interpreter: Interpreter, job: Job | None, limits: Limits) -> Plan:
        return Plan(
            interpreter=interpreter,
            limits=limits,
            job=job,
            devices=layout.device_nodes(job.device) if job else (),
            hidden=self.hidden,
            without=self.without,
            root_to_kernel=os.geteuid() == 0 and Layer.KERNEL_UID in self.without,
        )

    def _spawn(self, plan: Plan, command: list[str], look: Look = nothing) -> NamespaceSandbox:
        executable = shutil.which(self.executable)
        if executable is None:
            raise PlatformError("box_not_started", "Bubblewrap is not installed.")
        return launch(executable, plan, command, places=self._bounded_places(), look=look)

    def _bounded_places(self) -> Places:
        places = self.places()
        off = {Layer.MEMORY_CGROUP: "memory", Layer.PROCESS_LIMIT: "pids", Layer.CPU_CGROUP: "cpu"}
        gone = {controller for layer, controller in off.items() if layer in self.without}
        folders = {name: folder for name, folder in places.folders.items() if name not in gone}
        return Places(places.version, folders)


def judge(
    printed: str, found: Sequence[Finding] = (), *, without: frozenset[Layer] = frozenset()
) -> Probe:
    """What the findings about a box mean."""
    rows = [line.split("\t", 2) for line in printed.splitlines()]
    if not rows or any(len(row) != 3 for row in rows):
        return Probe(
            ok=False, reason="A box started, but nothing could be checked inside it.",
            remedy="Look at the Python installation of the worker.",
        )  # fmt: skip
    inside = [Finding(name, "" if held == "yes" else fault) for name, held, fault in rows]
    findings = [*found, *inside]
    missing = {row.layer for row in findings if row.fault} | without
    layers = tuple(dict.fromkeys(str(r.layer) for r in findings if r.layer not in missing))
    faults = [row.fault for row in findings if row.fault]
    faults += [f"{layer} was turned off" for layer in sorted(without)]
    if lacking := sorted(REQUIRED - {*layers, *missing}):
        faults.append(f"nothing was found out about {', '.join(lacking)}")
    if faults:
        reason = f"Inside a box, not all is as it must be: {'; '.join(faults)}."
        return Probe(ok=False, layers=layers, reason=reason, remedy=_REMEDY)
    return Probe(ok=True, layers=layers, notes=kernel_notes())


def _loosened(limits: Limits, without: frozenset[Layer]) -> Limits:
    """Limits without those that were turned off."""
    if Layer.PROCESS_LIMIT in without:
        limits = replace(limits, processes=_UNBOUNDED)
    if Layer.MEMORY_WATCHDOG in without:
        limits = replace(limits, memory_bytes=_UNBOUNDED)
    return limits


_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION = 1
_BUBBLEWRAP = "bwrap"
_NAMESPACES = ("pid", "net", "mnt", "uts", "user")


@dataclass(frozen=True, slots=True)
class Finding:
    """A layer that was looked at."""

    layer: str  # its name
    fault: str = ""  # what is wrong with it; empty where it holds


def seen(box: NamespaceSandbox) -> Iterator[Finding]:
    """Look at a box that has started and runs nothing yet."""
    shared = [name for name in _NAMESPACES if _is_shared(box.init_pid, name)]
    yield Finding(Layer.PROCESS, f"it shares namespaces: {', '.join(shared)}" if shared else "")
    yield Finding(
        Layer.IPC, "it shares the ipc namespace" if _is_shared(box.init_pid, "ipc") else ""
    )
    told = Path(f"/proc/{box.init_pid}/environ").read_bytes()
    yield Finding(Layer.ENVIRONMENT, "its first process has the worker's variables" if told else "")
    root = processes.user_of(box.init_pid) == 0
    yield Finding(Layer.KERNEL_UID, "the kernel sees root in it" if root else "")
    bounded = box.held.cgroup.folders if box.held.cgroup else {}
    yield Finding(Layer.MEMORY_CGROUP if "memory" in bounded else Layer.MEMORY_WATCHDOG)
    yield Finding(Layer.CPU_CGROUP if "cpu" in bounded else Layer.CPU_NICENESS)


def kernel_notes() -> tuple[str, ...]:
    """What this kernel could do besides, and is not asked to; what a box learns for lack of it."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    notes = [f"Landlock {version} is there, and not used"] if version > 0 else []
    if not users.hides_names():
        notes.append(
            "A box can read names of folders of this machine in its mount table: to hide them takes "
            "a worker that is root and a kernel with overlayfs"
        )
    return tuple(notes)


def sweep(places: Places) -> None:
    """End and remove what workers left that were killed."""
    cgroups.sweep(places)
    for pid in unreferenced():
        _kill(pid)
    if os.geteuid() == 0:
        for pid in processes.pids_where(lambda pid: processes.user_of(pid) in users.UIDS):
            _end_if_left(pid)


def _end_if_left(pid: int) -> None:
    try:
        user = processes.user_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return
    with users.left_by_nobody(user) as left:
        if left:
            _kill(pid)


def unreferenced() -> list[int]:
    """First processes of boxes whose worker was killed in the very moment that it started them.

    Bubblewrap follows its worker at once, and may leave its child waiting for a word from it. Such a
    child has nothing of a submission in it, and never will; it only has to be taken away.
    """
    return processes.pids_where(_is_orphan)


def _is_orphan(pid: int) -> bool:
    if not _may_be_ours(processes.user_of(pid)):
        return False  # somebody else's, whatever it is made to look like
    folder = processes.PROC / str(pid)
    if (folder / "comm").read_text().strip() != _BUBBLEWRAP:
        return False
    if PACKAGE.encode() not in (folder / "cmdline").read_bytes():
        return False
    lines = (line.split() for line in (folder / "status").read_text().splitlines())
    told = {words[0]: words[1:] for words in lines if words}
    first = len(told["NSpid:"]) > 1 and told["NSpid:"][-1] == "1"
    parent = (processes.PROC / told["PPid:"][0] / "comm").read_text().strip()
    return first and parent != _BUBBLEWRAP


def _may_be_ours(user: int) -> bool:
    me = os.geteuid()
    return user == me or (me == 0 and user in users.UIDS)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _is_shared(pid: int, name: str) -> bool:
    here = Path("/proc/self/ns", name).stat().st_ino
    return Path(f"/proc/{pid}/ns", name).stat().st_ino == here
