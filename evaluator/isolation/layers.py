"""The layers of isolation by their stable names, and what each of them stops.

The names are stored with every result, so a name that was published is never given another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


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
