"""Keeps a worker's disk from filling up: gives up what can be had again, and stops before the end.

A submission is claimed only where the disk has room to end it in order.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import AssayError, TransientError
from evaluator.worker.upkeep.evictable import DiskPlaces, Evictable
from leaderboard.service.health import DISK_FLOOR_BYTES

HIGH_BYTES = 4 << 30
"""So much is kept free where there is something to give up."""
LOOKED_EVERY_S = 60.0

_LOG = logging.getLogger(__name__)


def free_bytes(folder: Path) -> int:
    """What is free where a folder lies, or will lie."""
    return shutil.disk_usage(_there(folder)).free


def device_of(folder: Path) -> int:
    """The file system where a folder lies, or will lie."""
    return _there(folder).stat().st_dev


class DiskWatch:
    """Watches the disks of one worker.

    Args:
        places: where the worker keeps what can be had again.
        finished: ids of the submissions on which nobody works any more.
        floor_bytes: with less free, nothing is begun.
        high_bytes: with less free, something is given up.
        clock: seconds since 1970 by this machine, as its file system has them.
        free: what is free where a folder lies.
    """

    def __init__(
        self,
        places: DiskPlaces,
        finished: Callable[[], Collection[str]],
        *,
        floor_bytes: int = DISK_FLOOR_BYTES,
        high_bytes: int = HIGH_BYTES,
        clock: Callable[[], float] = time.time,
        free: Callable[[Path], int] = free_bytes,
    ) -> None:
        self._places = places
        self._finished = finished
        self._floor = floor_bytes
        self._high = max(high_bytes, floor_bytes)
        self._clock = clock
        self._free = free
        self._lock = threading.Lock()
        self._in_vain_at: float | None = None

    def check(self) -> None:
        """Make room if there is little, before something is begun.

        Raises:
            TransientError: `disk_low` where there is too little all the same.
        """
        freed = self.relieve()
        for folder in self._places.all:
            free = self._free(folder)
            if free < self._floor:
                raise TransientError(
                    "disk_low",
                    f"{_gib(free)} are free where {folder} lies, and {_gib(self._floor)} are "
                    f"needed before a submission is begun; {_gib(freed)} could be given up.",
                    "Make room on that disk; the worker goes on by itself then.",
                )

    def relieve(self) -> int:
        """Give up what can be had again where little is free; the number of bytes this freed."""
        with self._lock:
            short = [folder for folder in self._places.all if self._free(folder) < self._high]
            if not short or self._was_in_vain(short):
                return 0
            freed = sum(self._relieved(device, folder) for device, folder in _devices(short))
            self._in_vain_at = None if freed else self._clock()
            return freed

    @contextmanager
    def watching(self, every_s: float = LOOKED_EVERY_S) -> Iterator[None]:
        """Look now and then while this is entered, since a long run fills the disk as well."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(every_s):
                try:
                    self.relieve()
                except OSError as error:
                    _LOG.warning("The disk could not be looked at: %s", error)

        thread = threading.Thread(target=look, name="disk-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _was_in_vain(self, short: list[Path]) -> bool:
        """Whether nothing was found a moment ago, and there is room enough to wait a little."""
        if self._in_vain_at is None or any(self._free(folder) < self._floor for folder in short):
            return False
        return 0 <= self._clock() - self._in_vain_at < LOOKED_EVERY_S

    def _relieved(self, device: int, folder: Path) -> int:
        freed = 0
        for one in self._places.evictable(self._clock(), self._known_finished):
            if self._free(folder) >= self._high:
                break
            if _device(one) == device:
                freed += _removed(one)
        return freed

    def _known_finished(self) -> Collection[str]:
        try:
            return self._finished()
        except AssayError as error:  # What the store does not say may still be needed.
            _LOG.warning("Shards are kept, since the store cannot be read: %s", error)
            return ()


def _removed(one: Evictable) -> int:
    freed = one.remove()
    if freed:
        _LOG.info("The disk is short: removed %s, %s.", one.what, _gib(freed))
    return freed


def _devices(folders: list[Path]) -> list[tuple[int, Path]]:
    """One folder for each file system."""
    return list({device_of(folder): folder for folder in reversed(folders)}.items())


def _device(one: Evictable) -> int | None:
    try:
        return one.place.stat().st_dev
    except FileNotFoundError:
        return None


def _there(folder: Path) -> Path:
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


def _gib(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.2f} GiB"
