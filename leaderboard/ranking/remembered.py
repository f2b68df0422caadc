"""Keeps what was made, as long as it fits: by key, what was used last stays longest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from leaderboard.together import Together

_Kept = TypeVar("_Kept")


class Remembered(Generic[_Kept]):
    """Values by key, bounded in bytes and in number; several threads may share one.

    Args:
        most_bytes: kept at a time, as `size` counts them.
        most: values kept, however small they are.
        size: bytes of a value.
    """

    def __init__(self, most_bytes: int, most: int, size: Callable[[_Kept], int]) -> None:
        self._most_bytes, self._most, self._size = most_bytes, most, size
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[_Kept, int]] = OrderedDict()
        self._together: Together[_Kept] = Together()
        self._bytes = 0

    @property
    def nbytes(self) -> int:
        """What is kept now."""
        return self._bytes

    def get(self, key: Hashable) -> _Kept | None:
        """The value of a key; None where none is kept."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: _Kept) -> None:
        """Keep a value in the place of the one before; one larger than everything is not kept."""
        size = self._size(value)
        with self._lock:
            self._drop(key)
            self._kept[key] = value, size
            self._bytes += size
            while self._bytes > self._most_bytes or len(self._kept) > self._most:
                self._drop(next(iter(self._kept)))

    def of(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        """The value of a key, made where none is kept.

        Of those who want the same at once one makes it, and the others wait for what it gets, be
        that an error.
        """
        found = self.get(key)
        return self._together.of(key, lambda: self._made(key, make)) if found is None else found

    def _made(self, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        found = self.get(key)  # by another, since it was looked for
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def _drop(self, key: Hashable) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self._bytes -= size
