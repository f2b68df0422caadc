"""Who is taken for dead: by the medium's clock, by locks, by leases, and never by mistake."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import TransientError
from evaluator.worker import liveness as presence_module
from evaluator.worker.liveness import (
    FORGOTTEN_AFTER_S,
    LEASE,
    LEASE_HEARD,
    LEASE_SLACK,
    Liveness,
    ProcessLock,
)
from evaluator.worker.tasks import MAX_LOST
from evaluator.worker.worker import Worker
from leaderboard.records import Status
from leaderboard.replay import attempts_of
from leaderboard.states import State
from leaderboard.store import interface
from leaderboard.store.live.interface import Heartbeat, MemoryLive
from tests.kit.store import memory_store
from tests.kit.worker import (
    FakeBackend,
    Killed,
    Outage,
    Rig,
    breaking,
    on_commit,
    raising,
    wait_for,
)


def at_work(rig: Rig) -> Status:
    """A submission that `w1` holds, with a lease of an hour: it is heard."""
    (name,) = rig.stock(["hub:ada"])
    rig.worker("w1")._claims.more()
    return rig.status(name)


class NoPulses(MemoryLive):
    def pulses(self) -> tuple[Heartbeat, ...]:
        raise TransientError("relay_down", "The relay is down.")


# Pulses and leases ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "pulse_s", "other", "why"),
    [
        pytest.param(48 * 60, -50, {}, "", id="beats"),
        pytest.param(2, -61, {}, "silent", id="silent"),
        pytest.param(2, 20 * 3600, {}, "", id="future-pulse"),
        pytest.param(63, 20 * 3600, {}, "lease", id="future-pulse-lease-over"),
        pytest.param(2, -61, {"beat": lambda: None}, "", id="judge-unheard"),
        pytest.param(63, -61, {"beat": lambda: None}, "lease", id="judge-unheard-lease-over"),
        pytest.param(61, None, {}, "", id="lease-just-over"),
        pytest.param(63, None, {}, "lease", id="lease-over"),
        pytest.param(59, -61, {"live": NoPulses()}, "", id="no-pulses"),
    ],
)
def test_a_worker_is_gone_by_its_silence_or_by_its_lease(
    rig: Rig, minutes: float, pulse_s: float | None, other: dict[str, Any], why: str
) -> None:
    """Where one's own pulse does not arrive, the silence of others proves nothing."""
    status = at_work(rig)
    rig.clock.move(minutes=minutes)
    rig.store = replace(rig.store, live=MemoryLive())
    if pulse_s is not None:
        rig.beats("w1", pulse_s)
    presence = ProcessLock(rig.folder / "workers", "w2")
    judge = Liveness("w2", rig.store.live, presence, lambda: rig.beats("w2"), rig.clock)
    judge = replace(judge, **other)
    gone = judge.poll().lost_claim(status)
    assert (gone is not None) is bool(why)
    assert gone is None or why in gone.why
    assert judge.workers() >= 1


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_machine_whose_clock_is_an_hour_off_steals_nothing_and_loses_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Everything is told by the medium's clock; the machine's own is asked by nobody."""
    names = rig.stock(["hub:ada", "hub:bob"])
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
    assert rig.published_once(*names)
    by = [{e.by for e in rig.ledger.events(name)} for name in names]
    assert by == [{"hub:ada", "right"}, {"hub:bob", "wrong"}]


def test_what_a_dead_worker_left_is_finished_by_another_and_says_whose_it_was(rig: Rig) -> None:
    (name,) = rig.stock(["hub:ada"])
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
    assert rig.published_once(name)
    claims = [e for e in rig.ledger.events(name) if e.state is State.CLAIMED]
    assert [(e.by, e.reason != "", e.nonce != "") for e in claims] == [
        ("w1", False, True), ("w2", True, True),
    ]  # fmt: skip
    assert claims[0].nonce != claims[1].nonce


# Leases without heartbeats --------------------------------------------------------------------


def apart(rig: Rig, folder: Path) -> Rig:
    """The same store, seen from another machine; no heartbeat goes from one to the other."""
    store = replace(rig.store, live=MemoryLive(), heartbeats_shared=False)
    return Rig(folder, store=store, clock=rig.clock)


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Rig, Rig]:
    """Two machines of one store on which heartbeats reach nobody else, and commits are scarce."""
    first = Rig(tmp_path / "1", jobs=8, known_s=20.0)
    first.store = replace(first.store, heartbeats_shared=False)
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    second = apart(first, tmp_path / "2")
    second.known_s = 20.0
    return first, second


@pytest.mark.parametrize(
    ("shared", "live", "lease"),
    [
        (True, MemoryLive(), LEASE_HEARD),
        (False, MemoryLive(), LEASE),
        (True, NoPulses(), LEASE),
    ],
    ids=["heard", "this-machine-alone", "relay-away"],
)
def test_a_claim_is_short_where_nobody_hears_its_worker(
    tmp_path: Path, *, shared: bool, live: MemoryLive, lease: timedelta
) -> None:
    rig = Rig(tmp_path, store=replace(memory_store(), live=live, heartbeats_shared=shared))
    assert at_work(rig).lease_until == rig.clock() + lease


def test_a_lost_machine_holds_its_work_for_no_longer_than_a_lease(
    machines: tuple[Rig, Rig],
) -> None:
    here, there = machines
    (name,) = here.stock(["hub:ada"])
    here.worker("w1")._claims.more()
    here.clock.move(seconds=LEASE.total_seconds())
    assert not there.worker("w2").run_next()
    here.clock.move(seconds=LEASE_SLACK.total_seconds() + 1)
    there.worker("w3").run_all()
    assert here.published_once(name)


def test_a_run_of_eight_hours_is_held_by_six_commits_an_hour_and_counts_as_one_attempt(
    machines: tuple[Rig, Rig],
) -> None:
    here, there = machines
    names = here.stock(["hub:ada", "hub:bob"])
    worker, other = here.worker("w1"), there.worker("w2")
    worker._claimed_jobs.take(worker._claims.more())
    before, since = here.head, here.status(names[0]).since
    for _ in range(8 * 60):
        here.clock.move(minutes=1)
        worker.leases.renew_due()
        assert not other._claims.more()
    assert here.head - before <= 8 * 6, "all that is held is renewed in one commit"
    statuses = [here.status(name) for name in names]
    assert [s.state for s in statuses] == [State.SCORING, State.CLAIMED]
    assert [s.attempts for s in statuses] == [1, 1]
    assert statuses[0].since == since


def test_what_another_has_taken_meanwhile_is_not_renewed(machines: tuple[Rig, Rig]) -> None:
    here, there = machines
    names = here.stock(["hub:ada", "hub:bob"])
    first = here.worker("w1")
    first._claimed_jobs.take(first._claims.more())
    here.clock.move(minutes=30)
    assert there.worker("w2")._claims.more()
    before = here.head
    first.leases.renew_due()
    assert here.head == before + 1
    assert [here.status(name).by for name in names] == ["w2", "w1"]
    first._claimed_jobs.drop_to_do()
    first.leases.renew_due()
    assert here.head == before + 1, "nothing is held"


@pytest.mark.parametrize(
    ("minutes", "lives", "soon", "later"),
    [(4, False, "w2", "w2"), (40, True, "w1", "w1"), (40, False, "w1", "w2")],
    ids=["blink", "owner-lives", "owner-lost"],
)
def test_after_an_outage_others_have_time_to_renew_their_leases(
    machines: tuple[Rig, Rig], minutes: float, *, lives: bool, soon: str, later: str
) -> None:
    here, there = machines
    (name,) = here.stock(["hub:ada"])
    owner = here.worker("w1")
    owner._claimed_jobs.take(owner._claims.more())
    outage = Outage()
    there.store = breaking(there.store, outage)
    other = there.worker("w2")
    here.clock.move(minutes=max(0.0, 23 - minutes))
    other._step(1.0)
    outage.begins()
    other._step(1.0)
    outage.ends(here, minutes=minutes)
    for _ in range(2):
        other._step(1.0)
    assert here.status(name).by == soon
    if lives:
        owner.leases.renew_due()
    here.clock.move(minutes=6)
    other._step(1.0)
    assert here.status(name).by == later


def test_a_worker_renews_its_leases_while_it_works(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence_module, "LEASE", timedelta(0))
    (name,) = rig.stock(["hub:ada"])

    def long_run() -> None:
        until = rig.status(name).lease_until
        rig.clock.move(minutes=50)
        worker.heart.beat()
        wait_for(lambda: rig.status(name).lease_until != until)

    rig.when_asked(5, long_run)
    worker = rig.worker("w1")
    worker.run_all()
    assert rig.published_once(name)


# What a lost worker was at --------------------------------------------------------------------


def attempts(rig: Rig, names: tuple[str, ...]) -> list[list[str]]:
    return [[one.by for one in attempts_of(rig.ledger.events(name))] for name in names]


def killed_by(rig: Rig, name: str, job: str) -> Worker:
    """A worker that is killed as soon as this job is asked anything."""

    def score(brightness: int, _: str) -> float:
        if worker.heart.pulse.submission_id == job:
            raise Killed
        return float(brightness)

    rig.backend = FakeBackend(score)
    worker = rig.worker(name)
    return worker


def test_of_the_batch_of_a_lost_worker_the_job_under_way_alone_loses_an_attempt(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, jobs=8, known_s=20.0)
    names = rig.stock(["hub:ada", "hub:bob", "hub:eve"])
    worker = killed_by(rig, "w1", names[1])
    assert worker.run_next()
    rig.dies(worker)
    rig.backend = FakeBackend()
    messages: list[str] = []
    on_commit(rig.store.public, lambda _, message: messages.append(message))
    rig.worker("w2").run_all()
    assert messages.count("claimed+scoring by w2") == 3, "one by one"
    assert attempts(rig, names) == [["w2"], ["w1", "w2"], ["w2"]]
    assert rig.published_once(*names)


def test_what_kills_machines_that_nobody_hears_is_found_though_it_was_second_in_its_batch(
    machines: tuple[Rig, Rig],
) -> None:
    """Nobody knows which of a batch was under way: none loses an attempt, each is run alone."""
    here, there = machines
    names = here.stock(["hub:ada", "hub:bob", "hub:eve"])
    lost = 0
    while here.status(names[1]).unfinished and lost < 20:
        worker = killed_by((here, there)[lost % 2], f"w{lost}", names[1])
        with suppress(Killed):
            while worker.run_next():
                pass
        lost += 1
        here.clock.move(minutes=23)
    assert here.ended(names[1]) == (State.FAILED, "worker_lost", "platform")
    assert lost == 1 + MAX_LOST + 1, "a batch, so many alone, and the one that gives it up"
    assert all(here.published_once(name) for name in (names[0], names[2]))
    assert [len(one) for one in attempts(here, names)] == [1, MAX_LOST, 1]


def test_a_store_is_asked_no_more_often_than_it_wants(tmp_path: Path) -> None:
    looks: list[datetime] = []
    rig = Rig(tmp_path, store=replace(memory_store(), look_every_s=5.0))
    rig.stock(["hub:ada"])
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
    (name,) = rig.stock(["hub:ada"])
    first = rig.worker("w1")
    with first._lock:
        assert first._claims.more()
        assert not rig.worker("w2").run_next()
    assert rig.worker("w2").run_next()
    assert rig.published_once(name)


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
