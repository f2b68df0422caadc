"""The engine of this process: one client, and threads that make its images ready ahead of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from evaluator.scoring.asking import Answered, Batch, ClientSource, ScorerClient
from evaluator.scoring.batch_work import ReadyBatch, Room, ask_ready, made_ready

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Asks in the order of the plan; nothing is opened where nothing is to be asked."""

    name: ClassVar[str] = "local"
    threads: int = 2  # that make images ready
    ahead_batches: int = 4  # batches that wait, ready or in work, for the client
    ahead_bytes: int = 512 * _MIB  # about how much they may hold; one batch waits in any case

    def run(self, batches: Iterable[Batch], source: ClientSource) -> Iterator[Answered]:
        """See `Engine`."""
        drawn = iter(batches)
        first = next(drawn, None)
        if first is None:
            return
        with (
            source.open() as client,
            ThreadPoolExecutor(self.threads, thread_name_prefix="ready") as pool,
        ):
            queue = _Ahead(self, client, pool, chain([first], drawn))
            room = Room()
            try:
                while (waiting := queue.next()) is not None:
                    batch, ready = waiting
                    yield ask_ready(client, batch, ready, room)
            finally:
                queue.cancel()


class _Ahead:
    """Batches that are being made ready, first in, first out."""

    def __init__(
        self, engine: LocalEngine, client: ScorerClient, pool: Executor, batches: Iterator[Batch]
    ) -> None:
        self._engine = engine
        self._client = client
        self._pool = pool
        self._batches = batches
        self._waiting: deque[tuple[Batch, ReadyBatch]] = deque()
        self._drained = False

    def next(self) -> tuple[Batch, ReadyBatch] | None:
        """The batch that is due, with the next ones begun; None when there are no more."""
        self._fill(at_least=1)
        if not self._waiting:
            return None
        due = self._waiting.popleft()
        self._fill(at_least=1)
        return due

    def cancel(self) -> None:
        """Begin with nothing more."""
        for _, ready in self._waiting:
            ready.cancel()

    def _fill(self, *, at_least: int) -> None:
        while not self._drained and (
            len(self._waiting) < at_least
            or (
                len(self._waiting) < self._engine.ahead_batches
                and self._bytes_ahead() < self._engine.ahead_bytes
            )
        ):
            batch = next(self._batches, None)
            if batch is None:
                self._drained = True
                return
            self._waiting.append((batch, made_ready(self._client, batch, self._pool)))

    def _bytes_ahead(self) -> int:
        return sum(batch_bytes(batch, ready) for batch, ready in self._waiting)


def batch_bytes(batch: Batch, ready: ReadyBatch) -> int:
    """About how much memory a batch holds; what is not ready yet counts as what is."""
    raw = sum(len(item.data) for item in batch.items)
    made = [
        future.result().n_bytes
        for future in ready.images
        if future.done() and not future.cancelled() and future.exception() is None
    ]
    if not made:
        return 2 * raw
    return raw + sum(made) * len(ready.images) // len(made)
