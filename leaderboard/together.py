"""Makes a value once for all who want it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

_Made = TypeVar("_Made")


class Together(Generic[_Made]):
    """Of those who want the same at once one makes it; several threads share one object.

    Nothing is kept: whoever comes after it was made makes it again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[Hashable, Future[_Made]] = {}

    def of(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What is made under a key; those who wait get it too, be it an error."""
        with self._lock:
            awaited = self._making.get(key)
            if awaited is None:
                begun: Future[_Made] = Future()
                self._making[key] = begun
        if awaited is not None:
            return awaited.result()
        try:
            made = make()
            begun.set_result(made)
        except BaseException as error:
            begun.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._making[key]
        return made
