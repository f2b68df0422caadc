"""Histories squashed: files stay, readers go on, writers in flight lose nothing but the race."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.layout import PAYLOAD, Part
from leaderboard.store.hub.squashing import squash
from leaderboard.store.interface import Changes, ConflictError, transact
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, NOWHERE, created, parts_of


@pytest.fixture
def parts(hub: HubServer, tmp_path: Path) -> HubParts:
    made = created(hub, tmp_path / "mine")
    for n in range(4):
        made.public.commit(_changes(n), parent=made.public.head(), message="m")
        made.private.commit({"upload": b"%d" % n}, parent=made.private.head(), message="m")
    return made


def test_a_squashed_store_holds_what_it_held(hub: HubServer, parts: HubParts) -> None:
    before = _read(parts)
    said = list(squash(parts))
    assert said == [
        f"{NAME}-scores: 6 commits became 1.",
        f"{NAME}-results: 6 commits became 1.",
        f"{NAME}-requests: 8 commits became 1.",
        f"{NAME}-submissions: 6 commits became 1.",
    ]
    reader = parts_of(hub, NOWHERE)
    assert _read(parts) == _read(reader) == before
    assert reader.private.read("upload") == b"3"
    for part in Part:
        repository = hub.repositories[parts.name.of(part)]
        assert len(list(repository.history(repository.branches["main"]))) == 1
    for part in PAYLOAD:
        pin = parts.public.version(parts.public.head()).pins[part]
        assert list(hub.repositories[parts.name.of(part)].tags.values()) == [pin]


def test_a_squashed_store_can_be_written_and_squashed_again(
    hub: HubServer, parts: HubParts
) -> None:
    list(squash(parts))
    parts.public.commit(_changes(9), parent=parts.public.fresh_head(), message="m")
    list(squash(parts))
    assert _read(parts)["queue.json"] == b"9"


def test_a_squash_puts_back_what_a_crash_left_in_a_part(hub: HubServer, parts: HubParts) -> None:
    before = _read(parts)
    pin = parts.public.version(parts.public.head()).pins[Part.RESULTS]
    parts.repositories[Part.RESULTS].commit_onto(pin, {"snapshot.parquet": b"half"}, "half")
    list(squash(parts))
    assert _read(parts) == before
    results = hub.repositories[f"{NAME}-results"]
    assert results.files(results.branches["main"])["snapshot.parquet"].content == b"snap 3"


def test_a_reader_in_mid_flight_goes_on(hub: HubServer, parts: HubParts) -> None:
    reader = parts_of(hub, NOWHERE, fresh_for_s=1000.0)
    assert reader.public.read("queue.json") == b"3"
    assert reader.private.list() == ("upload",)
    list(squash(parts))
    assert reader.public.read("results/0/a.json") == b"{0}"
    assert reader.public.list("results/0/") == ("results/0/a.json", "results/0/a.scores.parquet")
    assert reader.private.read("upload") == b"3"


def test_a_commit_based_on_a_squashed_version_has_lost_the_race(
    hub: HubServer, parts: HubParts
) -> None:
    late = parts_of(hub, NOWHERE, fresh_for_s=1000.0)
    old, old_private = late.public.head(), late.private.head()
    list(squash(parts))
    with pytest.raises(ConflictError):
        late.public.commit({"queue.json": b"late"}, parent=old, message="m")
    with pytest.raises(ConflictError):
        late.private.commit({"upload": b"late"}, parent=old_private, message="m")
    late.public.commit({"queue.json": b"late"}, parent=late.public.head(), message="m")
    assert parts.public.read("queue.json") == b"late"


def test_writers_at_work_while_a_store_is_squashed_lose_nothing(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    parts.public.commit({"log": b""}, parent=parts.public.head(), message="m")
    stop, done, errors = threading.Event(), [], []

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
                if error.code != "store_squashing":
                    errors.append(error)
                    return
                continue
            done.append(name)
            turn += 1

    writers = [threading.Thread(target=write, args=(worker,)) for worker in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(3):
        list(squash(parts))
    stop.set()
    for writer in writers:
        writer.join()
    assert not errors, errors
    public = parts_of(hub, tmp_path / "reader").public
    assert sorted(public.read("log").decode().split()) == sorted(done)
    assert {path.split("/")[1] for path in public.list("results/") if "-" in path} == set(done)


def test_two_squashes_at_once_are_refused_until_the_first_has_run_out(
    hub: HubServer, parts: HubParts
) -> None:
    going = squash(parts)
    next(going)
    with pytest.raises(TransientError, match="Another squash"):
        list(squash(parts_of(hub, NOWHERE)))
    hub.clock.advance(16 * 60)
    list(squash(parts_of(hub, NOWHERE)))
    with pytest.raises(TransientError, match="took too long"):
        list(going)
    assert _read(parts)["queue.json"] == b"3"


@pytest.mark.parametrize("fault", [{"drop": True, "done": True}, {"status": 503, "done": True}])
def test_a_squash_whose_answer_is_lost_is_not_run_twice(
    hub: HubServer, parts: HubParts, fault: dict[str, object]
) -> None:
    before = _read(parts)
    for part in Part:
        hub.spoil(f"{parts.name.of(part)}/super-squash/", method="POST", **fault)
    list(squash(parts))
    assert _read(parts) == before
    assert len(hub.asked("/super-squash/", "POST")) == 4


def test_an_answer_under_way_during_a_squash_is_still_found(
    hub: HubServer, parts: HubParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit happened, its answer is lost, and its history is squashed before it is read."""
    private, head = parts.private, parts.private.head()
    fault = hub.spoil(f"{NAME}-submissions/commit/", method="POST", drop=True, done=True)
    looked = hub.spoil(f"{NAME}-submissions/commits/", method="GET", status=503)
    rest = parts.client.rest

    def squash_first(pause: float, error: TransientError) -> None:
        if looked.seen and fault.seen and len(hub.asked("/super-squash/", "POST")) < 4:
            other = parts_of(hub, NOWHERE)
            later = {"upload": b"newer", "other": b"1"}
            other.private.commit(later, parent=other.private.head(), message="m")
            list(squash(other))
        rest(pause, error)

    monkeypatch.setattr(parts.client, "rest", squash_first)
    made = private.commit({"upload": b"new", "mine": b"1"}, parent=head, message="m")
    assert made == private.head()
    assert private.list() == ("mine", "other", "upload")
    # What holds it holds what came after it, too: nothing is taken for known.
    assert private.read("upload") == b"newer"


def _changes(n: int) -> dict[str, bytes]:
    return {
        "queue.json": b"%d" % n,
        f"results/{n}/a.json": b"{%d}" % n,
        f"results/{n}/a.scores.parquet": b"PAR1 %d" % n,
        "snapshot.parquet": b"snap %d" % n,
    }


def _read(parts: HubParts) -> dict[str, bytes]:
    return {path: parts.public.read(path) for path in parts.public.list()}
