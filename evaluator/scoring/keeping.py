"""Parts on their way to disk."""

from __future__ import annotations

from collections.abc import Callable

from evaluator.scoring.parts import Part, joined
from evaluator.scoring.shards import ShardFolder


class Keeper:
    """Collects parts and writes them now and then: one file per batch would be too many.

    Args:
        shards: where they are written.
        every_s: how much work may be lost.
        clock: seconds.
    """

    def __init__(self, shards: ShardFolder, every_s: float, clock: Callable[[], float]) -> None:
        self._shards = shards
        self._every_s = every_s
        self._clock = clock
        self._flushed = clock()
        self._waiting: list[Part] = []
        self.written: list[Part] = []

    def add(self, part: Part) -> None:
        """Keep this part, soon."""
        self._waiting.append(part)
        if self._clock() - self._flushed >= self._every_s:
            self.flush()

    def flush(self) -> None:
        """Keep everything now."""
        if self._waiting:
            part = joined(self._waiting)
            self._shards.write(part)
            self.written.append(part)
            self._waiting = []
        self._flushed = self._clock()
