"""Plan of a container: the arguments of its engine, pure, and two pipes past the engine.

An engine would copy every byte three times. The pipes have names, are bound into the container as
files, and are never on a disk; their names are gone once both sides have them open. gVisor lets no
pipe of this machine in; there the attached client carries the protocol.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.containers.engine import EngineKind
from evaluator.isolation.job import Job
from evaluator.isolation.layout import BUNDLE_FOLDER, RUNNER, Bind, Interpreter
from evaluator.isolation.limits import MIB, Limits

FIRST = "first"
"""Module of the bundle that is the first process of a container."""

BOX_LABEL = "assay.box"
SUPERVISOR_LABEL = "assay.supervisor"

_OWN_PROCESSES = 8
"""Beside the scorer's: the first one, and those that come and go while a container starts."""
_GVISOR_PROCESSES = 1024
"""Its own threads, and room to be stopped by the watchdog: at the bound it would crash instead."""
_GVISOR_BYTES = 64 * MIB
_FILES_PER_FOLDER = 100_000


@dataclass(frozen=True)
class BoxPlan:
    """One container, before it is started."""

    name: str  # unique on this machine
    supervisor: str  # who it belongs to, for those who sweep
    image: str  # reference that the engine has
    uid: int  # user and group inside
    limits: Limits  # of the job
    binds: tuple[Bind, ...]  # what it sees of this machine
    variables: Mapping[str, str]  # all of its environment
    command: tuple[str, ...]  # what runs in it
    profile: Path  # file with the system-call filter
    device: str = "cpu"  # `cpu`, or `cuda` with or without a number
    runtime: str | None = None  # what starts it; None for the engine's usual
    gvisor: bool = False  # whether that is gVisor, which needs some memory and processes itself
    processors: int = field(default_factory=lambda: os.cpu_count() or 1)


def memory_bound(limits: Limits, *, gvisor: bool) -> int:
    """Bytes that the kernel holds a container to."""
    return limits.memory_bytes + (_GVISOR_BYTES if gvisor else 0)


def process_bound(limits: Limits, *, gvisor: bool) -> int:
    """Processes and threads that the kernel lets a container have."""
    return limits.processes + (_GVISOR_PROCESSES if gvisor else _OWN_PROCESSES)


