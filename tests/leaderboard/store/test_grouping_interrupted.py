"""Who loses a race, is stopped or meets a failing medium holds up nobody who came with it."""

from __future__ import annotations

import pytest

from benchmarks.errors import TransientError
from leaderboard.store.grouping import Grouping
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    transact,
)
from leaderboard.store.memory import MemoryRepository
from leaderboard.store.turns import Member, Turns
from tests.leaderboard.store.grouping_rig import Room, append_to, until


def test_who_lost_too_many_races_is_told_so_and_the_others_go_on(room: Room) -> None:
    def meanwhile() -> None:
        room.gate._under.commit({"x": b""}, parent=room.gate._under.head(), message="meanwhile")

    room.gate.close()
    first = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(60)
    patient = room.start(append_to(room.store, "log", b"p"))
    hasty = room._pool.submit(
        transact, room.store, append_to(room.store, "log", b"h"), "hasty", attempts=1
    )
    until(lambda: len(room.store._turns.waiting()) == 3)
    room.gate.before = lambda: setattr(room.gate, "before", meanwhile)
    room.gate.open()
    first.result(60)
    with pytest.raises(ConflictError):
        hasty.result(60)
    patient.result(60)
    assert room.store.read("log") == b"p"


def test_a_thread_that_is_interrupted_holds_nobody_up(room: Room) -> None:
    class Stopped(BaseException):
        pass

    def stop() -> Changes:
        raise Stopped

    futures = room.together(lambda: {"a": b"1"}, stop, lambda: {"c": b"1"})
    with pytest.raises(Stopped):
        futures[1].result(60)
    assert {futures[0].result(60), futures[2].result(60)} == {"2"}
    assert room.store._turns.waiting() == ()


def test_a_leader_that_is_interrupted_leaves_the_lead_to_another(room: Room) -> None:
    class Stopped(BaseException):
        pass

    def stop() -> None:
        raise Stopped

    room.gate.close()
    room.gate.before = stop
    leader = room.start(lambda: {"first": b"1"})
    assert room.gate.arrived.wait(60)
    others = [room.start(append_to(room.store, "log", b"%d" % n)) for n in range(3)]
    room.gate.open()
    with pytest.raises(Stopped):
        leader.result(60)
    assert {other.result(60) for other in others} == {"1"}
    assert room.store.read("log") == b"012"


def test_a_leader_that_is_interrupted_before_it_begins_leaves_the_lead_to_another(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(BaseException):
        pass

    def stop(store: Grouping, own: Member) -> None:
        monkeypatch.undo()
        raise Stopped

    monkeypatch.setattr(Grouping, "_lead", stop)
    with pytest.raises(Stopped):
        transact(room.store, lambda: {"a": b"1"}, "stopped")
    assert room.start(lambda: {"b": b"1"}).result(60) == "1"
    assert room.store.list() == ("b",)


@pytest.mark.parametrize("how", ["gone", "over"])
def test_who_was_interrupted_at_work_or_has_ended_is_not_waited_for(room: Room, how: str) -> None:
    turns, left = Turns(), Member(dict, "m", 1, lambda _: None, busy=True)
    turns.join(left)
    if how == "gone":
        left.gone = True
    else:
        left.version = "1"
    assert turns.waiting() == ()
    assert room._pool.submit(turns.ask, left, room.store).result(60) is None


def test_a_medium_that_cannot_say_its_version_fails_each_who_waits() -> None:
    class Down(MemoryRepository):
        def head(self) -> str:
            raise TransientError("hub_down", "No answer.")

    store = Grouping(Down())
    with pytest.raises(TransientError, match="No answer"):
        transact(store, lambda: {"a": b"1"}, "m")
    assert store._turns.waiting() == ()
