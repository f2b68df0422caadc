"""A store in memory whose medium can be switched off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from benchmarks.errors import TransientError
from leaderboard.store.interface import Repository, Store


class Switch:
    """Whether the medium answers."""

    out = False

    def check(self) -> None:
        """Raises while it does not."""
        if self.out:
            raise TransientError("hub_unavailable", "The Hub answers 503.", "Try again later.")


@dataclass
class Failing:
    """A repository that fails with its medium, whatever is asked of it."""

    inner: Repository
    switch: Switch

    def __getattr__(self, name: str) -> Any:
        def asked(*given: Any, **more: Any) -> Any:
            self.switch.check()
            return getattr(self.inner, name)(*given, **more)

        return asked


def failing(store: Store, switch: Switch) -> Store:
    """The store, over a medium that the switch puts out."""
    public, private = (
        cast(Repository, Failing(one, switch)) for one in (store.public, store.private)
    )
    return replace(store, public=public, private=private)
