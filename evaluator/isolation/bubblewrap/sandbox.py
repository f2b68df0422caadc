"""A box in namespaces: the thread it is tied to, what it holds on this machine, its processes.

The kernel tells a box that its parent died when the *thread* that started it ends, so a box is
started by a thread that lasts as long as it does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evaluator.isolation.cgroups import Cgroup
from evaluator.isolation.supervising import processes
from evaluator.isolation.supervising.sandbox import KILLED, Piped, all_gone
from evaluator.isolation.users import Slot

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
class NamespaceSandbox(Piped):
    """Processes in a PID namespace of their own: none can leave it, and all end with its first."""

    init_pidfd: int  # stands for the first process of the namespace, safe against reuse of its pid
    init_pid: int  # the same as a number, for looking at what it sees
    namespace: int  # inode of the namespace
    namespace_fd: int  # keeps it, so that no other namespace is given this inode meanwhile
    memory_folders: tuple[str, ...]  # folders inside whose content is memory
    counts_processes: bool  # see `Sandbox`
    # whether its filter of system calls ends with SIGSYS what would kill its runner
    guards_runner: bool = False
    memory_limit: int = 0  # of all its processes together
    # what belongs to the box on this machine and is given back after it
    held: SandboxResources = field(default_factory=SandboxResources)

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
