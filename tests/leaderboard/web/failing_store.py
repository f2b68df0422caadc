"""A store in memory whose medium can be switched off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.errors import TransientError
from leaderboard.store.interface import Repository, Store


class Switch:
    """Whether the medium answers."""

    def __init__(self) -> None:
        self.out = False

    def check(self) -> None:
        """Raises while it does not."""
        if self.out:
            raise TransientError("hub_unavailable", "The Hub answers 503.", "Try again later.")


class Failing:
    """A repository that fails with its medium, and says how often it was asked."""

    def __init__(self, inner: Repository, switch: Switch) -> None:
        self.inner, self.asked, self._switch = inner, list[str](), switch

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.inner, name)  # What the inner one cannot do, this one cannot do.

        def answer(*words: Any, **more: Any) -> Any:
            self.asked.append(name)
            self._switch.check()
            return method(*words, **more)

        return answer


def failing(store: Store, switch: Switch) -> Store:
    """The store, over a medium that the switch puts out."""
    public: Any = Failing(store.public, switch)
    private: Any = Failing(store.private, switch)
    return replace(store, public=public, private=private)
