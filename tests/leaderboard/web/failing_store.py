"""A store in memory whose medium can be switched off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.errors import TransientError
from leaderboard.store.interface import Changes, Repository, Store


class Switch:
    """Whether the medium answers."""

    def __init__(self) -> None:
        self.out = False

    def check(self) -> None:
        """Raises while it does not."""
        if self.out:
            raise TransientError("hub_unavailable", "The Hub answers 503.", "Try again later.")


class Failing:
    """A repository that fails with its medium."""

    def __init__(self, inner: Repository, switch: Switch) -> None:
        self._inner, self._switch = inner, switch

    def head(self) -> str:
        self._switch.check()
        return self._inner.head()

    def read(self, path: str) -> bytes:
        self._switch.check()
        return self._inner.read(path)

    def fetch(self, path: str, target: Path) -> None:
        self._switch.check()
        self._inner.fetch(path, target)

    def has(self, path: str) -> bool:
        self._switch.check()
        return self._inner.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        self._switch.check()
        return self._inner.list(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        self._switch.check()
        return self._inner.commit(changes, parent=parent, message=message)


def failing(store: Store, switch: Switch) -> Store:
    """The store, over a medium that the switch puts out."""
    return replace(
        store, public=Failing(store.public, switch), private=Failing(store.private, switch)
    )
