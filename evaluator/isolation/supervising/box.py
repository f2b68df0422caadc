"""A started process, or tree of processes, that a session talks to: the part that differs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evaluator.isolation import memory
from evaluator.isolation.bubblewrap.cgroups import Cgroup
from evaluator.isolation.bubblewrap.slots import Slot
from evaluator.isolation.bubblewrap.starter import Starter
from evaluator.isolation.supervising import processes

_GONE_WITHIN_S = 10.0
_FOLLOWS_WITHIN_S = 1.0
_LOOK_EVERY_S = 0.01


class Box(Protocol):
    """What a session needs of the processes it talks to."""

    @property
    def request_fd(self) -> int:
        """Where requests are written."""

    @property
    def reply_fd(self) -> int:
        """Where replies are read."""

    @property
    def log_fd(self) -> int:
        """Where output is read."""

    @property
    def counts_processes(self) -> bool:
        """Whether the kernel's process limit counts this box alone, not all of the user's."""

    @property
    def bounds_memory(self) -> bool:
        """Whether the kernel bounds the memory of all its processes together."""

    def out_of_memory(self) -> bool:
        """Whether the kernel ended something in it for lack of memory."""

    def pids(self) -> list[int]:
        """Processes of the box that are alive, however they detached themselves."""

    def memory_bytes(self, pids: Sequence[int]) -> int:
        """Memory that these processes of the box hold together."""

    def end(self) -> bool:
        """Kill and reap everything; False if something survived."""

    def release(self) -> None:
        """Close the descriptors, once nobody reads them any more."""

    def exit_code(self, timeout_s: float) -> int | None:
        """Exit code as a shell gives it (128 + signal), or None while it runs."""


@dataclass(frozen=True)
class Held:
    """What a box has on this machine, beside its processes.

    Attributes:
        slot: its user, where the worker is root.
        cgroup: its bounds, where the kernel has any.
        starter: the thread that it is tied to.
    """

    slot: Slot | None = None
    cgroup: Cgroup | None = None
    starter: Starter | None = None

    def release(self) -> None:
        """Give all of it back."""
        if self.cgroup is not None:
            self.cgroup.remove()
        if self.slot is not None:
            self.slot.release()
        if self.starter is not None:
            self.starter.release()


@dataclass(frozen=True)
class Piped:
    """A process with three pipes."""

    process: subprocess.Popen[bytes]

    @property
    def bounds_memory(self) -> bool:
        """Not unless it says so: then the watchdog does."""
        return False

    @property
    def request_fd(self) -> int:
        """Where requests are written."""
        return _fd(self.process.stdin)

    @property
    def reply_fd(self) -> int:
        """Where replies are read."""
        return _fd(self.process.stdout)

    @property
    def log_fd(self) -> int:
        """Where output is read."""
        return _fd(self.process.stderr)

    def out_of_memory(self) -> bool:
        """Whether the kernel ended something in it; nobody asked it to."""
        return False

    def release(self) -> None:
        """Close the descriptors."""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def exit_code(self, timeout_s: float) -> int | None:
        """Exit code as a shell gives it, or None while it runs."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code < 0 else code


@dataclass(frozen=True)
class NamespaceBox(Piped):
    """Processes in a PID namespace of their own: none can leave it, and all end with its first.

    Attributes:
        init_pidfd: stands for the first process of the namespace, safe against reuse of its pid.
        init_pid: the same as a number, for looking at what it sees.
        namespace: inode of the namespace.
        namespace_fd: keeps it, so that no other namespace is given this inode meanwhile.
        memory_folders: folders inside whose content is memory.
        counts_processes: see `Box`.
        memory_limit: of all its processes together.
        held: what belongs to the box on this machine and is given back after it.
    """

    init_pidfd: int
    init_pid: int
    namespace: int
    namespace_fd: int
    memory_folders: tuple[str, ...]
    counts_processes: bool
    memory_limit: int = 0
    held: Held = field(default_factory=Held)

    @property
    def bounds_memory(self) -> bool:
        """Whether the kernel bounds the memory of all its processes together."""
        return self.held.cgroup is not None and "memory" in self.held.cgroup.folders

    def out_of_memory(self) -> bool:
        """Whether the kernel ended something in it for lack of memory."""
        return self.held.cgroup is not None and self.held.cgroup.out_of_memory()

    def pids(self) -> list[int]:
        """Living processes of the box."""
        return processes.pids_in_namespace(self.namespace)

    def memory_bytes(self, pids: Sequence[int]) -> int:
        """Memory they hold together."""
        held = processes.resident_bytes(pids)
        if self.init_pid in pids:  # else it ended, and its number may be another process's by now
            held += memory.mounted_bytes(self.init_pid, self.memory_folders)
            if not self.bounds_memory:
                held += memory.sockets_bytes(self.init_pid)
        if self.bounds_memory:
            return held
        return held + memory.unseen_bytes(pids, self.memory_limit - held)

    def end(self) -> bool:
        """Kill and reap everything; False if something survived."""
        if self.held.cgroup is not None:
            self.held.cgroup.kill()
        kill_by_pidfd(self.init_pidfd)
        # Its parent reaps it and follows at once; if not, it goes the same way.
        if self.exit_code(_FOLLOWS_WITHIN_S) is None:
            self.process.kill()
            self.process.wait()
        return _all_gone(self)

    def release(self) -> None:
        """Close the descriptors, and give back what belonged to the box if nothing is left of it."""
        super().release()
        os.close(self.init_pidfd)
        if not self.pids():
            self.held.release()
        os.close(self.namespace_fd)


@dataclass(frozen=True)
class SessionBox(Piped):
    """Processes in a session of their own: enough for code we trust, no wall for any other."""

    counts_processes: bool = False

    def pids(self) -> list[int]:
        """Living processes of the box."""
        return processes.pids_in_session(self.process.pid)

    def memory_bytes(self, pids: Sequence[int]) -> int:
        """Memory they hold together."""
        return processes.resident_bytes(pids)

    def end(self) -> bool:
        """Kill and reap everything; False if something survived."""
        for pid in self.pids():
            _kill(pid)
        self.process.kill()
        self.process.wait()
        return _all_gone(self)


def kill_by_pidfd(pidfd: int) -> None:
    """SIGKILL; nothing happens if it is gone already."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _all_gone(box: Box) -> bool:
    deadline = time.monotonic() + _GONE_WITHIN_S
    while box.pids():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def _fd(pipe: object) -> int:
    fileno = getattr(pipe, "fileno", None)
    if fileno is None:
        raise ValueError("the process was started without its pipes")
    return int(fileno())
