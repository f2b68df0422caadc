"""Threads of one process over the Hub: few commits, and each transaction as if it were alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import Changes, transact
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import created, parts_of


def test_threads_of_two_processes_lose_nothing_and_share_commits(
    hub: HubServer, tmp_path: Path
) -> None:
    parts = [created(hub, tmp_path / "one"), parts_of(hub, tmp_path / "other")]
    stores = [Grouping(each.public) for each in parts]
    versions: set[str] = set()

    def add(number: int) -> None:
        store = stores[number % 2]

        def change() -> Changes:
            before = store.read("log") if store.has("log") else b""
            return {"log": before + b"%d." % number, f"results/x{number}/b.json": b"%d" % number}

        versions.add(transact(store, change, f"add {number}", attempts=200))

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(add, range(24)))
    seen = parts_of(hub, tmp_path / "third").public
    assert sorted(seen.read("log").decode().strip(".").split("."), key=int) == [
        str(n) for n in range(24)
    ]
    assert len(seen.list("results/")) == 24
    assert len(versions) < 24
