"""A made-up site without a server, for tests of what its pages answer."""

from __future__ import annotations

from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.pages.page import Context
from leaderboard.pages.reading import Reader
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import NOW, StubDesk, cards, fill


def site_of(desk: StubDesk, *, keeps: bool = False) -> Context:
    """A filled store with a desk before it.

    Args:
        desk: takes submissions.
        keeps: whether it queues what it takes.
    """
    store = fill(memory_store())
    if keeps:
        desk = StubDesk(store=store)
    return Context(
        Reader(store, cards()), store.live, desk, cards(), lambda: NOW, store, SignIn(Way.HUB)
    )
