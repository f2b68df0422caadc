"""Backends, which run a submission; the layers of isolation of each, and which this machine has.

Names of layers are stored with every result, so a published one is never given another meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from benchmarks.errors import PlatformError
from evaluator.isolation import failures, processes
from evaluator.isolation.job import Job
from evaluator.isolation.session import ScorerSession


class Layer(StrEnum):
    """One layer, by the name that is stored with results."""

    PROCESS = "process"
    PID = "pid"
    NETWORK = "network"
    IPC = "ipc"
    FILESYSTEM = "filesystem"
    MEMORY_FOLDERS = "sized memory folders"
    KERNEL_SETTINGS = "kernel settings"
    ENVIRONMENT = "environment"
    DESCRIPTORS = "descriptors"
    CAPABILITIES = "capabilities"
    USER_NAMESPACES = "user namespaces"
    KERNEL_UID = "kernel uid"
    SYSTEM_CALLS = "system calls"
    PROCESS_LIMIT = "process limit"
    MEMORY_CGROUP = "memory: cgroup"
    MEMORY_WATCHDOG = "memory: watchdog"
    CPU_CGROUP = "cpu: cgroup"
    CPU_NICENESS = "cpu: niceness"
    LIBRARIES = "libraries"
    GVISOR = "gvisor"
    UNSANDBOXED = "unsandboxed"


LEGEND: Mapping[Layer, str] = MappingProxyType(
    {
        Layer.PROCESS: "The code runs in a process tree of its own, never in the worker's.",
        Layer.PID: "It sees and signals only its own processes, and all of them end with the first.",
        Layer.NETWORK: "No address can be reached: the only interface is an empty loopback.",
        Layer.IPC: "Shared memory and message queues of other processes cannot be reached.",
        Layer.FILESYSTEM: "No folder of this machine is seen beside what scoring needs, "
        "and nothing that is seen can be written to.",
        Layer.MEMORY_FOLDERS: "What can be written is memory of bounded size, gone with the box.",
        Layer.KERNEL_SETTINGS: "Settings of the whole machine, under /proc/sys, cannot be written.",
        Layer.ENVIRONMENT: "No variable of the worker can be read, not even at /proc/1/environ.",
        Layer.DESCRIPTORS: "No file, pipe or socket of the worker is open inside.",
        Layer.CAPABILITIES: "No privilege is held, and none can be gained by running a program.",
        Layer.USER_NAMESPACES: "No further user namespace can be made, so none of its privileges.",
        Layer.KERNEL_UID: "To the kernel it is no root user, and shares its user with no other box.",
        Layer.SYSTEM_CALLS: "Calls that scoring never needs are refused: sockets other than local "
        "ones (vsock reaches a hypervisor past an empty network), tracing, mounts, io_uring, "
        "bpf, keys, and whatever the kernel gains later.",
        Layer.PROCESS_LIMIT: "A fork or thread bomb ends at the limit.",
        Layer.MEMORY_CGROUP: "The kernel bounds the memory of all its processes together.",
        Layer.MEMORY_WATCHDOG: "Its memory is summed ten times a second, and too much ends it; "
        "for a moment it may hold more.",
        Layer.CPU_CGROUP: "The kernel bounds its share of the processors.",
        Layer.CPU_NICENESS: "It runs on few processors and behind other work; this is no bound.",
        Layer.LIBRARIES: "The libraries that submissions may use are found.",
        Layer.GVISOR: "System calls are answered by gVisor instead of this machine's kernel.",
        Layer.UNSANDBOXED: "Nothing isolated it: the operator ran code of their own.",
    }
)

REQUIRED = frozenset(Layer) - {
    Layer.MEMORY_CGROUP,
    Layer.MEMORY_WATCHDOG,
    Layer.CPU_CGROUP,
    Layer.CPU_NICENESS,
    Layer.GVISOR,
    Layer.UNSANDBOXED,
}
"""Without any of these no stranger's code is run."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a real box of this backend was found to be."""

    ok: bool  # whether strangers' code may run in it
    layers: tuple[str, ...] = ()  # what was checked from inside and holds; stored with each result
    reason: str = ""  # why not, in one sentence; empty where it may
    remedy: str = ""  # what an operator can do about it; empty where nothing is needed
    notes: tuple[str, ...] = ()  # what else an operator may want to know
    program: str = ""  # what makes the boxes, by version and origin, where there is a choice


class Backend(Protocol):
    """One way to start a box."""

    @property
    def name(self) -> str:
        """Stable name, stored with each result."""

    def probe(self) -> Probe:
        """Start a box that holds nothing and look around inside; tens of milliseconds."""

    def start(self, job: Job) -> ScorerSession:
        """Start a box; nothing of the submission runs before the session is entered."""


@dataclass(frozen=True, slots=True)
class IsolationStatus:
    """Whether strangers' code can run here; made once at start and passed to who asks."""

    backend: Backend | None  # the first that may run it, or None
    probes: tuple[tuple[str, Probe], ...]  # name and findings of each backend that was looked at

    @property
    def ok(self) -> bool:
        """Whether code can be run here: now, as a box may have failed to end since."""
        return self.backend is not None and not processes.survivors()

    @property
    def isolates(self) -> bool:
        """Whether strangers' code may be run: not where an operator has turned isolation off."""
        return self.ok and Layer.UNSANDBOXED not in self.layers

    @property
    def layers(self) -> tuple[str, ...]:
        """What holds in the chosen backend."""
        return next((probe.layers for _, probe in self.probes if probe.ok), ())

    @property
    def name(self) -> str:
        """What makes the boxes, with version and origin where there is a choice; else empty."""
        program = next((probe.program for _, probe in self.probes if probe.ok), "")
        return program or (self.backend.name if self.backend else "")

    @property
    def notes(self) -> tuple[str, ...]:
        """What else an operator may want to know."""
        return next((probe.notes for _, probe in self.probes if probe.ok), ())

    @property
    def reason(self) -> str:
        """Why no code is taken, in words for the page; empty where it is."""
        if self.ok:
            return ""
        if self.backend is not None:
            return failures.box_not_ended().message
        return " ".join(probe.reason for _, probe in self.probes)

    @property
    def remedy(self) -> str:
        """What an operator can do; empty where nothing is needed."""
        if self.ok:
            return ""
        if self.backend is not None:
            return failures.box_not_ended().hint
        return " ".join(probe.remedy for _, probe in self.probes)

    def require(self) -> Backend:
        """The backend."""
        if self.backend is None or not self.ok:
            message = f"Code cannot be scored on this machine. {self.reason}"
            raise PlatformError("isolation_unavailable", message, self.remedy)
        return self.backend


def isolation_status(
    backends: Iterable[Backend], required: Collection[str] = ()
) -> IsolationStatus:
    """Probe the backends in order of preference, up to the first that holds; no other is made."""
    probes: list[tuple[str, Probe]] = []
    for backend in backends:
        probe = _held_to(backend.probe(), required)
        probes.append((backend.name, probe))
        if probe.ok:
            return IsolationStatus(backend, tuple(probes))
    return IsolationStatus(None, tuple(probes))


def _held_to(probe: Probe, required: Collection[str]) -> Probe:
    lacking = sorted(set(required) - set(probe.layers))
    if not probe.ok or not lacking:
        return probe
    return replace(
        probe,
        ok=False,
        reason=f"This worker was told to require {', '.join(lacking)}, which cannot be had.",
        remedy="See what `doctor` says of it, or do not require it.",
    )
