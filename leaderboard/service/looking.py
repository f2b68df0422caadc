"""Reads what health is judged by: little, and seldom, since on a Hub every read is a request."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, TransientError
from leaderboard.ledger.chronicle import SEGMENT_LINES, Line, segments
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.service.health import Boards, DiskSpace, Health, Seen, disk_of
from leaderboard.service.verdict import judged, unreadable
from leaderboard.store.interface import Repository, Store, utc_now

FRESH_FOR_S = 5.0
PATIENCE_S = 5.0


class ChronicleCounts:
    """Counts the lines of the public ledger by what was done.

    A segment that is full never changes, so it is read once.

    Args:
        public: the repository with the ledger.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._full: dict[str, Counter[str]] = {}

    def read(self) -> tuple[Counter[str], datetime | None]:
        """What was done how often, and when something was done last."""
        total: Counter[str] = Counter()
        last: datetime | None = None
        paths = segments(self._public)
        for path in paths:
            if path not in self._full or path == paths[-1]:
                raw = self._public.read(path).splitlines()
                lines = [Line.model_validate_json(line) for line in raw]
                last = lines[-1].at if lines else last
                counted = Counter(line.action for line in lines)
                if len(lines) < SEGMENT_LINES:
                    total += counted
                    continue
                self._full[path] = counted
            total += self._full[path]
        return total, last


class Looking:
    """Reads a store; what only a commit can change is read again after a commit alone.

    Args:
        store: what is looked at.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ledger = Ledger(store)
        self._counts = ChronicleCounts(store.public)
        self._read: Seen | None = None

    def look(self) -> Seen:
        """What is there now.

        Raises:
            AssayError: it cannot be read.
        """
        public = self._store.public
        # The head is read first: what is read after it can only be newer, and is read again then.
        version = public.head()
        if self._read is None or self._read.version != version:
            self._read = self._read_at(version)
        return _now_with(self._read, self._store)

    def _read_at(self, version: str) -> Seen:
        events, changed_at = self._counts.read()
        seen = Seen(
            version=version,
            statuses=self._ledger.statuses(),
            changed_at=changed_at,
            events=events,
        )
        try:
            return replace(seen, boards=boards_of(self._store.public))
        except PlatformError as error:  # damaged: the queue is told of all the same
            return replace(seen, boards_fault=error.message)


class HealthWatch:
    """The health of an installation, looked at no more often than every few seconds.

    Args:
        store: what is looked at.
        folder: on the disk that this process depends on.
        own: name of the worker that answers; empty where none does.
        fresh_for_s: how long an answer is given again.
        patience_s: how long to wait for another who looks.
        monotonic: seconds, for that.
        disk: says what is free where a folder lies.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        *,
        own: str = "",
        fresh_for_s: float = FRESH_FOR_S,
        patience_s: float = PATIENCE_S,
        monotonic: Callable[[], float] = time.monotonic,
        disk: Callable[[Path], DiskSpace | None] = disk_of,
    ) -> None:
        self._store = store
        self._folder = folder
        self._own = own
        self._looking = Looking(store)
        self._fresh_for_s, self._patience_s = fresh_for_s, patience_s
        self._monotonic = monotonic
        self._disk = disk
        self._lock = threading.Lock()
        self._last: tuple[float, Health] | None = None

    def health(self) -> Health:
        """As it is now, or was a few seconds ago; down where another looks already and gets no answer.

        Whoever asks meanwhile waits for that one answer, but not so long that a silent store holds
        all the threads of a site.
        """
        if not self._lock.acquire(timeout=self._patience_s):
            silent = TransientError("store_silent", f"No answer in {self._patience_s:.0f} s.")
            return unreadable(silent, utc_now(), self._disk(self._folder))
        try:
            if self._last is None or self._monotonic() - self._last[0] >= self._fresh_for_s:
                self._last = self._monotonic(), self._look()
            return self._last[1]
        finally:
            self._lock.release()

    def _look(self) -> Health:
        # This machine's time, for a store that does not even tell its own.
        disk, now = self._disk(self._folder), utc_now()
        try:
            now = self._store.clock()
            return judged(self._looking.look(), now, disk, own=self._own)
        except AssayError as error:
            return unreadable(error, now, disk)


def boards_of(public: Repository) -> Boards | None:
    """What the snapshot says of itself; None while nothing was published."""
    snapshot = read_snapshot(public)
    if snapshot is None:
        return None
    shown = frozenset(entry.submission_id for entry in snapshot.entries.values())
    return Boards(snapshot.built_at, shown)


def _now_with(read: Seen, store: Store) -> Seen:
    """With what changes without a commit."""
    left = store.commits_left() if store.commits_left else None
    try:
        return replace(read, pulses=store.live.pulses(), commits_left=left)
    except TransientError as error:  # told elsewhere than in the store: that may be well
        return replace(read, live_fault=error.message, commits_left=left)
