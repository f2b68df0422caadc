"""Who is taken for dead: by the medium's clock, by locks, by leases, and never by mistake."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from evaluator.worker.claims.liveness import Liveness
from evaluator.worker.claims.pace import LONGEST_LEASE, SHORTEST_LEASE, Pace
from evaluator.worker.claims.presence import Presence
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store import interface
from leaderboard.store.live.interface import MemoryLive, Pulse
from leaderboard.store.memory import memory_store
from tests.evaluator.rig import Clock, FakeBackend, Rig
from tests.evaluator.worker.breaking import published_once
from tests.evaluator.worker.stock import stock


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def at_work(rig: Rig) -> Status:
    """A submission that `w1` holds, with a lease of hours."""
    (name,) = stock(rig.store, ["hub:ada"])
    rig.worker("w1")._claims.more()
    return Ledger(rig.store).status(name)


def liveness(rig: Rig, name: str = "w2") -> Liveness:
    def beat() -> None:
        rig.store.live.beat(pulse(name, rig.clock()))

    presence = Presence(rig.folder / "workers", name)
    return Liveness(name, rig.store.live, presence, beat, rig.clock)


def pulse(worker: str, at: datetime, **more: object) -> Pulse:
    known = {"worker": worker, "at": at, "isolation_ok": True, "isolation": ""}
    return Pulse.model_validate(known | more)


def test_whoever_beats_is_alive_long_after_the_lease(rig: Rig) -> None:
    status = at_work(rig)
    rig.clock.move(days=2)
    rig.store.live.beat(pulse("w1", rig.clock() - timedelta(seconds=50)))
    assert liveness(rig).look().gone(status) is None


def test_whoever_is_silent_for_a_minute_is_gone_and_it_is_said_since_when(rig: Rig) -> None:
    status = at_work(rig)
    rig.store.live.beat(pulse("w1", rig.clock()))
    rig.clock.move(seconds=61)
    gone = liveness(rig).look().gone(status)
    assert gone is not None
    assert gone.why == "w1 was silent since 2026-01-01 00:00:00 UTC."


def test_where_ones_own_pulse_does_not_arrive_the_silence_of_others_proves_nothing(
    rig: Rig,
) -> None:
    status = at_work(rig)
    rig.store.live.beat(pulse("w1", rig.clock()))
    rig.clock.move(seconds=61)
    deaf = replace(liveness(rig), beat=lambda: None)
    assert deaf.look().gone(status) is None
    rig.clock.move(hours=9)
    gone = deaf.look().gone(status)
    assert gone is not None
    assert "lease" in gone.why


def test_a_pulse_from_the_future_proves_nothing_either(rig: Rig) -> None:
    status = at_work(rig)
    rig.store.live.beat(pulse("w1", rig.clock() + timedelta(hours=20)))
    assert liveness(rig).look().gone(status) is None
    rig.clock.move(hours=9)
    assert liveness(rig).look().gone(status) is not None


def test_a_lease_that_ran_out_this_minute_is_borne_with(rig: Rig) -> None:
    status = at_work(rig)
    rig.clock.move(hours=8, minutes=1)
    assert liveness(rig).look().gone(status) is None
    rig.clock.move(minutes=2)
    assert liveness(rig).look().gone(status) is not None


def test_without_pulses_leases_decide(rig: Rig) -> None:
    class Away(MemoryLive):
        def pulses(self) -> tuple[Pulse, ...]:
            raise TransientError("relay_down", "The relay is down.")

    status = at_work(rig)
    there = replace(liveness(rig), live=Away())
    rig.clock.move(hours=7)
    assert there.look().gone(status) is None
    assert there.workers() == 1


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_machine_whose_clock_is_an_hour_off_steals_nothing_and_loses_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Everything is told by the medium's clock; the machine's own is asked by nobody."""
    names = stock(rig.store, ["hub:ada", "hub:bob"])
    machine = time.time
    stolen: list[bool] = []

    def during(n: int, _: str) -> float:
        if len(rig.backend.asked) == 5:
            rig.clock.move(seconds=30)
            right.heart.beat()
            with monkeypatch.context() as off:
                off.setattr(time, "time", lambda: machine() + hours * 3600)
                off.setattr(
                    interface, "utc_now", lambda: datetime.now(UTC) + timedelta(hours=hours)
                )
                wrong.heart.beat()
                stolen.append(wrong.run_next())
                assert not wrong.run_next()
        return float(n)

    right, wrong = rig.worker("right"), rig.worker("wrong")
    rig.backend.score = during
    assert right.run_next()
    assert stolen == [True], "it took the one that waited"
    assert all(published_once(rig.store, name) for name in names)
    by = {name: {e.by for e in Ledger(rig.store).events(name)} for name in names}
    assert by[names[0]] == {"hub:ada", "right"}
    assert by[names[1]] == {"hub:bob", "wrong"}


