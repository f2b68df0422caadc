"""Strangers' code in namespaces of its own, made by bubblewrap.

Own pid, network, mount, ipc, uts and user namespaces; a read-only root without this machine's
folders; an empty environment; no capabilities; a filter of system calls; bounds by cgroups where
there are any; and, where the worker is root, a user of its own for every box. The kernel tells a box
that its parent died when the *thread* that started it ends, so a thread lasts as long as it does.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import cgroups, layout, processes, users
from evaluator.isolation.backend import REQUIRED, Layer, Probe
from evaluator.isolation.cgroups import Cgroup, Places
from evaluator.isolation.job import Job, Limits
from evaluator.isolation.layout import BUNDLE_FOLDER, PACKAGE, Interpreter, usually_hidden
from evaluator.isolation.program import (
    NONE_HERE,
    Call,
    Program,
    call,
    diagnose,
    loader_for,
    named_program,
    not_started,
    usual_program,
)
from evaluator.isolation.session import KILLED, Sandbox, ScorerSession, all_gone, one_line
from evaluator.isolation.syscalls import filter_programs
from evaluator.isolation.users import Slot, require_readable, require_way, stage, take_slot

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

    # name or path of the program; None: the machine's own if it is new enough, else the package's
    executable: str | None = None
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
        program = self.program()
        if program is None:
            return Probe(ok=False, reason="Bubblewrap is not installed.", remedy=NONE_HERE)
        return replace(self._probe(program), program=program.label)

    def _probe(self, program: Program) -> Probe:
        interpreter = Interpreter.running_inside()
        command = layout.inspection_command(interpreter, self.hidden)
        sweep(self.places())
        found: list[Finding] = []
        try:
            plan = self._plan(interpreter, None, Limits())
            box = launch(
                program,
                plan,
                command,
                places=self._bounded_places(),
                look=lambda box: found.extend(seen(box)),
            )
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

    def program(self) -> Program | None:
        """The program that makes its boxes."""
        return usual_program() if self.executable is None else named_program(self.executable)

    def start(self, job: Job) -> ScorerSession:
        """Start a box; see `Backend.start`."""
        interpreter = Interpreter.running_inside()
        here = replace(job, device=layout.device_inside(job.device))
        command = layout.runner_command(interpreter, here)
        program = self.program()
        if program is None:
            raise PlatformError("box_not_started", "Bubblewrap is not installed.", NONE_HERE)
        plan = self._plan(interpreter, job, job.limits)
        box = launch(program, plan, command, places=self._bounded_places())
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
_STARTED_AS = ("bwrap", "ld-linux")  # the loader, where it starts bubblewrap
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
    if not (folder / "comm").read_text().startswith(_STARTED_AS):
        return False
    if PACKAGE.encode() not in (folder / "cmdline").read_bytes():
        return False
    lines = (line.split() for line in (folder / "status").read_text().splitlines())
    told = {words[0]: words[1:] for words in lines if words}
    first = len(told["NSpid:"]) > 1 and told["NSpid:"][-1] == "1"
    parent = (processes.PROC / told["PPid:"][0] / "comm").read_text()
    return first and not parent.startswith(_STARTED_AS)


def _may_be_ours(user: int) -> bool:
    me = os.geteuid()
    return user == me or (me == 0 and user in users.UIDS)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _is_shared(pid: int, name: str) -> bool:
    here = Path("/proc/self/ns", name).stat().st_ino
    return Path(f"/proc/{pid}/ns", name).stat().st_ino == here


_FOLLOWS_WITHIN_S = 1.0


class Starter:
    """One thread, which starts one process and then waits until it is let go."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._ready = threading.Event()
        self._over = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="box starter", daemon=True)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process."""
        self._thread.start()
        self._ready.wait()
        if self._process is None:
            raise self._error or RuntimeError("nothing was started")
        return self._process

    def release(self) -> None:
        """End the thread; call it only once the process has ended."""
        self._over.set()

    def _run(self) -> None:
        try:
            self._process = self._start()
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            self._error = error
        self._ready.set()
        if self._process is not None:
            self._over.wait()


@dataclass(frozen=True)
class SandboxResources:
    """What a box has on this machine, beside its processes."""

    slot: Slot | None = None  # its user, where the worker is root
    cgroup: Cgroup | None = None  # its bounds, where the kernel has any
    starter: Starter | None = None  # the thread that it is tied to

    def release(self) -> None:
        """Give all of it back."""
        if self.cgroup is not None:
            self.cgroup.remove()
        if self.slot is not None:
            self.slot.release()
        if self.starter is not None:
            self.starter.release()


@dataclass(frozen=True)
class NamespaceSandbox(Sandbox):
    """Processes in a PID namespace of their own: none can leave it, and all end with its first."""

    init_pidfd: int  # stands for the first process of the namespace, safe against reuse of its pid
    init_pid: int  # the same as a number, for looking at what it sees
    namespace: int  # inode of the namespace
    namespace_fd: int  # keeps it, so that no other namespace is given this inode meanwhile
    memory_folders: tuple[str, ...]  # folders inside whose content is memory
    root_to_kernel: bool  # whether the kernel sees root in it
    # whether its filter of system calls ends with SIGSYS what would kill its runner
    guards_runner: bool = False
    memory_limit: int = 0  # of all its processes together
    # what belongs to the box on this machine and is given back after it
    held: SandboxResources = field(default_factory=SandboxResources)

    @property
    def counts_processes(self) -> bool:
        """See `Sandbox`."""
        return not self.root_to_kernel

    @property
    def bounds_memory(self) -> bool:
        """Whether the kernel bounds the memory of all its processes together."""
        return self.held.cgroup is not None and "memory" in self.held.cgroup.folders

    def out_of_memory(self) -> bool:
        """Whether the kernel ended something in it for lack of memory."""
        return self.held.cgroup is not None and self.held.cgroup.out_of_memory()

    @property
    def bounds_processes(self) -> bool:
        """Whether the kernel bounds its processes and threads together."""
        return self.held.cgroup is not None and "pids" in self.held.cgroup.folders

    def out_of_processes(self) -> bool:
        """Whether the kernel refused it a process or thread."""
        return self.held.cgroup is not None and self.held.cgroup.out_of_processes()

    def killed_from_outside(self) -> bool:
        """Whether it ended by SIGKILL, which its filter lets nothing in it send to the runner."""
        return self.guards_runner and self.exit_code(0) == KILLED

    def pids(self) -> list[int]:
        """Living processes of the box."""
        return processes.pids_in_namespace(self.namespace)

    def memory_bytes(self, pids: Sequence[int]) -> int:
        """Memory they hold together."""
        held = processes.resident_bytes(pids)
        if self.init_pid in pids:  # else it ended, and its number may be another process's by now
            held += processes.mounted_bytes(self.init_pid, self.memory_folders)
            if not self.bounds_memory:
                held += processes.sockets_bytes(self.init_pid)
        if self.bounds_memory:
            return held
        return held + processes.unseen_bytes(pids, self.memory_limit - held)

    def end(self) -> bool:
        """Kill and reap everything; False if something survived."""
        if self.held.cgroup is not None:
            self.held.cgroup.kill()
        kill_by_pidfd(self.init_pidfd)
        # Its parent reaps it and follows at once; if not, it goes the same way.
        if self.exit_code(_FOLLOWS_WITHIN_S) is None:
            self.process.kill()
            self.process.wait()
        return all_gone(self)

    def release(self) -> None:
        """Close the descriptors, and give back what belonged to the box if nothing is left of it."""
        super().release()
        os.close(self.init_pidfd)
        if not self.pids():
            self.held.release()
        os.close(self.namespace_fd)


def kill_by_pidfd(pidfd: int) -> None:
    """SIGKILL; nothing happens if it is gone already."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return


