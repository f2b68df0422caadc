"""A container that a session talks to through its attached client."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evaluator.isolation.cgroups import Cgroup, cgroup_of, held_bytes
from evaluator.isolation.containers.engine import Engine, EngineError
from evaluator.isolation.containers.plan import Pipes
from evaluator.isolation.inside.first import RUNNER_KILLED
from evaluator.isolation.supervising.sandbox import KILLED, Piped

_GONE_WITHIN_S = 10.0
_CLIENT_FOLLOWS_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.02
_STARVED_TOLD_WITHIN_S = 1.5


@dataclass
class _Known:
    """What is learnt about a container while it runs."""

    cgroup: Cgroup | None = None
    ended_by_us: bool = False
    let_go: bool = False
    starved: bool | None = None


@dataclass(frozen=True)
class ContainerSandbox(Piped):
    """One container.

    Its processes and their memory are what its cgroups count. With gVisor that is the whole
    sandbox: gVisor's own processes and memory, among them everything the scorer holds.
    """

    engine: Engine  # that runs it
    name: str  # of the container
    pipes: Pipes | None = None  # that carry the protocol, where it does not go through the client
    let_go: Callable[[], None] = lambda: None  # called once when nothing of it is left
    counts_processes: bool = False  # its cgroup does
    known: _Known = field(default_factory=_Known)

    @property
    def request_fd(self) -> int:
        """Where requests are written."""
        return self.pipes.requests if self.pipes else super().request_fd

    @property
    def reply_fd(self) -> int:
        """Where replies are read."""
        return self.pipes.replies if self.pipes else super().reply_fd

    @property
    def bounds_memory(self) -> bool:
        """The kernel does; a box where it does not is not started."""
        return self.known.cgroup is not None

    def adopt(self) -> int:
        """Learn where its processes are counted; the process id of its first, 0 if there is none."""
        found = self.engine.container(self.name)
        if found is None or not found.pid:
            return 0
        self.known.cgroup = cgroup_of(found.pid)
        return found.pid

    def pids(self) -> list[int]:
        """Living processes of the box."""
        return sorted(self.known.cgroup.pids()) if self.known.cgroup else []

    def memory_bytes(self, pids: Sequence[int]) -> int:  # noqa: ARG002 - the kernel's own sum
        """Memory they hold together, files in memory included."""
        if self.known.cgroup is None:
            return 0
        return held_bytes(self.known.cgroup)

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in it for lack of memory."""
        if self.known.starved is None:
            if self.known.cgroup and self.known.cgroup.out_of_memory():
                self.known.starved = True
            elif self.process.poll() is not None and not self.known.ended_by_us:
                self.known.starved = self._ended_starved()
        return bool(self.known.starved)

    @property
    def bounds_processes(self) -> bool:
        """The kernel does; of gVisor's own threads, too, so that it cannot tell."""
        return self.known.cgroup is not None

    def out_of_processes(self) -> bool:
        """Whether the kernel refused it a process or thread, as far as its cgroup is still there."""
        return self.known.cgroup is not None and self.known.cgroup.out_of_processes()

    def killed_from_outside(self) -> bool:
        """Whether the first process was killed, which nothing beside it can."""
        return super().exit_code(0) == KILLED and not self.known.ended_by_us

    def exit_code(self, timeout_s: float) -> int | None:
        """Exit code as a shell gives it, or None while it runs."""
        code = super().exit_code(timeout_s)
        return KILLED if code == RUNNER_KILLED else code

    def end(self) -> bool:
        """Kill and remove it; False if something of it is left."""
        self.known.ended_by_us = True
        gone = self._removed()
        if self.exit_code(_CLIENT_FOLLOWS_WITHIN_S) is None:
            self.process.kill()
            self.process.wait()
        if gone and not self.known.let_go:
            self.known.let_go = True
            self.let_go()
        return gone

    def release(self) -> None:
        """Close the descriptors."""
        super().release()
        if self.pipes is not None:
            self.pipes.close()

    def _ended_starved(self) -> bool:
        """Whether the engine says so; it may learn of it a moment after the client has ended."""
        if self.process.returncode not in {KILLED, RUNNER_KILLED}:
            return False
        deadline = time.monotonic() + _STARVED_TOLD_WITHIN_S
        while True:
            try:
                found = self.engine.container(self.name)
            except EngineError:
                return False
            if found is None or found.out_of_memory or time.monotonic() >= deadline:
                return found is not None and found.out_of_memory
            time.sleep(_LOOK_EVERY_S * 5)

    def _removed(self) -> bool:
        deadline = time.monotonic() + _GONE_WITHIN_S
        while True:
            try:
                self.engine.remove(self.name)
                if self.engine.container(self.name) is None and not self.pids():
                    return True
            except EngineError:  # busy with it, or not answering
                pass
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_EVERY_S)
