"""Transactions that come to a commit together, in threads that wait for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import (
    Changes,
    Repository,
    transact,
)
from leaderboard.store.memory import MemoryRepository


class Gate:
    """A repository in memory whose commits wait until they are let through.

    Attributes:
        messages: of the commits that were made.
        before: done once, just before the next commit.
    """

    def __init__(self) -> None:
        self._under = MemoryRepository()
        self._open = threading.Event()
        self._open.set()
        self.arrived = threading.Event()
        self.messages: list[str] = []
        self.before: Callable[[], None] | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        self.arrived.set()
        assert self._open.wait(60)
        act, self.before = self.before, None
        if act is not None:
            act()
        version = self._under.commit(changes, parent=parent, message=message)
        self.messages.append(message)
        return version

    def close(self) -> None:
        self.arrived.clear()
        self._open.clear()

    def open(self) -> None:
        self._open.set()


@dataclass
class Room:
    """Threads that run transactions on one grouping; the first commit waits until all are there."""

    gate: Gate = field(default_factory=Gate)
    limits: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Grouping(self.gate, **self.limits)  # type: ignore[arg-type]
        self._pool = ThreadPoolExecutor(40)

    def start(self, change: Callable[[], Changes], message: str = "m") -> Future[str]:
        def run() -> str:
            return transact(self.store, change, message, sleep=lambda _: None)

        waiting = len(self.store._turns.waiting())
        future = self._pool.submit(run)
        until(lambda: future.done() or len(self.store._turns.waiting()) > waiting)
        return future

    def together(self, *changes: Callable[[], Changes]) -> list[Future[str]]:
        """Run them while another commit is under way, so that they come to the next one together."""
        self.gate.close()
        first = self.start(lambda: {"first": b"1"}, "first")
        assert self.gate.arrived.wait(60)
        futures = [self.start(change, f"m{n}") for n, change in enumerate(changes)]
        self.gate.open()
        first.result(60)
        return futures


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.0005)


def append_to(store: Repository, path: str, text: bytes) -> Callable[[], Changes]:
    def change() -> Changes:
        before = store.read(path) if store.has(path) else b""
        return {path: before + text}

    return change