def test_a_lock_tells_that_its_process_is_gone_and_only_then(tmp_path: Path) -> None:
    other = Presence(tmp_path, "w2")
    with Presence(tmp_path, "w1"):
        assert not other.ended("w1")
    assert other.ended("w1")
    assert not other.ended("w3"), "nothing is known of it"
    assert not other.ended("../w1")
    (tmp_path / "w1.lock").write_text("another start of the machine")
    assert not other.ended("w1")


def test_locks_of_long_ago_are_removed(tmp_path: Path) -> None:
    with Presence(tmp_path, "old"), Presence(tmp_path, "new") as new:
        later = time.time() + 8 * 24 * 3600
        new.sweep(later)
        assert (tmp_path / "old.lock").exists()
    new.sweep(later)
    assert not (tmp_path / "old.lock").exists()


def test_a_worker_whose_process_is_gone_is_followed_at_once(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    first = rig.worker("w1")
    with first._parts.presence:
        assert first._claims.more()
        assert not rig.worker("w2").run_next()
    assert rig.worker("w2").run_next()
    assert published_once(rig.store, name)


def test_a_lease_follows_what_runs_take_here_within_bounds(rig: Rig) -> None:
    at_work(rig)
    (status,) = Ledger(rig.store).statuses()
    job, pace = status.job, Pace()
    assert pace.lease([job]) == LONGEST_LEASE, "nothing is known yet"
    pace.took(job, 10.0)
    assert pace.lease([job]) == SHORTEST_LEASE
    assert pace.lease([job] * 3) == 3 * SHORTEST_LEASE, "the third waits for the others"
    assert Pace().lease([job] * 8) == timedelta(hours=24), "and no lease is longer than a day"
    pace.took(job, 1800.0)
    pace.took(job, 20.0)
    assert pace.lease([job]) == timedelta(hours=3), "the slowest counts"
    pace.took(job, 10.0**6)
    assert pace.lease([job]) == LONGEST_LEASE


def test_a_store_is_asked_no_more_often_than_it_wants(tmp_path: Path) -> None:
    looks: list[datetime] = []
    rig = Rig(tmp_path, store=replace(memory_store(), look_every_s=5.0))
    stock(rig.store, ["hub:ada"])
    worker = rig.worker(listener=lambda _: rig.clock.move(seconds=1))
    check = worker._claims.check_still_mine

    def counted(name: str) -> None:
        looks.append(rig.clock())
        check(name)

    object.__setattr__(worker._claims, "check_still_mine", counted)
    assert worker.run_next()
    between = [later - earlier for earlier, later in pairwise(looks[:-1])]
    assert between
    assert min(between) >= timedelta(seconds=5)


class Killed(BaseException):
    """Like a signal."""


def test_the_state_of_what_is_taken_over_says_whose_it_was(rig: Rig) -> None:
    def die(*_: object) -> float:
        raise Killed

    (name,) = stock(rig.store, ["hub:ada"])
    rig.backend = FakeBackend(die)
    first = rig.worker("w1")
    with pytest.raises(Killed), first.heart:
        first.run_next()
    rig.clock.move(minutes=2)
    rig.backend = FakeBackend()
    assert rig.worker("w2").run_next()
    claims = [e for e in Ledger(rig.store).events(name) if e.state is State.CLAIMED]
    assert [(e.by, e.reason != "", e.nonce != "") for e in claims] == [
        ("w1", False, True),
        ("w2", True, True),
    ]
    assert claims[0].nonce != claims[1].nonce
    assert isinstance(rig.clock, Clock)
