"""Arguments of a container engine: pure, so that every word of them can be read in a test."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation import layout
from evaluator.isolation.containers.engine import EngineKind
from evaluator.isolation.interpreter import BUNDLE_FOLDER, Interpreter
from evaluator.isolation.job import Job
from evaluator.isolation.layout import Bind
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
    """One container, before it is started.

    Attributes:
        name: unique on this machine.
        supervisor: who it belongs to, for those who sweep.
        image: reference that the engine has.
        uid: user and group inside.
        limits: of the job.
        binds: what it sees of this machine.
        variables: all of its environment.
        command: what runs in it.
        profile: file with the system-call filter.
        device: `cpu`, or `cuda` with or without a number.
        runtime: what starts it; None for the engine's usual.
        gvisor: whether that is gVisor, which needs some memory and processes itself.
    """

    name: str
    supervisor: str
    image: str
    uid: int
    limits: Limits
    binds: tuple[Bind, ...]
    variables: Mapping[str, str]
    command: tuple[str, ...]
    profile: Path
    device: str = "cpu"
    runtime: str | None = None
    gvisor: bool = False
    processors: int = field(default_factory=lambda: os.cpu_count() or 1)


def memory_bound(limits: Limits, *, gvisor: bool) -> int:
    """Bytes that the kernel holds a container to."""
    return limits.memory_bytes + (_GVISOR_BYTES if gvisor else 0)


def process_bound(limits: Limits, *, gvisor: bool) -> int:
    """Processes and threads that the kernel lets a container have."""
    return limits.processes + (_GVISOR_PROCESSES if gvisor else _OWN_PROCESSES)


def arguments(kind: EngineKind, plan: BoxPlan) -> list[str]:
    """What creates it: the words behind the client's name and options.

    Raises:
        PlatformError: `device_unavailable`.
    """
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
    """What a container sees of this machine.

    Args:
        interpreter: by the names it has inside.
        job: what is run; None for a box that is only looked at.
        machine: whether Python and its libraries are this machine's.
        exists: of the files that some machines lack, those that this one has.
    """
    ours = [Bind(BUNDLE_FOLDER / f"{FIRST}.py", f"{layout.RUNNER}/{FIRST}.py")]
    if machine:
        ours += [Bind(Path("/usr"), "/usr"), *(Bind(path, str(path)) for path in exists)]
    return (*ours, *layout.binds(interpreter, job))


def with_first(command: Sequence[str], *options: str) -> tuple[str, ...]:
    """A command of the bundle, run by the first process of a container.

    Args:
        command: as `layout` gives it.
        options: of the first process: `--wait`, `--pipes`.
    """
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
    # Its own default can be above what this machine allows.
    processes = process_bound(plan.limits, gvisor=plan.gvisor)
    yield from ("--ulimit", f"nproc={processes}:{processes}")


def _device(kind: EngineKind, device: str) -> tuple[str, ...]:
    """A graphics card, by the NVIDIA container toolkit.

    Raises:
        PlatformError: `device_unavailable`, neither the processor nor such a card.
    """
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
