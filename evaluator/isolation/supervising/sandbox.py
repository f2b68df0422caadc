"""A started process, or tree of processes, that a session talks to: the part that differs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.isolation.supervising import processes

KILLED = 128 + signal.SIGKILL
_GONE_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.01


class Sandbox(Protocol):
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

    @property
    def bounds_processes(self) -> bool:
        """Whether the kernel bounds its processes and threads together, and tells when it did."""

    def out_of_processes(self) -> bool:
        """Whether the kernel refused it a process or thread at that bound."""

    def killed_from_outside(self) -> bool:
        """Whether it ended by a SIGKILL that nothing in it can have sent; False if unknown."""

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

    @property
    def bounds_processes(self) -> bool:
        """Not unless it says so."""
        return False

    def out_of_processes(self) -> bool:
        """Whether the kernel refused it a process; nobody would know."""
        return False

    def killed_from_outside(self) -> bool:
        """Not known: whatever runs in it could have sent the signal."""
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
        return all_gone(self)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def all_gone(box: Sandbox) -> bool:
    """Wait until no process of a box is left; False where one stays."""
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
