"""The Hub's clock, as its replies tell it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from benchmarks.errors import AssayError, TransientError

_GOOD_FOR_S = 600.0
_JITTER = timedelta(seconds=2)
"""Two replies may differ by so much (a second's rounding, the way here); time stands still then."""


def steady() -> float:
    """Seconds that only go forward, also while a machine sleeps where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class ServerClock:
    """The time of the last reply, and what went by since on the steady clock of this machine.

    The machine's own idea of the time of day is never used: it may be wrong by hours.

    Args:
        elapsed: seconds that only go forward.
    """

    def __init__(self, elapsed: Callable[[], float] = steady) -> None:
        self._elapsed = elapsed
        self._ask: Callable[[], object] | None = None
        self._lock = threading.Lock()
        self._heard: tuple[datetime, float] | None = None
        self._last = datetime.min.replace(tzinfo=UTC)

    def asks(self, ask: Callable[[], object]) -> None:
        """Name what makes the server reply, for when it has been silent for long."""
        self._ask = ask

    def heard(self, headers: Mapping[str, str]) -> None:
        """Take the time from a reply; one without a date tells nothing."""
        try:
            date = parsedate_to_datetime(headers.get("Date", ""))
        except ValueError:
            return
        if date.tzinfo is None:
            return
        age = headers.get("Age", "0")  # of a copy that something on the way had kept
        date += timedelta(seconds=int(age) if age.isdigit() else 0)
        with self._lock:
            self._heard = date.astimezone(UTC), self._elapsed()

    def __call__(self) -> datetime:
        """The time of the Hub.

        Raises:
            AssayError: it has never told it, and does not now.
        """
        if self._ask is not None and self._silent_for() > _GOOD_FOR_S:
            try:
                self._ask()
            except AssayError:
                # Time goes on whatever became of the store.
                if self._heard is None:
                    raise
        with self._lock:
            if self._heard is None:
                raise TransientError("no_clock", "The Hub has not told the time yet.", "Try again.")
            date, at = self._heard
            now = date + timedelta(seconds=self._elapsed() - at)
            if timedelta(0) < self._last - now < _JITTER:
                now = self._last
            self._last = now
            return now

    def _silent_for(self) -> float:
        with self._lock:
            return float("inf") if self._heard is None else self._elapsed() - self._heard[1]