_UNREAL = {"proc", "dev", "sys", "tmp", "usr", "bin", "sbin", "lib", "lib64", "opt", "runner"}


@dataclass(frozen=True, slots=True)
class Plan:
    """One box."""

    interpreter: Interpreter  # by the names it has inside
    limits: Limits  # sizes of what is writable
    job: Job | None = None  # what is run; None for a box that is only looked at
    devices: tuple[Path, ...] = ()  # nodes of a graphics card
    hidden: tuple[Path, ...] = ()  # folders that no box may see
    without: frozenset[Layer] = frozenset()  # layers that are turned off
    root_to_kernel: bool = False  # whether the kernel sees root in the box

    def sources(self) -> tuple[Path, ...]:
        """Files and folders of this machine that the box sees, beside `/usr`."""
        shown = tuple(bind.source for bind in layout.binds(self.interpreter, self.job))
        return shown + (self.hidden if Layer.FILESYSTEM in self.without else ())


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Open files that bubblewrap is told of by number."""

    info: int  # where it says which process is the first inside
    block: int  # where it waits for a word before it runs the command
    filters: tuple[int, ...] = ()  # programs of the system-call filter


def arguments(
    plan: Plan,
    descriptors: Descriptors,
    *,
    usr_links: Sequence[tuple[str, str]],
    placed: Mapping[Path, Path] | None = None,
) -> list[str]:
    """What bubblewrap is told; the order matters to it."""
    return [
        *_walls(plan.without),
        *_mounts(plan, usr_links, placed or {}),
        *("--proc", "/proc", "--dev", "/dev"),
        *_devices(plan.devices),
        *_memory_folders(plan),
        *_seals(plan),
        *("--chdir", layout.SCRATCH),
        *_variables(plan),
        *("--info-fd", str(descriptors.info), "--block-fd", str(descriptors.block)),
        *(word for fd in descriptors.filters for word in ("--add-seccomp-fd", str(fd))),
    ]


def _walls(without: frozenset[Layer]) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
    if Layer.IPC not in without:
        yield "--unshare-ipc"
    if Layer.NETWORK not in without:
        yield "--unshare-net"
    if Layer.USER_NAMESPACES not in without:
        yield "--disable-userns"
    if Layer.ENVIRONMENT not in without:
        yield "--clearenv"
    yield from ("--cap-add" if Layer.CAPABILITIES in without else "--cap-drop", "ALL")
    yield from ("--die-with-parent", "--new-session", "--hostname", "sandbox")
    yield from ("--uid", "1000", "--gid", "1000")


def _mounts(
    plan: Plan, usr_links: Sequence[tuple[str, str]], placed: Mapping[Path, Path]
) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for target, name in usr_links:
        yield from ("--symlink", target, name)
    yield from ("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")
    if Layer.FILESYSTEM in plan.without:
        yield from _whole_machine(plan, placed)
    yield from ("--perms", "0755", "--dir", layout.RUNNER)
    for bind in layout.binds(plan.interpreter, plan.job):
        yield from ("--ro-bind", str(placed.get(bind.source, bind.source)), bind.target)


def _whole_machine(plan: Plan, placed: Mapping[Path, Path]) -> Iterator[str]:
    for entry in sorted(Path("/").iterdir()):
        if entry.is_dir() and entry.name not in _UNREAL | {layout.SCRATCH.strip("/")}:
            yield from ("--ro-bind-try", str(entry), str(entry))
    for folder in plan.hidden:
        if folder.is_relative_to("/tmp"):  # noqa: S108 - the name inside
            yield from ("--ro-bind-try", str(placed.get(folder, folder)), str(folder))


def _devices(nodes: Sequence[Path]) -> Iterator[str]:
    for node in nodes:  # not an ordinary bind, which would make them useless (nodev)
        yield from ("--dev-bind", str(node), str(node))
    if nodes:
        yield from ("--ro-bind", "/sys", "/sys")


def _memory_folders(plan: Plan) -> Iterator[str]:
    bounded = Layer.MEMORY_FOLDERS not in plan.without
    for folder, n_bytes in layout.memory_folders(plan.limits).items():
        if bounded:
            yield from ("--size", str(n_bytes))
        yield from ("--perms", "1777", "--tmpfs", folder)


def _seals(plan: Plan) -> Iterator[str]:
    # Where root is whom the kernel sees in the box, capabilities or not, the settings of the whole
    # machine, under /proc/sys, are writable. A card's driver writes names of threads there.
    if Layer.KERNEL_SETTINGS not in plan.without and (plan.root_to_kernel or not plan.devices):
        yield from ("--remount-ro", "/proc")
    if Layer.MEMORY_FOLDERS not in plan.without:
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _variables(plan: Plan) -> Iterator[str]:
    for name, value in layout.variables(plan.interpreter, plan.limits).items():
        yield from ("--setenv", name, value)


# Bubblewrap makes a namespace of cgroups whose top is the one it is started in, so that it has to be
# in that of the box before.
_AWAITING = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
_NICENESS = 10
_ENDED_FIRST = "1000"

Look = Callable[[NamespaceSandbox], None]


def launch(
    program: Program, plan: Plan, command: list[str], *, places: Places, look: Look | None = None
) -> NamespaceSandbox:
    """Start a box, bound it, look at it, and only then let it run the command."""
    filtered = Layer.SYSTEM_CALLS not in plan.without
    bytecodes = filter_programs(gpu=bool(plan.devices)) if filtered else ()
    with ExitStack() as opened, ExitStack() as given, ExitStack() as unused:
        info, tell_info = _pipe(opened, given)
        wait, let_go = _pipe(given, opened)
        have = _resources(plan, places, unused)
        filters = tuple(_memory(bytecode, given) for bytecode in bytecodes)
        start = _Start(program, plan, command, Descriptors(tell_info, wait, filters))
        starter = Starter(lambda: start.by(have.slot.uid if have.slot else None))
        process = _started(starter)
        given.close()
        held = replace(have, starter=starter)
        box = _adopt(process, info, held, plan)
        unused.pop_all()
        try:
            _bound(box, plan)
            if look is not None:
                look(box)
            os.write(let_go, b"1")
        except BaseException as error:
            box.end()
            printed = process.stderr.read() if process.stderr else b""
            box.release()
            # What belongs to a process that ends is gone, or denied.
            if isinstance(error, OSError):
                raise not_started(one_line(printed) or str(error)) from error
            raise
        return box


def _resources(plan: Plan, places: Places, unused: ExitStack) -> SandboxResources:
    """User and bounds of a box, given back if it does not come to be."""
    drops = os.geteuid() == 0 and Layer.KERNEL_UID not in plan.without
    slot = take_slot() if drops else None
    if slot is not None:
        unused.callback(slot.release)
    cgroup = cgroups.make(places, plan.limits)
    if cgroup is not None:
        unused.callback(cgroup.remove)
    return SandboxResources(slot, cgroup)


@dataclass(frozen=True)
class _Start:
    program: Program
    plan: Plan
    command: list[str]
    descriptors: Descriptors

    def by(self, uid: int | None) -> subprocess.Popen[bytes]:
        """Start it as a user; this thread sees other files afterwards if there is one."""
        placed = {}
        loader = loader_for(self.program, os.geteuid() if uid is None else uid)
        if uid is not None:
            folder = self.program.folder
            sources = self.plan.sources() + ((folder,) if folder else ())
            placed = dict(stage(sources))
            self._require_readable(uid, reached=bool(placed))
        told = arguments(self.plan, self.descriptors, usr_links=_usr_links(), placed=placed)
        bwrap = call(self.program, loader, placed)
        with ExitStack() as given:
            words = b"".join(word.encode() + b"\0" for word in told)
            return self._run(bwrap, _memory(words, given), uid)

    def _require_readable(self, uid: int, *, reached: bool) -> None:
        job = self.plan.job
        if job is not None:
            require_readable(job.folders, uid, reached=reached)
        if not reached:
            folders = (folder for folder, _ in self.plan.interpreter.binds)
            for source in (*folders, BUNDLE_FOLDER, self.program.path):
                require_way(source, uid)

    def _run(self, bwrap: Call, told: int, uid: int | None) -> subprocess.Popen[bytes]:
        """Start bubblewrap with no environment, no telling arguments and no other descriptors.

        It stays in the box as its first process, where its environment and command line can be read.
        """
        open_to_box = Layer.ENVIRONMENT in self.plan.without
        cleared = () if open_to_box else ("/usr/bin/env", "-i")  # of what the shell adds
        return subprocess.Popen(  # noqa: S603 - every word of it is ours
            [*_AWAITING, *cleared, *bwrap.words, "--args", str(told), "--", *self.command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ) if open_to_box else {},
            cwd=bwrap.folder,
            pass_fds=(told, self.descriptors.info, self.descriptors.block,
                      *self.descriptors.filters),
            start_new_session=True,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )  # fmt: skip


def _started(starter: Starter) -> subprocess.Popen[bytes]:
    try:
        return starter.start()
    except OSError as error:
        raise not_started(f"starting it failed: {error}") from error


def _adopt(
    process: subprocess.Popen[bytes], info: int, held: SandboxResources, plan: Plan
) -> NamespaceSandbox:
    """Learn which process is the first inside, so that all of them can be ended from here on."""
    try:
        if held.cgroup is not None:
            held.cgroup.add(process.pid)
        if process.stdin is not None:
            process.stdin.write(b"\n")
        pid = _first_pid(info)
        namespace_fd = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        return NamespaceSandbox(
            process=process,
            init_pidfd=os.pidfd_open(pid),
            init_pid=pid,
            namespace=os.fstat(namespace_fd).st_ino,
            namespace_fd=namespace_fd,
            memory_folders=tuple(layout.MEMORY_FOLDERS),
            root_to_kernel=plan.root_to_kernel,
            guards_runner=Layer.SYSTEM_CALLS not in plan.without,
            memory_limit=plan.limits.memory_bytes,
            held=held,
        )
    except (ValueError, OSError) as error:
        process.kill()
        _, printed = process.communicate()
        if held.starter is not None:
            held.starter.release()
        raise not_started(one_line(printed) or str(error)) from error


def _bound(box: NamespaceSandbox, plan: Plan) -> None:
    """Have it end before others; where its cgroup does not bound processors, run behind others."""
    if not box.bounds_memory:
        # Whatever it may hold that nobody counts: it goes before anything else of this machine.
        with suppress(OSError):  # a help where the watchdog fails, and no bound
            Path(f"/proc/{box.init_pid}/oom_score_adj").write_text(_ENDED_FIRST)
    cgroup = box.held.cgroup
    if (cgroup is None or "cpu" not in cgroup.folders) and Layer.CPU_NICENESS not in plan.without:
        # Only root may lower the niceness of a worker that runs behind others itself.
        niceness = max(_NICENESS, os.getpriority(os.PRIO_PROCESS, box.init_pid))
        os.setpriority(os.PRIO_PROCESS, box.init_pid, niceness)
        os.sched_setaffinity(box.init_pid, _some_processors(plan.limits.threads, box.init_pid))


def _some_processors(number: int, turn: int) -> frozenset[int]:
    """As many of those that the worker may use, others for each box."""
    usable = sorted(os.sched_getaffinity(0))
    return frozenset(usable[(turn + i) % len(usable)] for i in range(number))


def _first_pid(info: int) -> int:
    data = b""
    poll = select.poll()
    poll.register(info, select.POLLIN)
    while not data.rstrip().endswith(b"}"):
        if not poll.poll(_SET_UP_S * 1000):
            raise TimeoutError
        part = os.read(info, 4096)
        if not part:
            break
        data += part
    return int(json.loads(data)["child-pid"])


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Ends for reading and writing, each closed with what it belongs to."""
    read, write = os.pipe2(os.O_CLOEXEC)
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _memory(content: bytes, opened: ExitStack) -> int:
    descriptor = os.memfd_create("box")
    opened.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _usr_links() -> list[tuple[str, str]]:
    """`/bin`, `/lib` and so on, as links into /usr, as every current distribution has them."""
    names = ("bin", "sbin", "lib", "lib64")
    return [(f"usr/{name}", f"/{name}") for name in names if Path("/usr", name).is_dir()]
