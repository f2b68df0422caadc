"""Reads what health is judged by: little, and seldom, since on a Hub every read is a request."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, TransientError
from leaderboard.ledger.audit_log import SEGMENT_LINES, Line, segments, sha256
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.service.health import Boards, DiskSpace, Health, Seen, disk_of, judged, unreadable
from leaderboard.store.interface import Repository, Store, utc_now

FRESH_FOR_S = 5.0
PATIENCE_S = 4.0  # Less than what probes of a service commonly wait


@dataclass(frozen=True, slots=True)
class _Counted:
    """A segment as it was read."""

    actions: Counter[str]  # its lines by what was done
    before: str  # hash of the line before its first; empty where it has none
    last: str  # hash of its last line
    at: datetime | None  # time of that
    full: bool  # whether nothing more comes into it


class ChronicleCounts:
    """Counts the lines of the public ledger by what was done.

    A segment that is full never changes, so it is read once. Where the store was deleted and made
    anew under its name, the hashes do not chain to what was read before, and all is read again.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._full: dict[str, _Counted] = {}

    def read(self) -> tuple[Counter[str], datetime | None]:
        """What was done how often, and when something was done last."""
        found = self._read()
        if not _chained(found):
            self._full.clear()
            found = self._read()
        total: Counter[str] = Counter()
        for each in found:
            total += each.actions
        return total, max((each.at for each in found if each.at), default=None)

    def _read(self) -> list[_Counted]:
        paths = segments(self._public)
        found = [
            self._full[path]
            if path in self._full and path != paths[-1]
            else _counted(self._public.read(path).splitlines())
            for path in paths
        ]
        self._full = {path: each for path, each in zip(paths, found, strict=True) if each.full}
        return found


def _counted(raw: list[bytes]) -> _Counted:
    lines = [Line.model_validate_json(line) for line in raw]
    return _Counted(
        actions=Counter(line.action for line in lines),
        before=lines[0].before if lines else "",
        last=sha256(raw[-1]) if raw else "",
        at=lines[-1].at if lines else None,
        full=len(lines) >= SEGMENT_LINES,
    )


def _chained(found: list[_Counted]) -> bool:
    return all(not after.before or after.before == one.last for one, after in pairwise(found))


class StorePoll:
    """Reads a store; what only a commit can change is read again after a commit alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ledger = Ledger(store)
        self._counts = ChronicleCounts(store.public)
        self._read: Seen | None = None
        self._version = "", ""

    def look(self) -> Seen:
        """What is there now."""
        # This is read first: what is read after it can only be newer, and is read again then.
        version = self._ledger.version()
        if self._read is None or self._version != version:
            self._read, self._version = self._read_at(version[0]), version
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
    """The health of an installation, looked at no more often than every few seconds."""

    def __init__(
        self,
        store: Store,  # what is looked at
        folder: Path,  # on the disk that this process depends on
        *,
        own: str = "",  # name of the worker that answers; empty where none does
        fresh_for_s: float = FRESH_FOR_S,  # how long an answer is given again
        patience_s: float = PATIENCE_S,  # how long whoever wants an answer `soon` waits for one
        monotonic: Callable[[], float] = time.monotonic,  # seconds, for that
        disk: Callable[[Path], DiskSpace | None] = disk_of,  # says what is free where a folder lies
    ) -> None:
        self._store = store
        self._folder = folder
        self._own = own
        self._looking = StorePoll(store)
        self._fresh_for_s, self._patience_s = fresh_for_s, patience_s
        self._monotonic = monotonic
        self._disk = disk
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._last: tuple[float, Health] | None = None
        self._under_way: tuple[float, Future[Health]] | None = None

    def health(self) -> Health:
        """As it is now, or was a few seconds ago, however long the store takes to say so."""
        with self._lock:
            if self._last is None or self._monotonic() - self._last[0] >= self._fresh_for_s:
                found = self._look()
                self._last = self._monotonic(), found
            return self._last[1]

    def soon(self) -> Health:
        """As `health`, in a few seconds; down where the store has not answered by then.

        One look is under way at a time, in a thread of its own, so that a silent store holds
        neither whoever asks nor all the threads of a site.
        """
        since, look = self._look_under_way()
        left = max(0.0, since + self._patience_s - self._monotonic())
        try:
            return look.result(left)
        except FutureTimeout:
            silent = TransientError("store_silent", f"No answer in {self._patience_s:.0f} s.")
            return unreadable(silent, utc_now(), self._disk(self._folder))

    def _look_under_way(self) -> tuple[float, Future[Health]]:
        with self._starting:
            if self._under_way is None or self._under_way[1].done():
                look: Future[Health] = Future()
                self._under_way = self._monotonic(), look
                threading.Thread(
                    target=_fulfil, args=(look, self.health), name="health", daemon=True
                ).start()
            return self._under_way

    def _look(self) -> Health:
        # This machine's time, for a store that does not even tell its own.
        disk, now = self._disk(self._folder), utc_now()
        try:
            now = self._store.clock()
            return judged(self._looking.look(), now, disk, own=self._own)
        except AssayError as error:
            return unreadable(error, now, disk)


def _fulfil(look: Future[Health], ask: Callable[[], Health]) -> None:
    try:
        look.set_result(ask())
    except Exception as error:  # noqa: BLE001 (a defect: raised by whoever waits for the answer)
        look.set_exception(error)


def boards_of(public: Repository) -> Boards | None:
    """What the snapshot says of itself; None while nothing was published."""
    snapshot = read_snapshot(public)
    if snapshot is None:
        return None
    shown = frozenset(entry.submission_id for entry in snapshot.entries.values())
    return Boards(snapshot.built_at, shown)


def _now_with(read: Seen, store: Store) -> Seen:
    """With what changes without a commit."""
    read = replace(
        read,
        commits_left=store.commits_left() if store.commits_left else None,
        commit_wait_min=store.commit_wait_min(),
    )
    try:
        return replace(read, pulses=store.live.pulses())
    except TransientError as error:  # told elsewhere than in the store: that may be well
        return replace(read, live_fault=error.message)
