"""Room on a worker's disk: what can be had again is given up before it fills.

A submission is claimed only where the disk has room to end it in order.
"""

from __future__ import annotations

import errno
import logging
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.errors import AssayError, TransientError
from evaluator.folder_cache import CachedFolder, bytes_below, cached_folders, sweep, taken_away
from evaluator.hub.model_cache import cached_models, model_of
from evaluator.in_use import unused
from leaderboard.service.health import DISK_FLOOR_BYTES

log = logging.getLogger(__name__)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_CODES = frozenset({"disk_low", "disk_failed"})


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, says that a disk can take no more."""
    while error is not None:
        if isinstance(error, TransientError) and error.code in _CODES:
            return True
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False


UNPACKED, SHARDS, OUTBOX = "unpacked", "shards", "outbox"
"""Folders of the scratch."""
JUST_MADE_S = 600.0
"""What is younger may be about to be used."""


@dataclass(frozen=True)
class Evictable:
    """Something that can be removed."""

    what: str  # it is, for the log
    place: Path  # where it is
    # removes it unless it is in use after all; the number of bytes this freed
    remove: Callable[[], int]


@dataclass(frozen=True)
class DiskPlaces:
    """Where a worker keeps what can be had again."""

    scratch: Path  # of the worker, or of several that share it
    models: Path  # the cache of models
    embeddings: Path | None = None  # kept for later runs; None: nowhere
    environments: Path | None = None  # that were built; None: nowhere

    @property
    def all(self) -> tuple[Path, ...]:
        """The folders that must not fill up."""
        built = () if self.environments is None else (self.environments,)
        return (self.scratch, self.models, *built)

    def evictable(
        self, now_s: float, finished: Callable[[], Collection[str]]
    ) -> Iterator[Evictable]:
        """What may be removed, first what is missed least."""
        yield from self._unpacked(now_s)
        yield from self._shards(finished)
        yield from self._environments(now_s)
        yield from self._models(now_s)
        yield from self._embeddings()

    def _unpacked(self, now_s: float) -> Iterator[Evictable]:
        for place in _by_age(self.scratch / UNPACKED):
            if _changed_at(place) < now_s - JUST_MADE_S:
                yield Evictable("an unpacked module", place, partial(_drop, place))

    def _shards(self, finished: Callable[[], Collection[str]]) -> Iterator[Evictable]:
        kept = _by_age(self.scratch / SHARDS)
        # Asked only where there is something: it reads the store.
        over = frozenset(finished()) if kept else frozenset()
        for place in kept:
            if place.name in over and not (self.scratch / OUTBOX / place.name).exists():
                yield Evictable("finished shards", place, partial(_drop, place))

    def _models(self, now_s: float) -> Iterator[Evictable]:
        yield from _left(self.models)
        for one in cached_models(self.models):
            if _is_idle(one, now_s):
                yield Evictable(f"the model {model_of(one)}", one.place, partial(taken_away, one))

    def _environments(self, now_s: float) -> Iterator[Evictable]:
        if self.environments is None:
            return
        yield from _left(self.environments)
        for one in cached_folders(self.environments):
            if _is_idle(one, now_s):
                what = f"the environment {one.name[:12]}"
                yield Evictable(what, one.place, partial(taken_away, one))

    def _embeddings(self) -> Iterator[Evictable]:
        if self.embeddings is None:
            return
        for place in _by_age(self.embeddings):
            yield Evictable("embeddings", place, partial(_drop, place))


def _left(cache: Path) -> Iterator[Evictable]:
    """What a removal that was cut off left in a cache."""
    if (left := next(cache.glob("*.gone"), None)) is not None:
        yield Evictable(f"what was removed from {cache.name}", left, partial(sweep, cache))


def _is_idle(one: CachedFolder, now_s: float) -> bool:
    return not one.in_use and one.last_used < now_s - JUST_MADE_S


def _by_age(folder: Path) -> list[Path]:
    """The folders in a folder, the one that was changed longest ago first."""
    return sorted((p for p in folder.glob("*") if p.is_dir() and not p.is_symlink()), key=_aged)


def _aged(place: Path) -> tuple[float, str]:
    return _changed_at(place), place.name


def _changed_at(place: Path) -> float:
    """When a folder, or anything directly in it, was changed last; 0 where it is gone."""
    try:
        return max(p.lstat().st_mtime for p in (place, *place.iterdir()))
    except FileNotFoundError:
        return 0.0


def _drop(place: Path) -> int:
    try:
        with unused(place) as free:
            if not free:
                return 0
            freed = bytes_below(place)
            shutil.rmtree(place, ignore_errors=True)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return 0 if place.exists() else freed


HIGH_BYTES = 4 << 30
"""So much is kept free where there is something to give up."""
LOOKED_EVERY_S = 60.0


def free_bytes(folder: Path) -> int:
    """What is free where a folder lies, or will lie."""
    return shutil.disk_usage(_there(folder)).free


def device_of(folder: Path) -> int:
    """The file system where a folder lies, or will lie."""
    return _there(folder).stat().st_dev


class DiskWatch:
    """Watches the disks of one worker."""

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
        """Make room if there is little, before something is begun."""
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
                    log.warning("The disk could not be looked at: %s", error)

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
            log.warning("Shards are kept, since the store cannot be read: %s", error)
            return ()


def _removed(one: Evictable) -> int:
    freed = one.remove()
    if freed:
        log.info("The disk is short: removed %s, %s.", one.what, _gib(freed))
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
