"""A new store on a test Hub, and what workers on it are to be."""

from __future__ import annotations

from pathlib import Path

from leaderboard.store.hub.creating import create
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.interface import Store
from tests.endurance.hub_stores import NAME, hub_store_of
from tests.endurance.worker_process import Given
from tests.hub.server import HubServer


def opened(hub: HubServer, place: Path, jobs: int = 2) -> tuple[Given, Store]:
    """Make it.

    Args:
        hub: where.
        place: folder of this test.
        jobs: claimed in one commit.
    """
    list(create(HubParts(NAME, place / "made", endpoint=hub.endpoint, token=hub.token)))
    given = Given(
        "w",
        0,
        str(place),
        NAME,
        str(place / "scratch"),
        endpoint=hub.endpoint,
        token=hub.token,
        jobs=jobs,
        steps="requests",
    )
    store = hub_store_of(
        NAME, place / "mine", live=place / "live", endpoint=hub.endpoint, token=hub.token
    )
    return given, store
