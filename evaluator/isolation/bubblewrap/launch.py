"""Plan and launch of a box by bubblewrap, bounded before anything runs in it."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import cgroups, layout
from evaluator.isolation.bubblewrap.sandbox import NamespaceSandbox, SandboxResources, Starter
from evaluator.isolation.cgroups import Places
from evaluator.isolation.job import Job
from evaluator.isolation.layers import Layer
from evaluator.isolation.layout import BUNDLE_FOLDER, Interpreter
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.log import one_line
from evaluator.isolation.syscalls import filter_programs
from evaluator.isolation.users import require_readable, require_way, stage, take_slot

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


_NAMESPACES = (
    "this system does not let bubblewrap make namespaces",
    "Set sysctl user.max_user_namespaces above 0 and, on Debian, "
    "kernel.unprivileged_userns_clone=1; in a container also allow the calls unshare, mount "
    "and pivot_root.",
)
_READING = (
    "the user that a box runs as cannot read the Python installation",
    "Install Python and the virtual environment where others may read them, or let them: "
    "chmod -R o+rX on their folders.",
)
_REMEDIES: tuple[tuple[str, str, str], ...] = (
    (
        "setting up uid map",
        "this system does not let bubblewrap use user namespaces",
        "On Ubuntu 23.10 or later install an AppArmor profile for bubblewrap that holds `userns,`, "
        "or set sysctl kernel.apparmor_restrict_unprivileged_userns=0.",
    ),
    (
        "mount proc on",
        "the worker runs in a container that hides parts of /proc",
        "Run the worker outside a container, or start its container with unmasked paths "
        "(--security-opt systempaths=unconfined).",
    ),
    ("creating new namespace failed", *_NAMESPACES),
    ("no permissions to create", *_NAMESPACES),
    ("unknown option", "bubblewrap is older than 0.8", "Install bubblewrap 0.8 or later."),
    ("can't find source path", *_READING),
    ("execvp", *_READING),
    (
        "seccomp",
        "this kernel does not take the system-call filter",
        "Use a kernel that was built with CONFIG_SECCOMP_FILTER.",
    ),
)


def diagnose(printed: str) -> tuple[str, str]:
    """Reason and remedy for what bubblewrap printed when it failed."""
    said = printed.lower()
    for sign, reason, remedy in _REMEDIES:
        if sign in said:
            return f"{reason.capitalize()} ({printed}).", remedy
    told = printed or "it printed nothing"
    return f"Bubblewrap could not start a box ({told}).", "Run bubblewrap by hand to see why."


def not_started(printed: str) -> PlatformError:
    """The error for what bubblewrap printed."""
    reason, remedy = diagnose(printed)
    return PlatformError("box_not_started", reason, remedy)


# Bubblewrap makes a namespace of cgroups whose top is the one it is started in, so that it has to be
# in that of the box before.
_AWAITING = ("/bin/sh", "-c", 'read -r _ && exec "$@"', "sh")
_SET_UP_S = 30.0
_NICENESS = 10
_ENDED_FIRST = "1000"

Look = Callable[[NamespaceSandbox], None]


def nothing(box: NamespaceSandbox) -> None:
    """A look that sees nothing."""


def launch(
    executable: str, plan: Plan, command: list[str], *, places: Places, look: Look = nothing
) -> NamespaceSandbox:
    """Start a box, bound it, look at it, and only then let it run the command."""
    filtered = Layer.SYSTEM_CALLS not in plan.without
    programs = filter_programs(gpu=bool(plan.devices)) if filtered else ()
    with ExitStack() as opened, ExitStack() as given, ExitStack() as unused:
        info, tell_info = _pipe(opened, given)
        wait, let_go = _pipe(given, opened)
        have = _resources(plan, places, unused)
        filters = tuple(_memory(program, given) for program in programs)
        start = _Start(executable, plan, command, Descriptors(tell_info, wait, filters))
        starter = Starter(lambda: start.by(have.slot.uid if have.slot else None))
        process = _started(starter)
        given.close()
        held = replace(have, starter=starter)
        box = _adopt(process, info, held, plan)
        unused.pop_all()
        try:
            _bound(box, plan)
            look(box)
            os.write(let_go, b"1")
        except BaseException as error:
            box.end()
            printed = process.stderr.read() if process.stderr else b""
            box.release()
            if isinstance(error, (ProcessLookupError, FileNotFoundError, BrokenPipeError)):
                raise not_started(one_line(printed)) from error
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
    executable: str
    plan: Plan
    command: list[str]
    descriptors: Descriptors

    def by(self, uid: int | None) -> subprocess.Popen[bytes]:
        """Start it as a user; this thread sees other files afterwards if there is one."""
        placed = {}
        if uid is not None:
            sources = self.plan.sources()
            placed = dict(stage(sources))
            self._require_readable(uid, reached=bool(placed))
        told = arguments(self.plan, self.descriptors, usr_links=_usr_links(), placed=placed)
        with ExitStack() as given:
            words = b"".join(word.encode() + b"\0" for word in told)
            return self._run(_memory(words, given), uid)

    def _require_readable(self, uid: int, *, reached: bool) -> None:
        job = self.plan.job
        if job is not None:
            shown = (job.folder, *(model.folder for model in job.models))
            require_readable(shown, uid, reached=reached)
        if not reached:
            for source in (*(folder for folder, _ in self.plan.interpreter.binds), BUNDLE_FOLDER):
                require_way(source, uid)

    def _run(self, told: int, uid: int | None) -> subprocess.Popen[bytes]:
        """Start bubblewrap with no environment, no telling arguments and no other descriptors.

        It stays in the box as its first process, where its environment and command line can be read.
        """
        open_to_box = Layer.ENVIRONMENT in self.plan.without
        cleared = () if open_to_box else ("/usr/bin/env", "-i")  # of what the shell adds
        return subprocess.Popen(  # noqa: S603 - every word of it is ours
            [*_AWAITING, *cleared, self.executable, "--args", str(told), "--", *self.command],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ) if open_to_box else {},
            cwd="/",
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
            counts_processes=not plan.root_to_kernel,
            guards_runner=Layer.SYSTEM_CALLS not in plan.without,
            memory_limit=plan.limits.memory_bytes,
            held=held,
        )
    except (
        ValueError,
        FileNotFoundError,
        ProcessLookupError,
        BrokenPipeError,
        TimeoutError,
    ) as error:
        process.kill()
        _, printed = process.communicate()
        if held.starter is not None:
            held.starter.release()
        raise not_started(one_line(printed)) from error


def _bound(box: NamespaceSandbox, plan: Plan) -> None:
    """Have it end before others; where its cgroup does not bound processors, run behind others."""
    if not box.bounds_memory:
        # Whatever it may hold that nobody counts: it goes before anything else of this machine.
        with suppress(OSError):  # a help where the watchdog fails, and no bound
            Path(f"/proc/{box.init_pid}/oom_score_adj").write_text(_ENDED_FIRST)
    cgroup = box.held.cgroup
    if (cgroup is None or "cpu" not in cgroup.folders) and Layer.CPU_NICENESS not in plan.without:
        os.setpriority(os.PRIO_PROCESS, box.init_pid, _NICENESS)
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
