"""Memory cache of the inputs of model boards; several threads may share one."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from leaderboard.cache import MemoryCache
from leaderboard.models.board_types import Evidence, ModelBoard

_COLUMNS_BYTES = 128 << 20  # One metric's values of fifty models on 1,600 prompts take 1.5 MB
_KEPT = 512
_BOARDS = 64
_THINGS = 1024
_BOARD_BYTES = 64 << 20
_OF_MEAN = 400  # Bytes of one mean on a finished board, about


class OfView:
    """What depends on the boards of metrics at one version of the store."""

    def __init__(self) -> None:
        self._evidence: MemoryCache[Mapping[str, tuple[Evidence, str]]] = MemoryCache(
            lambda _: 1, most=4096
        )
        self.boards: MemoryCache[ModelBoard] = MemoryCache(_board_bytes, _BOARD_BYTES, _BOARDS)
        self.further: MemoryCache[Any] = MemoryCache(lambda _: 1, most=_BOARDS)

    def evidence(
        self, part: str, make: Callable[[], Mapping[str, tuple[Evidence, str]]]
    ) -> Mapping[str, tuple[Evidence, str]]:
        """What a board says of every metric on a skill; made once."""
        return self._evidence.of(part, make)


class BoardMemory:
    """Columns of scores, and boards that were asked for."""

    def __init__(self) -> None:
        self.columns: MemoryCache[Any] = MemoryCache(  # of JudgeColumns
            lambda one: one.nbytes, _COLUMNS_BYTES, _KEPT
        )
        self._things: MemoryCache[Any] = MemoryCache(lambda _: 1, most=_THINGS)
        # A large board takes 100 MB while it is made, and numpy all processors: one at a time.
        self.turn = threading.Lock()
        self._lock = threading.Lock()
        self._views: weakref.WeakKeyDictionary[Any, OfView] = weakref.WeakKeyDictionary()

    def of_view(self, view: Any) -> OfView:
        """What is kept for a view; let go with it."""
        with self._lock:
            # A view compares its boards; what ranks them is its own.
            return self._views.setdefault(view.orders, OfView())

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A small thing that is made once, such as the slices of a prompt set."""
        return self._things.of(key, make)


def _board_bytes(board: ModelBoard) -> int:
    means = sum(len(s.means) for skill in board.skills.values() for s in skill.standings.values())
    pairs = sum(
        len(s.better_than) for skill in board.skills.values() for s in skill.standings.values()
    )
    return _OF_MEAN * means + 100 * pairs
