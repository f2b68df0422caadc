"""Many writers on one Hub, in good weather and bad: nothing is lost, doubled or half there."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leaderboard.store.hub.layout import Part
from leaderboard.store.interface import transact
from tests.hub.faults import Weather
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created, parts_of

pytestmark = pytest.mark.usefixtures("no_rests")
REQUESTS = f"{NAME}-requests"


def test_a_hub_that_fails_a_fifth_of_all_requests_loses_and_doubles_nothing(
    hub: HubServer, tmp_path: Path
) -> None:
    created(hub, tmp_path)
    hub.faults.weather(Weather(0.2, seed=3))

    def add(worker: int) -> None:
        public = parts_of(hub, tmp_path / str(worker), pauses=[0.01] * 20).public
        for turn in range(4):
            name = f"results/{worker}-{turn}"

            def change(name: str = name) -> dict[str, bytes]:
                done = public.read("log").decode() if public.has("log") else ""
                return {
                    "log": f"{done}{name}\n".encode(),
                    f"{name}/a.json": b"{}",
                    f"{name}/a.scores.parquet": name.encode(),
                }

            transact(public, change, "add", attempts=200, sleep=lambda _: None)

    _together(add, 3)
    hub.faults.clear()
    public = parts_of(hub, tmp_path / "reader").public
    lines = public.read("log").decode().split()
    assert Counter(lines) == Counter(f"results/{w}-{t}" for w in range(3) for t in range(4))
    assert len(public.list("results/")) == 24
    for line in lines:
        assert public.read(f"{line}/a.scores.parquet") == line.encode()


@pytest.mark.slow
def test_eight_writers_at_once_each_land_exactly_once(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path)

    def add(worker: int) -> None:
        public = parts_of(hub, tmp_path / str(worker)).public
        for turn in range(3):

            def change(turn: int = turn) -> dict[str, bytes]:
                done = public.read("log").decode() if public.has("log") else ""
                return {
                    "log": f"{done}{worker}-{turn}\n".encode(),
                    f"results/{worker}-{turn}/a.json": b"{}",
                }

            transact(public, change, "add", attempts=500)

    stop, seen = threading.Event(), set()
    reader = parts_of(hub, tmp_path / "watching")

    def watch() -> None:
        while not stop.is_set():
            version = reader.public.version(reader.public.fresh_head())
            decisive, results = (reader.repositories[p] for p in (Part.REQUESTS, Part.RESULTS))
            listed = results.list_at("results/", version.of(Part.RESULTS))
            lines = decisive.read_at("log", version.sha).decode().split() if listed else []
            assert {path.split("/")[1] for path in listed} == set(lines), "half a commit"
            seen.add(len(lines))

    with ThreadPoolExecutor(1) as watching:
        watched = watching.submit(watch)
        _together(add, 8)
        stop.set()
        watched.result()
    assert len(seen) > 3
    public = parts_of(hub, tmp_path / "reader").public
    assert Counter(public.read("log").decode().split()) == Counter(
        f"{w}-{t}" for w in range(8) for t in range(3)
    )
    assert len(public.list("results/")) == 24
    assert hub.tally.commits(REQUESTS) == 1 + 24


def _together(work: object, n: int) -> None:
    errors: list[BaseException] = []

    def run(worker: int) -> None:
        try:
            work(worker)  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 (told by the test)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
