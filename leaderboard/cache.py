"""Memory cache: values by key within bounds of bytes, made once for all who ask at the same time."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
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
