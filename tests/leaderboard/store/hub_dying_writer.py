"""Writers that are killed just before one of their requests.

Run as a program, it makes one for each line of its input, a JSON list of arguments of `run`, and
prints how it ended. Everything is imported once, and each writer is a fork of that process, which
has no threads.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.sources.client import get_session, httpx, limit_waiting
from leaderboard.store.hub import migration
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import squash
from leaderboard.store.interface import Changes
from tests.kit.governed import House
from tests.kit.store import memory_store


def run(what: str, last: int, folder: str, name: str, hub: tuple[str, str]) -> None:
    """Do something to a store, and die before request number `last`; below 0, of commits alone."""
    _die_before(last)
    endpoint, token = hub
    parts = HubParts(name, Path(folder), endpoint=endpoint, token=token)
    if what == "squash":
        list(squash(parts, take_over=True))
        return
    if what == "migrate":
        setattr(migration, "_FILES", 3)  # noqa: B010 (several batches)
        Path(folder).mkdir(parents=True, exist_ok=True)
        list(migration.migrate(parts, Path(folder)))
        return
    act, _, name = what.partition(" ")
    if act in {"receive", "claim"}:
        house = House(
            replace(memory_store(), public=parts.public, private=parts.private, jobs_per_commit=8)
        )
        house.send(name=name) if act == "receive" else house.claim(name)
        return
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
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(client, request, **options)

    setattr(httpx.Client, "send", send)  # noqa: B010 (not a method of ours to assign)


def serve() -> None:
    """Make writers until the input ends."""
    limit_waiting()
    get_session()  # made once, and not yet connected to anything
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run(*json.loads(line))
                os._exit(0)
            except BaseException:  # noqa: BLE001 (a fork must never go on as its parent)
                traceback.print_exc()
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
