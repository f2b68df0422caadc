"""Batch size of an asker, as found while it ran out of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluator.scoring.asking import Item

_GROWS_AFTER = 16
"""Requests that fitted one after the other before more is tried: one large image is no rule."""


@dataclass(slots=True)
class Room:
    """One asker's limits; they change while it works.

    Attributes:
        pairs: of a request with several images; None: no limit is known.
        prompts: of a request with a single image; None: no limit is known.
    """

    pairs: int | None = None
    prompts: int | None = None
    _fitted: int = 0

    def cut(self, items: Sequence[Item]) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """What is to be asked now, at least one prompt of it, and what is left for later."""
        first, *others = items
        if self.prompts is not None and len(first.asked) > self.prompts:
            now = replace(first, asked=first.asked[: self.prompts])
            later = replace(first, asked=first.asked[self.prompts :])
            return (now,), (later, *others)
        taken, pairs = 1, len(first.asked)
        for item in others:
            pairs += len(item.asked)
            if _beyond(pairs, self.pairs) or _beyond(len(item.asked), self.prompts):
                break
            taken += 1
        return tuple(items[:taken]), tuple(items[taken:])

    def shrink(self, items: Sequence[Item]) -> bool:
        """This was too much: ask for half of it next time; False if nothing can be halved."""
        self._fitted = 0
        pairs = sum(len(item.asked) for item in items)
        if len(items) > 1:
            self.pairs = max(1, pairs // 2)
            return True
        if pairs > 1:
            self.prompts = max(1, pairs // 2)
            return True
        return False

    def fitted(self) -> None:
        """A request was answered; after some of them, more is tried again."""
        self._fitted += 1
        if self._fitted < _GROWS_AFTER:
            return
        self._fitted = 0
        self.pairs = None if self.pairs is None else 2 * self.pairs
        self.prompts = None if self.prompts is None else 2 * self.prompts


def _beyond(n: int, limit: int | None) -> bool:
    return limit is not None and n > limit
