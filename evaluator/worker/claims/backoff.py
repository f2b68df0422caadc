"""Ever longer pauses while something outside fails, each a little different from another's."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """How long to wait before the next try.

    Args:
        first_s: at most, after the first failure.
        most_s: at most, ever.
        draw: a number between two others; passed in by tests.
    """

    def __init__(
        self,
        first_s: float = 1.0,
        most_s: float = 60.0,
        draw: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._draw = draw
        self._failures = 0

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._failures > 0

    def next_s(self) -> float:
        """Seconds to wait after one more failure; half of it is chance, so that many spread."""
        bound = min(self._most_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return self._draw(bound / 2.0, bound)

    def reset(self) -> None:
        """It worked."""
        self._failures = 0
