"""Who is taken for dead: by the medium's clock, by locks, by leases, and never by mistake."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import TransientError
from evaluator.worker import liveness as presence_module
from evaluator.worker.claims import LONGEST_LEASE, SHORTEST_LEASE, SlowestRuns
from evaluator.worker.liveness import FORGOTTEN_AFTER_S, Liveness, ProcessLock
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store import interface
from leaderboard.store.live.interface import MemoryLive, Pulse
from leaderboard.store.memory import memory_store
from tests.evaluator.rig import FakeBackend, Killed, Rig, raising
from tests.evaluator.worker.breaking import published_once
from tests.evaluator.worker.stock import stock


def at_work(rig: Rig) -> Status:
    """A submission that `w1` holds, with a lease of eight hours."""
    (name,) = stock(rig.store, ["hub:ada"])
    rig.worker("w1")._claims.more()
    return rig.status(name)


class NoPulses(MemoryLive):
    def pulses(self) -> tuple[Pulse, ...]:
        raise TransientError("relay_down", "The relay is down.")


# Pulses and leases ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "pulse_s", "other", "why"),
    [
        pytest.param(48 * 60, -50, {}, "", id="beats"),
        pytest.param(2, -61, {}, "silent", id="silent"),
        pytest.param(2, 20 * 3600, {}, "", id="future-pulse"),
        pytest.param(9 * 60, 20 * 3600, {}, "lease", id="future-pulse-lease-over"),
        pytest.param(2, -61, {"beat": lambda: None}, "", id="judge-unheard"),
        pytest.param(9 * 60, -61, {"beat": lambda: None}, "lease", id="judge-unheard-lease-over"),
        pytest.param(8 * 60 + 1, None, {}, "", id="lease-just-over"),
        pytest.param(8 * 60 + 3, None, {}, "lease", id="lease-over"),
        pytest.param(7 * 60, -61, {"live": NoPulses()}, "", id="no-pulses"),
    ],
)
def test_a_worker_is_gone_by_its_silence_or_by_its_lease(
    rig: Rig, minutes: float, pulse_s: float | None, other: dict[str, Any], why: str
) -> None:
    """Where one's own pulse does not arrive, the silence of others proves nothing."""
    status = at_work(rig)
    rig.clock.move(minutes=minutes)
    if pulse_s is not None:
        rig.beats("w1", pulse_s)
    presence = ProcessLock(rig.folder / "workers", "w2")
    judge = Liveness("w2", rig.store.live, presence, lambda: rig.beats("w2"), rig.clock)
    judge = replace(judge, **other)
    gone = judge.look().gone(status)
    assert (gone is not None) is bool(why)
    assert gone is None or why in gone.why
    assert judge.workers() >= 1


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_machine_whose_clock_is_an_hour_off_steals_nothing_and_loses_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Everything is told by the medium's clock; the machine's own is asked by nobody."""
    names = stock(rig.store, ["hub:ada", "hub:bob"])
    machine, off_by = time.time, timedelta(hours=hours)
    stolen: list[bool] = []

    def during() -> None:
        rig.clock.move(seconds=30)
        right.heart.beat()
        with monkeypatch.context() as off:
            off.setattr(time, "time", lambda: machine() + off_by.total_seconds())
            off.setattr(interface, "utc_now", lambda: datetime.now(UTC) + off_by)
            wrong.heart.beat()
            stolen.append(wrong.run_next())
            assert not wrong.run_next()

    rig.when_asked(5, during)
    right, wrong = rig.worker("right"), rig.worker("wrong")
    assert right.run_next()
    assert stolen == [True], "it took the one that waited"
    assert all(published_once(rig.store, name) for name in names)
    by = [{e.by for e in rig.ledger.events(name)} for name in names]
    assert by == [{"hub:ada", "right"}, {"hub:bob", "wrong"}]


def test_what_a_dead_worker_left_is_finished_by_another_and_says_whose_it_was(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    rig.backend = raising(Killed())
    first = rig.worker("w1")
    first.heart.beat()
    with pytest.raises(Killed):
        first.run_next()
    assert rig.state(name) is State.SCORING
    rig.backend = FakeBackend()
    assert not rig.worker("w2").run_next(), "it may live"
    rig.clock.move(seconds=61)
    assert rig.worker("w2").run_next()
    assert published_once(rig.store, name)
    claims = [e for e in rig.ledger.events(name) if e.state is State.CLAIMED]
    assert [(e.by, e.reason != "", e.nonce != "") for e in claims] == [
        ("w1", False, True), ("w2", True, True),
    ]  # fmt: skip
    assert claims[0].nonce != claims[1].nonce


def test_a_lease_follows_what_runs_take_here_within_bounds(rig: Rig) -> None:
    job, pace = at_work(rig).job, SlowestRuns()
    assert pace.lease([job]) == LONGEST_LEASE, "nothing is known yet"
    pace.took(job, 10.0)
    assert pace.lease([job]) == SHORTEST_LEASE
    assert pace.lease([job] * 3) == 3 * SHORTEST_LEASE, "the third waits for the others"
    assert SlowestRuns().lease([job] * 8) == timedelta(hours=24), (
        "and no lease is longer than a day"
    )
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


# The locks of one machine ---------------------------------------------------------------------

LATER = FORGOTTEN_AFTER_S * 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workers"


def left_long_ago(folder: Path, name: str) -> None:
    with ProcessLock(folder, name):
        pass
    os.utime(folder / f"{name}.lock", (0.0, 0.0))


def ended(folder: Path, name: str = "w1") -> bool:
    return ProcessLock(folder, "another").ended(name)


@contextmanager
def coming_back(folder: Path) -> Iterator[threading.Thread]:
    """`w1` takes its lock in a thread; it lives after the block, and then ends."""
    back = ProcessLock(folder, "w1")
    thread = threading.Thread(target=back.__enter__)
    yield thread
    thread.join(60)
    assert (folder / "w1.lock").exists()
    assert not ended(folder)
    back.__exit__(None, None, None)
    assert ended(folder)


def test_a_worker_lives_while_it_holds_its_lock(folder: Path) -> None:
    assert not ended(folder), "nothing is known of it"
    with ProcessLock(folder, "w1"):
        assert not ended(folder)
    assert ended(folder)
    assert not ended(folder, "../w1")
    (folder / "w1.lock").write_text("another start of the machine")
    assert not ended(folder)


def test_a_worker_whose_process_is_gone_is_followed_at_once(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    first = rig.worker("w1")
    with first._lock:
        assert first._claims.more()
        assert not rig.worker("w2").run_next()
    assert rig.worker("w2").run_next()
    assert published_once(rig.store, name)


def test_locks_of_long_ago_are_removed_and_those_of_the_living_are_not(folder: Path) -> None:
    left_long_ago(folder, "old")
    with ProcessLock(folder, "w1"):
        os.utime(folder / "w1.lock", (0.0, 0.0))
        ProcessLock(folder, "w2").sweep(LATER)
    assert [file.name for file in folder.iterdir()] == ["w1.lock"]


def test_a_worker_whose_file_is_removed_before_it_has_locked_it_takes_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would else hold the lock of a file that nobody finds."""
    left_long_ago(folder, "w1")
    flock, swept = fcntl.flock, list[int]()

    def sweeping(fd: int, how: int) -> None:
        if not swept:
            swept.append(fd)
            ProcessLock(folder, "w2").sweep(LATER)
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", sweeping)
    with coming_back(folder) as thread:
        thread.start()


def test_a_worker_that_comes_back_while_its_file_is_removed_takes_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_long_ago(folder, "w1")
    unlink = Path.unlink
    with coming_back(folder) as thread:

        def beside(path: Path, *args: bool, **more: bool) -> None:
            if not thread.ident:
                thread.start()
                thread.join(0.2)  # It cannot have the lock before the file is gone.
            unlink(path, *args, **more)

        monkeypatch.setattr(Path, "unlink", beside)
        ProcessLock(folder, "w2").sweep(LATER)


def test_a_look_at_the_moment_a_worker_comes_back_does_not_keep_it_from_its_lock(
    folder: Path,
) -> None:
    """Without its lock it would be taken for ended by the very next look."""
    left_long_ago(folder, "w1")
    with coming_back(folder) as thread, (folder / "w1.lock").open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)
        thread.start()
        thread.join(0.05)


def test_whoever_cannot_have_its_lock_holds_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_module, "_PAUSE_S", 0.0)
    with ProcessLock(folder, "w1"):
        with ProcessLock(folder, "w1"):
            pass
        assert not ended(folder), "the first still lives"
