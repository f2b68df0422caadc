"""Histories squashed: files stay, readers go on, writers in flight lose nothing but the race."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import Part
from leaderboard.store.hub.maintenance import squash
from leaderboard.store.interface import Changes, ConflictError, Repository, transact
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, NOWHERE, PRIVATE, parts_of
from tests.kit.refusals import refused
from tests.kit.store import contents, put


@pytest.fixture
def filled(parts: HubParts) -> HubParts:
    for n in range(4):
        put(parts.public, _changes(n))
        put(parts.private, {"upload": b"%d" % n})
    return parts


def _changes(n: int) -> Changes:
    return {
        "queue.json": b"%d" % n,
        f"results/{n}/a.json": b"{%d}" % n,
        f"results/{n}/a.scores.parquet": b"PAR1 %d" % n,
        "snapshot.parquet": b"snap %d" % n,
    }


def test_a_squashed_store_holds_what_it_held_and_goes_on(hub: HubServer, filled: HubParts) -> None:
    before = contents(filled.public)
    told = [line.split()[:2] for line in squash(filled)]
    assert told == [
        [f"{NAME}-{part}:", commits]
        for part, commits in zip(("results", "requests", "submissions"), "686", strict=True)
    ]
    reader = parts_of(hub, NOWHERE)
    assert contents(filled.public) == contents(reader.public) == before
    assert reader.private.read("upload") == b"3"
    repositories = {part: hub.repositories[filled.name.of(part)] for part in Part}
    for repository in repositories.values():
        assert len(list(repository.history(repository.branches["main"]))) == 1
    pin = filled.public.version(filled.public.head()).pins.results
    assert list(repositories[Part.RESULTS].tags.values()) == [pin]
    filled.public.commit(_changes(9), parent=filled.public.fresh_head(), message="m")
    list(squash(filled))
    assert contents(filled.public)["queue.json"] == b"9"


def test_a_squash_puts_back_what_a_crash_left_in_a_part(hub: HubServer, filled: HubParts) -> None:
    before = contents(filled.public)
    pin = filled.public.version(filled.public.head()).pins.results
    filled.repositories[Part.RESULTS].commit_onto(pin, {"snapshot.parquet": b"half"}, "half")
    list(squash(filled))
    assert contents(filled.public) == before
    results = hub.repositories[f"{NAME}-results"]
    assert results.files(results.branches["main"])["snapshot.parquet"].content == b"snap 3"


def test_a_reader_in_mid_flight_goes_on(hub: HubServer, filled: HubParts) -> None:
    reader = parts_of(hub, NOWHERE, fresh_for_s=1000.0)
    assert reader.public.read("queue.json") == b"3"
    assert reader.private.list() == ("upload",)
    list(squash(filled))
    assert reader.public.read("results/0/a.json") == b"{0}"
    assert reader.public.list("results/0/") == ("results/0/a.json", "results/0/a.scores.parquet")
    assert reader.private.read("upload") == b"3"


def test_a_commit_to_a_squashed_version_is_lost(hub: HubServer, filled: HubParts) -> None:
    late = parts_of(hub, NOWHERE, fresh_for_s=1000.0)
    both: tuple[Repository, Repository] = (late.public, late.private)
    heads = [(repository, repository.head()) for repository in both]
    list(squash(filled))
    for repository, old in heads:
        with pytest.raises(ConflictError):
            repository.commit({"upload": b"late"}, parent=old, message="m")
    put(late.public, {"queue.json": b"late"})
    assert filled.public.read("queue.json") == b"late"


def test_writers_lose_nothing_by_a_squash(hub: HubServer, filled: HubParts, tmp_path: Path) -> None:
    put(filled.public, {"log": b""})
    stop, done = threading.Event(), []

    def write(worker: int) -> None:
        public = parts_of(hub, tmp_path / str(worker)).public
        turn = 0
        while not stop.is_set() or turn < 3:
            name = f"{worker}-{turn}"

            def change(name: str = name) -> Changes:
                log = public.read("log") + f"{name}\n".encode()
                return {"log": log, f"results/{name}/a.json": b"{}"}

            try:
                transact(public, change, "add", attempts=100)
            except TransientError as error:
                assert error.code == "store_squashing"
                continue
            done.append(name)
            turn += 1

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, worker) for worker in range(3)]
        for _ in range(3):
            list(squash(filled))
        stop.set()
        for writer in writers:
            writer.result()
    public = parts_of(hub, tmp_path / "reader").public
    assert sorted(public.read("log").decode().split()) == sorted(done)
    assert {path.split("/")[1] for path in public.list("results/") if "-" in path} == set(done)


def test_two_squashes_at_once_are_refused_for_a_while(hub: HubServer, filled: HubParts) -> None:
    going = squash(filled)
    next(going)
    with refused("store_squashing"):
        list(squash(parts_of(hub, NOWHERE)))
    hub.clock.advance(16 * 60)
    list(squash(parts_of(hub, NOWHERE)))
    with refused("squash_overtaken"):
        list(going)
    assert contents(filled.public)["queue.json"] == b"3"


@pytest.mark.parametrize("fault", [{"drop": True, "done": True}, {"status": 503, "done": True}])
def test_a_squash_is_not_run_twice(
    hub: HubServer, filled: HubParts, fault: dict[str, object]
) -> None:
    before = contents(filled.public)
    for part in Part:
        hub.spoil(f"{filled.name.of(part)}/super-squash/", method="POST", **fault)
    list(squash(filled))
    assert contents(filled.public) == before
    assert len(hub.asked("/super-squash/", "POST")) == 3


def test_an_answer_under_way_during_a_squash_is_still_found(
    hub: HubServer, filled: HubParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit happened, its answer is lost, and its history is squashed before it is read."""
    private, head = filled.private, filled.private.head()
    fault = hub.spoil(f"{PRIVATE}/commit/", method="POST", drop=True, done=True)
    looked = hub.spoil(f"{PRIVATE}/commits/", method="GET", status=503)
    rest = filled.client.rest

    def squash_first(pause: float, error: TransientError) -> None:
        if looked.seen and fault.seen and len(hub.asked("/super-squash/", "POST")) < 3:
            other = parts_of(hub, NOWHERE)
            put(other.private, {"upload": b"newer", "other": b"1"})
            list(squash(other))
        rest(pause, error)

    monkeypatch.setattr(filled.client, "rest", squash_first)
    made = private.commit({"upload": b"new", "mine": b"1"}, parent=head, message="m")
    assert made == private.head()
    assert private.list() == ("mine", "other", "upload")
    # What holds it holds what came after it, too: nothing is taken for known.
    assert private.read("upload") == b"newer"
