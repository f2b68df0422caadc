"""Heads of a store's repositories, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part

_COUNTED = 5000


@dataclass(frozen=True, slots=True)
class Shown:
    """One repository.

    Attributes:
        name: of it.
        private: whether only members see it.
        commits: how many its history has.
        head: the commit it is at.
        pinned: the commit it is read at.
    """

    name: str
    private: bool
    commits: int
    head: str
    pinned: str


@dataclass(frozen=True, slots=True)
class ShownStore:
    """A store on the Hub.

    Attributes:
        version: of it.
        frozen_until: until when a squash stops all commits; None where none does.
        repositories: all of them.
    """

    version: str
    frozen_until: datetime | None
    repositories: tuple[Shown, ...]


def shown(parts: HubParts) -> ShownStore:
    """Look at all repositories of a store.

    Raises:
        AssayError: one is not there, or cannot be read; says why.
    """
    version = parts.public.version(parts.public.fresh_head())
    found = []
    for part in Part:
        repository = parts.repositories[part]
        name, head = repository.name, repository.fresh_head()
        commits = sum(1 for _ in islice(parts.client.history(name), _COUNTED))
        pinned = head if part is Part.SUBMISSIONS else version.of(part)
        found.append(Shown(name, parts.client.is_private(name), commits, head, pinned))
    now = parts.client.clock()
    until = version.pins.frozen_until
    frozen = until if until is not None and now < until else None
    return ShownStore(version.sha, frozen, tuple(found))
