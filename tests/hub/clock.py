"""The clock of the test Hub: it can be set, run fast and stand still."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime


class ServerClock:
    """A server's own idea of the time: that of this machine until it is told otherwise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._base = datetime.now(UTC)
        self._since = time.monotonic()
        self._rate = 1.0

    def now(self) -> datetime:
        with self._lock:
            return self._read()

    def set(self, when: datetime) -> None:
        """Go on from another time."""
        with self._lock:
            self._move(when, self._rate)

    def advance(self, seconds: float) -> None:
        """Jump ahead; with a negative number back."""
        with self._lock:
            self._move(self._read() + timedelta(seconds=seconds), self._rate)

    def run(self, rate: float) -> None:
        """Let so many seconds of the server pass in one; 0 stops the clock."""
        with self._lock:
            self._move(self._read(), rate)

    def header(self) -> str:
        """The time as the header `Date` tells it: whole seconds."""
        return format_datetime(self.now(), usegmt=True)

    def _read(self) -> datetime:
        return self._base + timedelta(seconds=(time.monotonic() - self._since) * self._rate)

    def _move(self, when: datetime, rate: float) -> None:
        self._base, self._since, self._rate = when, time.monotonic(), rate


def told(when: datetime) -> str:
    """A time as the Hub's API tells it."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
