"""Seeded choices that are the same on every machine and with every library version."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A stream of choices that follows from its seed alone.

    Only `random.Random.random` is used, whose sequence Python promises to keep; everything else
    is integer arithmetic on top of it, so nothing depends on a version of Python or numpy.

    Args:
        seed: any words and numbers, e.g. `Chance("train", 7)`.
    """

    def __init__(self, *seed: str | int) -> None:
        # Not for secrets: the point of this generator is that everyone can repeat it.
        self._random = random.Random("/".join(str(part) for part in seed))  # noqa: S311

    def below(self, n: int) -> int:
        """An integer in 0..n-1."""
        return int(self._random.random() * n)

    def between(self, low: int, high: int) -> int:
        """An integer in low..high, both included; `low` where the range is empty."""
        return low + self.below(max(high - low, 0) + 1)

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return self._random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], k: int) -> list[T]:
        """`k` different options in random order."""
        return self.shuffled(options)[:k]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All options in random order (Fisher and Yates)."""
        items = list(options)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items
