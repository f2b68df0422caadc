"""Transactions that come together are one commit, and each goes as if it had come alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    transact,
)
from leaderboard.store.memory import MemoryRepository
from tests.leaderboard.store.grouping_rig import Room, append_to


def test_transactions_that_come_while_a_commit_runs_are_the_next_one(room: Room) -> None:
    changes = [append_to(room.store, "log", b"%d." % n) for n in range(10)]
    versions = {future.result(60) for future in room.together(*changes)}
    assert versions == {"2"}
    assert room.store.read("log") == b"0.1.2.3.4.5.6.7.8.9."
    assert len(room.gate.messages) == 2
    assert room.gate.messages[1].splitlines()[2:] == [f"m{n}" for n in range(10)]


def test_a_change_sees_what_those_before_it_write_and_nobody_else_does(
    room: Room, tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(b"of this machine")
    seen: list[object] = []
    outside: list[tuple[str, ...]] = []

    def look() -> Changes:
        with ThreadPoolExecutor(1) as other:
            outside.append(other.submit(room.store.list).result(60))
        room.store.fetch("big", tmp_path / "copy")
        with pytest.raises(NotFoundError):
            room.store.read("first")
        seen.append((room.store.list(), room.store.read("big"), (tmp_path / "copy").read_bytes()))
        return {"looked": b"1"}

    writes: list[Changes] = [{"a/b": b"1"}, {"big": tmp_path / "big"}, {"first": None}]
    futures = room.together(*((lambda w=w: w) for w in writes), look)
    assert [future.result(60) for future in futures] == ["2"] * 4
    assert seen == [(("a/b", "big"), b"of this machine", b"of this machine")]
    assert outside == [("first",)]
    assert room.store.list() == ("a/b", "big", "looked")


def test_every_step_has_a_head_that_is_no_version(room: Room) -> None:
    heads: list[str] = []

    def step() -> Changes:
        heads.append(room.store.head())
        return {f"f{len(heads)}": b"1"}

    def stumble() -> None:
        room.gate._under.commit({"x": b""}, parent=room.gate._under.head(), message="meanwhile")

    room.gate.close()
    first = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(60)
    futures = [room.start(step) for _ in range(3)]
    room.gate.before = lambda: setattr(room.gate, "before", stumble)
    room.gate.open()
    for future in (first, *futures):
        future.result(60)
    assert len(heads) == len(set(heads)) == 6  # asked again after the lost race
    assert not {head for head in heads if head.isdigit()}


def test_who_is_refused_leaves_no_trace_and_holds_nobody_up(room: Room) -> None:
    def refuse() -> Changes:
        raise SubmitterError("no", "Not this one.")

    ok, no, also = room.together(
        append_to(room.store, "log", b"a"), refuse, append_to(room.store, "log", b"b")
    )
    assert (ok.result(60), also.result(60)) == ("2", "2")
    with pytest.raises(SubmitterError, match="Not this one"):
        no.result(60)
    assert room.store.read("log") == b"ab"
    assert "m1" not in room.gate.messages[1].splitlines()


def test_a_refusal_over_what_was_never_committed_does_not_count(room: Room) -> None:
    """The second refuses because of the first, whose commit fails: then it is asked again."""

    def only_one() -> Changes:
        if room.store.has("taken"):
            raise SubmitterError("taken", "Somebody else was first.")
        return {"taken": b"second"}

    def fail() -> None:
        raise TransientError("hub_down", "The medium failed.")

    room.gate.close()
    before = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(60)
    futures = [room.start(lambda: {"taken": b"first"}), room.start(only_one)]
    room.gate.before = lambda: setattr(room.gate, "before", fail)
    room.gate.open()
    before.result(60)
    with pytest.raises(TransientError, match="The medium failed"):
        futures[0].result(60)
    futures[1].result(60)
    assert room.store.read("taken") == b"second"


def test_only_those_who_cannot_be_committed_are_told_so(room: Room) -> None:
    """One would make a folder of a file that is there; the medium alone knows."""
    good = [append_to(room.store, "log", b"%d" % n) for n in range(3)]
    futures = room.together(good[0], lambda: {"first/inside": b"1"}, good[1], good[2])
    with pytest.raises(PlatformError) as caught:
        futures[1].result(60)
    assert caught.value.code == "path_clash"
    for n in (0, 2, 3):
        futures[n].result(60)
    assert room.store.read("log") == b"012"


def test_what_could_not_be_committed_is_not_mended_by_who_comes_after_it(room: Room) -> None:
    clash, gone = room.together(lambda: {"first/inside": b"1"}, lambda: {"first": None})
    with pytest.raises(PlatformError, match="cannot be a file and"):
        clash.result(60)
    gone.result(60)
    assert room.store.list() == ()


def test_what_is_written_and_taken_away_again_is_two_commits(room: Room) -> None:
    """In one it would be as if it had never been, and nobody could tell whether it could."""
    futures = room.together(lambda: {"a": b"1"}, lambda: {"a": None, "b": room.store.read("a")})
    assert [future.result(60) for future in futures] == ["2", "3"]
    assert room.store.list() == ("b", "first")


@pytest.mark.parametrize(
    ("limits", "commits"),
    [({"files": 3}, 4), ({"n_bytes": 350}, 4), ({}, 1)],
    ids=["files", "bytes", "neither"],
)
def test_a_commit_that_would_be_too_large_is_several(limits: dict[str, int], commits: int) -> None:
    room = Room(limits=limits)
    futures = room.together(*((lambda n=n: {f"f{n}": bytes(100)}) for n in range(10)))
    for future in futures:
        future.result(60)
    assert len(room.gate.messages) == 1 + commits
    assert len(room.store.list()) == 11


def test_a_file_that_cannot_be_read_fails_its_own_commit(room: Room, tmp_path: Path) -> None:
    futures = room.together(
        lambda: {"a": b"1"}, lambda: {"b": tmp_path / "missing"}, lambda: {"c": b"1"}
    )
    with pytest.raises(FileNotFoundError):
        futures[1].result(60)
    assert [futures[0].result(60), futures[2].result(60)] == ["2", "3"]


def test_a_bad_path_is_refused_to_whoever_asked_for_it(room: Room) -> None:
    futures = room.together(lambda: {"a": b"1"}, lambda: {"../b": b"1"}, lambda: {"c": b"1"})
    with pytest.raises(PlatformError, match="not a path inside the store"):
        futures[1].result(60)
    assert {futures[0].result(60), futures[2].result(60)} == {"2"}


def test_a_transaction_inside_a_change_is_made_by_itself(room: Room) -> None:
    """Also while all groups are at work: nobody waits for one who waits for them."""
    other = Grouping(MemoryRepository())

    def change() -> Changes:
        transact(other, append_to(other, "details", b"."), "details")
        return append_to(room.store, "log", other.read("details")[-1:])()

    def look() -> Changes:
        return {"looked": str(room.store.list()).encode()}

    futures = room.together(*[change] * 5)
    futures += [room._pool.submit(transact, other, look, "look") for _ in range(3)]
    for future in futures:
        future.result(60)
    assert room.store.read("log") == b"....."
    assert other.read("details").count(b".") >= 5


def test_a_commit_of_its_own_works_as_before(room: Room) -> None:
    version = room.store.commit({"a": b"1"}, parent=room.store.head(), message="m")
    with pytest.raises(ConflictError):
        room.store.commit({"a": b"2"}, parent="0", message="m")
    assert (room.store.head(), room.store.read("a")) == (version, b"1")


def test_a_change_that_commits_by_itself_loses_its_race(room: Room) -> None:
    """As it does without groups: what it had read is of an older version then."""
    tries: list[int] = []

    def once() -> Changes:
        tries.append(1)
        if len(tries) == 1:
            room.store.commit({"x": b"1"}, parent=room.store.head(), message="by itself")
            raise PlatformError("illegal", "The files contradict each other.")
        return {"y": room.store.read("x")}

    first, second = room.together(append_to(room.store, "log", b"."), once)
    assert first.result(60) == second.result(60) == "3"
    assert [room.store.read(path) for path in ("log", "x", "y")] == [b".", b"1", b"1"]
