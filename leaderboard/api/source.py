"""Data source of the API: the same readers as the pages'."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from benchmarks.schema import Card
from leaderboard.api.replies import BusyError
from leaderboard.api.static_copy import StaticCopy
from leaderboard.models.reading import ModelReader
from leaderboard.publication.earlier_boards import EarlierBoards
from leaderboard.publication.index import IndexBase, index_base
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.reader import PerView, Reader
from leaderboard.store.interface import Store
from leaderboard.views.audit_log import AuditLogReader
from leaderboard.views.skills import Prepared as PreparedSkills

_Answer = TypeVar("_Answer")
AT_ONCE = 2  # Answers that are being computed; the others wait for their turn
IN_LINE = 8
"""Answers that wait for it, each in a thread: fewer than there are, so that some stay for others."""
THREADS = 12
"""Requests that have a thread. The pages and `/health` share others, which wait for nothing here."""
MOST_WAITING = 100  # Requests that wait for a thread; further ones are told to come back
WAIT_S = 20.0


@dataclass(frozen=True)
class Source:
    """Where everything is read."""

    reader: Reader  # of the published boards and the submissions; the pages may have the same
    store: Store  # of the ledger, of earlier boards and of what workers tell
    cards: Mapping[str, Card]  # the benchmarks, in the order of display
    clock: Callable[[], datetime]  # the current time, with a time zone
    # reads the models, their prompts and scores; None: there are no prompt sets here
    models: ModelReader | None = None
    assay_version: str = "unknown"  # for whoever takes results away
    wait_s: float = WAIT_S  # how long a request waits while others are computed
    # in which requests are answered
    threads: CapacityLimiter = field(
        default_factory=lambda: CapacityLimiter(THREADS), repr=False, compare=False
    )
    _turns: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(AT_ONCE), repr=False, compare=False
    )
    _line: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(AT_ONCE + IN_LINE),
        repr=False,
        compare=False,
    )

    @cached_property
    def model_reader(self) -> ModelReader:
        """What reads the models; without prompt sets where the installation has none."""
        return self.models or ModelReader(self.store, {}, None)

    @cached_property
    def earlier(self) -> EarlierBoards:
        """The boards of earlier revisions."""
        return EarlierBoards(self.store.public)

    @cached_property
    def prepared(self) -> PerView[IndexBase]:
        """What of the index no weight changes."""
        return PerView(index_base)

    @cached_property
    def items(self) -> ItemReader:
        """Cases and scores; the pages may have the same."""
        return ItemReader(self.store.public)

    @cached_property
    def skills(self) -> PreparedSkills:
        """What of the skills no weight changes."""
        return PreparedSkills()

    @cached_property
    def static_copy(self) -> StaticCopy:
        """The boards as one static page."""
        return StaticCopy(self.reader, self.store.public)

    @cached_property
    def audit_log(self) -> AuditLogReader:
        """The public audit log."""
        return AuditLogReader(self.store.public, self.clock)

    async def in_thread(self, answer: Callable[[], _Answer]) -> _Answer:
        """What is answered in one of its threads."""
        if self.threads.statistics().tasks_waiting >= MOST_WAITING:
            raise BusyError("busy", "Too much is asked for at once.", "Ask again in a moment.")
        return await run_sync(answer, limiter=self.threads)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """For what takes long: few at a time."""
        busy = BusyError("busy", "Other tables are being computed.", "Ask again in a moment.")
        if not self._line.acquire(blocking=False):
            raise busy
        try:
            if not self._turns.acquire(timeout=self.wait_s):
                raise busy
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._line.release()
