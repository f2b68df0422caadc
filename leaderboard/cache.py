"""Caches by key within bounds of bytes: of values in memory, and of files on a disk."""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

MOST_BYTES = 256 << 20  # All caches of a process together
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[_Value]):
    """A value, its size in bytes, and the turn in which it was asked for last."""

    value: _Value
    size: int
    turn: int


class Budget:
    """Bytes that several caches share; whatever was asked for longest ago goes first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.RLock()
        self.turns = count()
        # A cache that nobody holds any more is none of them.
        self._caches: weakref.WeakSet[MemoryCache[Any]] = weakref.WeakSet()

    @property
    def nbytes(self) -> int:
        """What all of them hold now."""
        with self.lock:
            return sum(cache.nbytes for cache in self._caches)

    def join(self, cache: MemoryCache[Any]) -> None:
        """Have a cache share these bytes."""
        with self.lock:
            self._caches.add(cache)

    def fit(self) -> None:
        """Let the oldest go until all fit. The caller holds the lock."""
        over = self.nbytes - self.most_bytes
        while over > 0:
            oldest = min(self._caches, key=lambda cache: cache.oldest)
            over -= oldest.drop_oldest()


PROCESS = Budget()  # Of every cache that is given no other


class MemoryCache(Generic[_Value]):
    """Values by key; several threads may share one.

    The newest value stays, however large it is: it is being looked at. Only the budget bounds it.
    """

    def __init__(
        self,
        size: Callable[[_Value], int],  # bytes of a value, about
        most_bytes: int | None = None,  # of this cache; None: as many as the budget has
        most: int | None = None,  # values, however small they are; None: any number
        budget: Budget | None = None,  # shared with other caches
    ) -> None:
        self._budget = budget or PROCESS
        self._size = size
        self._most_bytes = self._budget.most_bytes if most_bytes is None else most_bytes
        self._most = most
        self._entries: OrderedDict[Hashable, _Entry[_Value]] = OrderedDict()
        self._making: dict[Hashable, Future[_Value]] = {}
        self._bytes = 0
        self._budget.join(self)

    @property
    def nbytes(self) -> int:
        """What is held now."""
        return self._bytes

    @property
    def oldest(self) -> float:
        """The turn in which its oldest value was asked for; infinite where it holds none."""
        first = next(iter(self._entries.values()), None)
        return float("inf") if first is None else first.turn

    def get(self, key: Hashable) -> _Value | None:
        """The value of a key; None where none is held."""
        with self._budget.lock:
            found = self._entries.pop(key, None)
            if found is None:
                return None
            self._entries[key] = _Entry(found.value, found.size, next(self._budget.turns))
            return found.value

    def put(self, key: Hashable, value: _Value) -> None:
        """Hold a value in the place of the one before."""
        size = self._size(value)
        with self._budget.lock:
            self._drop(key)
            self._entries[key] = _Entry(value, size, next(self._budget.turns))
            self._bytes += size
            while len(self._entries) > 1 and self._full:
                self.drop_oldest()
            self._budget.fit()

    def of(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """The value of a key, made where none is held; None is made again each time.

        Of those who ask for the same at once one makes it, and the others wait for what it gets, be
        that an error.
        """
        with self._budget.lock:
            found = self.get(key)
            if found is not None:
                return found
            awaited = self._making.get(key)
            if awaited is None:
                begun: Future[_Value] = Future()
                self._making[key] = begun
        if awaited is not None:
            return awaited.result()
        try:
            made = make()
            if made is not None:
                self.put(key, made)
            begun.set_result(made)
        except BaseException as error:
            begun.set_exception(error)
            raise
        finally:
            with self._budget.lock:
                del self._making[key]
        return made

    @property
    def _full(self) -> bool:
        too_many = self._most is not None and len(self._entries) > self._most
        return too_many or self._bytes > self._most_bytes

    def drop_oldest(self) -> int:
        """Let go of what was asked for longest ago; its bytes. The caller holds the lock."""
        return self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> int:
        found = self._entries.pop(key, None)
        if found is None:
            return 0
        self._bytes -= found.size
        return found.size


class DiskCache:
    """Files by key in a folder; safe among threads and processes.

    A disk that cannot be written costs speed and nothing else. The folder is for its owner alone:
    it may hold what people upload, too.
    """

    def __init__(
        self,
        folder: Path,  # made when the first content comes
        most_bytes: int,  # of all files; those not used for longest go first
        *,
        largest: int = 64 << 20,  # bytes of the largest content that is kept
    ) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self.largest = min(largest, most_bytes)
        self._lock = threading.Lock()
        self._written = most_bytes  # counted at the first write

    def get(self, key: str) -> bytes | None:
        """What is kept under a key; None where nothing is, or it cannot be read."""
        file = self._folder / key
        try:
            content = file.read_bytes()
        except OSError:
            return None
        with suppress(OSError):
            os.utime(file)
        return content

    def drop(self, key: str) -> None:
        """Let go of what turned out to be damaged."""
        with suppress(OSError):
            (self._folder / key).unlink()

    def put(self, key: str, content: bytes) -> None:
        """Keep a content as a whole, if there is room on the disk and it is not too large."""
        if len(content) > self.largest:
            return
        file, draft = self._folder / key, self._folder / f"{key}.{uuid.uuid4().hex}"
        try:
            if file.exists():
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_bytes(content)
            draft.replace(file)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            return
        self._make_room(len(content))

    def _make_room(self, written: int) -> None:
        """Count, and remove what is over, after each tenth of the bound that was written."""
        with self._lock:
            self._written += written
            if self._written < self._most_bytes // 10:
                return
            self._written = 0
        found: list[tuple[float, int, Path]] = []
        with suppress(OSError):
            for file in self._folder.iterdir():
                with suppress(OSError):
                    told = file.stat()
                    found.append((told.st_mtime, told.st_size, file))
        over = sum(size for _, size, _ in found) - self._most_bytes
        for _, size, file in sorted(found):
            if over <= 0:
                return
            with suppress(OSError):
                file.unlink()
                over -= size
