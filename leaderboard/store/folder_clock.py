"""The clock of a file system, the same for all machines that share a folder."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.errors import TransientError
from leaderboard.store.disk import failing

REFRESHED_EVERY_S = 2.0
_SMOOTHED = timedelta(seconds=1)
"""A step back by less is not shown: file systems count time in ticks of milliseconds."""


class FolderClock:
    """The time by which a file system stamps its files.

    A file is touched and its stamp read; between two touches, and while the file system fails, the
    time goes on by the machine's steady clock, which nobody sets. So the machine's own idea of the
    time never matters.

    Args:
        file: the file that is touched; made with its folder when the time is first asked.
        steady: seconds that only go forward.
    """

    def __init__(self, file: Path, steady: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._steady = steady
        self._lock = threading.Lock()
        self._touched = datetime.min.replace(tzinfo=UTC)
        self._touched_at = 0.0
        self._known = False
        self._asked_at = float("-inf")
        self._latest = self._touched

    def __call__(self) -> datetime:
        """The time now.

        Raises:
            TransientError: `store_failed`, the file cannot be touched, and never could.
        """
        with self._lock:
            steady = self._steady()
            if steady - self._asked_at >= REFRESHED_EVERY_S or not self._known:
                self._ask(steady)
            now = self._touched + timedelta(seconds=steady - self._touched_at)
            if not timedelta(0) < self._latest - now < _SMOOTHED:
                self._latest = now
            return self._latest

    def _ask(self, steady: float) -> None:
        self._asked_at = steady
        try:
            with failing("tell the time"):
                self._touched, self._touched_at = self._touch(), steady
                self._known = True
        except TransientError:
            if not self._known:
                raise

    def _touch(self) -> datetime:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.utime(opened)  # Without a time, the file system itself says what time it is.
            stamp = os.fstat(opened).st_mtime_ns
        finally:
            os.close(opened)
        return datetime.fromtimestamp(stamp // 10**9, UTC) + timedelta(
            microseconds=stamp % 10**9 // 1000
        )