def arguments(kind: EngineKind, plan: BoxPlan) -> list[str]:
    """What creates it: the words behind the client's name and options."""
    return [
        *("create", "--interactive", "--pull", "never", "--name", plan.name),
        *("--label", f"{BOX_LABEL}=1", "--label", f"{SUPERVISOR_LABEL}={plan.supervisor}"),
        *("--network", "none", "--ipc", "private", "--cgroupns", "private"),
        *("--hostname", "sandbox", "--log-driver", "none", "--no-healthcheck"),
        *("--user", f"{plan.uid}:{plan.uid}", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--security-opt", f"seccomp={plan.profile}"),
        *("--read-only", "--workdir", layout.SCRATCH),
        *_limits(plan),
        *_memory_folders(kind, plan.limits),
        *_only(kind, plan),
        *_device(kind, plan.device),
        *(word for bind in plan.binds for word in ("--mount", _mount(bind))),
        # Variables of the image and of the engine do not reach what runs.
        *("--entrypoint", "/usr/bin/env", plan.image, "-i"),
        *(f"{name}={value}" for name, value in plan.variables.items()),
        *plan.command,
    ]


def binds(
    interpreter: Interpreter, job: Job | None, *, machine: bool, exists: Iterable[Path]
) -> tuple[Bind, ...]:
    """What a container sees of this machine."""
    ours = [Bind(BUNDLE_FOLDER / f"{FIRST}.py", f"{layout.RUNNER}/{FIRST}.py")]
    if machine:
        ours += [Bind(Path("/usr"), "/usr"), *(Bind(path, str(path)) for path in exists)]
    return (*ours, *layout.binds(interpreter, job))


def with_first(command: Sequence[str], *options: str) -> tuple[str, ...]:
    """A command of the bundle, run by the first process of a container."""
    module = list(command).index(layout.RUNNER) + 1
    return (*command[:module], FIRST, *options, *command[module:])


def _limits(plan: BoxPlan) -> Iterator[str]:
    limits = plan.limits
    memory = str(memory_bound(limits, gvisor=plan.gvisor))
    yield from ("--memory", memory, "--memory-swap", memory)
    yield from ("--pids-limit", str(process_bound(limits, gvisor=plan.gvisor)))
    yield from ("--cpus", str(min(limits.threads, plan.processors)))
    yield from ("--ulimit", f"nofile={limits.open_files}:{limits.open_files}")
    yield from ("--ulimit", "core=0:0")


def _memory_folders(kind: EngineKind, limits: Limits) -> Iterator[str]:
    for folder, n_bytes in layout.memory_folders(limits).items():
        if folder == "/dev/shm":  # noqa: S108 - a name inside
            yield from ("--shm-size", str(n_bytes))
            continue
        options = f"rw,exec,nosuid,nodev,mode=1777,size={n_bytes}"
        if kind is EngineKind.DOCKER:  # Podman knows no such option
            options += f",nr_inodes={_FILES_PER_FOLDER}"
        yield from ("--tmpfs", f"{folder}:{options}")
    # Engines put a folder of message queues here that can be written to.
    yield from ("--tmpfs", "/dev/mqueue:ro,noexec,nosuid,nodev,size=4096,mode=0555")


def _only(kind: EngineKind, plan: BoxPlan) -> Iterator[str]:
    """What the two say differently, or only one of them does unasked."""
    if kind is EngineKind.DOCKER:
        yield from ("--runtime", plan.runtime) if plan.runtime else ()
        yield from ("--dns", "192.0.2.1")  # nobody's, instead of this machine's name servers
        return
    yield from ("--http-proxy=false", "--read-only-tmpfs=false", "--systemd=false")
    yield from ("--no-hosts", "--image-volume=ignore")
    # Its own default can be above what this machine allows. Above the other bound, which tells.
    processes = process_bound(plan.limits, gvisor=plan.gvisor) + _OWN_PROCESSES
    yield from ("--ulimit", f"nproc={processes}:{processes}")


def _device(kind: EngineKind, device: str) -> tuple[str, ...]:
    """A graphics card, by the NVIDIA container toolkit."""
    if device == "cpu":
        return ()
    family, _, number = device.partition(":")
    if family != "cuda" or not (number or "0").isdigit():
        raise PlatformError(
            "device_unavailable",
            f"A container cannot be given the device {device!r}.",
            "Score on the CPU, or on cuda or cuda:NUMBER.",
        )
    if kind is EngineKind.DOCKER:
        return ("--gpus", f"device={number or '0'}")
    return ("--device", f"nvidia.com/gpu={number or '0'}")


def _mount(bind: Bind) -> str:
    """One `--mount`, which is a row of comma-separated values."""
    row = io.StringIO()
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}", "readonly"]
    csv.writer(row, lineterminator="").writerow(fields)
    return row.getvalue()


PIPE_NAMES = ("requests", "replies")
_PIPE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Pipes:
    """This side of two pipes."""

    requests: int  # descriptor that is written to
    replies: int  # descriptor that is read from
    binds: tuple[Bind, ...]  # the pipes, as the container sees them

    def settle(self) -> None:
        """Once the other side reads: hold nothing but the end that is written to.

        Until then this side holds both, so that neither waits for the other to open its end; from
        now on it is told when nobody reads any more.
        """
        writing = os.open(f"/proc/self/fd/{self.requests}", os.O_WRONLY | os.O_NONBLOCK)
        os.dup2(writing, self.requests, inheritable=False)
        os.close(writing)

    def close(self) -> None:
        """Let go of both."""
        os.close(self.requests)
        os.close(self.replies)


def named_pipes(folder: Path) -> Pipes:
    """Pipes with names in a folder, to be removed once a box has them open."""
    paths = [folder / each for each in PIPE_NAMES]
    with ExitStack() as undo:
        opened = []
        for path, way in zip(paths, (os.O_RDWR, os.O_RDONLY), strict=True):
            os.mkfifo(path)
            path.chmod(0o666)  # for the user of the box; the folder is for this one alone
            opened.append(os.open(path, way | os.O_NONBLOCK | os.O_CLOEXEC))
            undo.callback(os.close, opened[-1])
            with suppress(PermissionError):  # where this user has many large pipes already
                fcntl.fcntl(opened[-1], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        undo.pop_all()
    targets = (f"{RUNNER}/{each}" for each in PIPE_NAMES)
    return Pipes(opened[0], opened[1], tuple(map(Bind, paths, targets)))
