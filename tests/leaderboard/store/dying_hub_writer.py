"""A writer to a store on the Hub that dies just before one of its requests; see `dying`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.sources.client import get_session, httpx, limit_waiting
from leaderboard.store.hub import migration
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import squash
from leaderboard.store.interface import Changes
from tests.kit.governed import House
from tests.kit.hub_store import NAME, store_of
from tests.leaderboard.store.dying import die

limit_waiting()
get_session()  # made once, and not yet connected to anything


def write(last: int, what: str, folder: str, endpoint: str, token: str) -> None:
    """Do something to a store, and die before request number `last`; below 0, of commits alone."""
    _die_before(last)
    parts = HubParts(NAME, Path(folder), endpoint=endpoint, token=token)
    act, _, name = what.partition(" ")
    if act == "squash":
        list(squash(parts, take_over=True))
    elif act == "migrate":
        setattr(migration, "_FILES", 3)  # noqa: B010 (several batches)
        Path(folder).mkdir(parents=True, exist_ok=True)
        list(migration.migrate(parts, Path(folder)))
    elif act == "receive":
        House(store_of(parts, jobs_per_commit=8)).send(name=name)
    elif act == "claim":
        House(store_of(parts, jobs_per_commit=8)).claim(name)
    else:
        parts.public.commit(changes_of(what), parent=parts.public.head(), message=what)


def changes_of(name: str) -> Changes:
    """A commit that touches both public repositories."""
    return {
        "queue.json": name.encode(),
        f"results/{name}/a.json": b"{}",
        f"results/{name}/a.scores.parquet": name.encode() * 10,
        "snapshot.parquet": b"snapshot " + name.encode(),
        "results/first/a.json": None if name == "second" else b"{}",
    }


def _die_before(last: int) -> None:
    sent = 0
    whole = httpx.Client.send

    def send(client: Any, request: Any, **options: Any) -> Any:
        nonlocal sent
        sent += last > 0 or "/commit/" in request.url.path
        if sent >= abs(last):
            die()
        return whole(client, request, **options)

    setattr(httpx.Client, "send", send)  # noqa: B010 (not a method of ours to assign)
