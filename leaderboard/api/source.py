"""What the answers of the API are made from: the same readers as the pages'."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from benchmarks.errors import TransientError
from benchmarks.schema import Card
from leaderboard.api.problems import BusyError
from leaderboard.pages.index.index_page import Prepared
from leaderboard.pages.ledger.reading import ChronicleReader, Known
from leaderboard.pages.moved.reading import EarlierBoards
from leaderboard.pages.reading import Reader
from leaderboard.store.interface import Store

AT_ONCE = 2
"""Answers that are being computed; the others wait for their turn."""
WAIT_S = 20.0


@dataclass(frozen=True)
class Source:
    """Where everything is read.

    Attributes:
        reader: of the published boards and the submissions; the pages may have the same.
        store: of the ledger, of earlier boards and of what workers tell.
        cards: the benchmarks, in the order of display.
        clock: the current time, with a time zone.
        wait_s: how long a request waits while others are computed.
    """

    reader: Reader
    store: Store
    cards: Mapping[str, Card]
    clock: Callable[[], datetime]
    wait_s: float = WAIT_S
    _turns: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(AT_ONCE), repr=False, compare=False
    )

    @cached_property
    def earlier(self) -> EarlierBoards:
        """The boards of earlier revisions."""
        return EarlierBoards(self.store.public)

    @cached_property
    def prepared(self) -> Prepared:
        """What of the index no weight changes."""
        return Prepared()

    @cached_property
    def chronicle(self) -> Chronicle:
        """The public ledger."""
        return Chronicle(ChronicleReader(self.store.public, self.clock))

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """For what takes long: few at a time.

        Raises:
            BusyError: `busy`, where it is nobody's turn for too long.
        """
        if not self._turns.acquire(timeout=self.wait_s):
            raise BusyError("busy", "Other tables are being computed.", "Ask again in a moment.")
        try:
            yield
        finally:
            self._turns.release()


class Chronicle:
    """The ledger, as it was last read while the store does not answer.

    Args:
        reader: reads it.
    """

    def __init__(self, reader: ChronicleReader) -> None:
        self._reader = reader
        self._known: Known | None = None

    def known(self) -> Known:
        """Its lines.

        Raises:
            TransientError: the store cannot be read, and never was.
        """
        try:
            self._known = self._reader.read()
        except TransientError:
            if self._known is None:
                raise
        return self._known

    def content(self) -> bytes:
        """The lines as they are kept, byte for byte.

        Raises:
            TransientError: the store cannot be read.
        """
        return self._reader.download().encode()
