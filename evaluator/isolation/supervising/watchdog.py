"""Watching memory and processes of a box from outside, which bounds them where no cgroup does."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal

from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.box import Box

_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Breach:
    """Which limit was passed, and by how much."""

    what: Literal["memory", "processes"]
    seen: int
    limit: int


class Watchdog:
    """Looks ten times a second, and kills the box that takes too much."""

    def __init__(self, box: Box, limits: Limits) -> None:
        self._box = box
        self._limits = limits
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="box watchdog", daemon=True)
        self.breach: Breach | None = None
        self.peak_bytes = 0

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Cease; after this the box is no longer touched from here."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> Breach | None:
        """One look: remembers the peak, and says which limit is passed."""
        pids = self._box.pids()
        memory = self._box.memory_bytes(pids)
        ended = self._box.out_of_memory()
        if ended:  # between two looks
            memory = max(memory, self._limits.memory_bytes)
        self.peak_bytes = max(self.peak_bytes, memory)
        # Pages that processes share count once for each here, once in all where the kernel counts.
        if ended or (memory > self._limits.memory_bytes and not self._box.bounds_memory):
            return Breach("memory", memory, self._limits.memory_bytes)
        if len(pids) > self._limits.processes:
            return Breach("processes", len(pids), self._limits.processes)
        return None

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY_S):
            if breach := self.look():
                # Set before the kill, so that whoever sees the end also sees the reason.
                self.breach = breach
                self._box.end()
                return
