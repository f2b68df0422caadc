"""A worker that dies at its last steps, waits for room on its disk, or is woken: nothing is lost."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from evaluator.scoring import shards
from evaluator.worker.ending import outbox as outbox_module
from evaluator.worker.ending import publishing
from evaluator.worker.ending.concluding import MAX_ATTEMPTS
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.disk import write_durably
from leaderboard.store.interface import Changes
from tests.evaluator.rig import Rig
from tests.evaluator.worker.breaking import Breaking, Killed, Switch, published_once
from tests.evaluator.worker.ending.going_away import (
    entries,
    until_quiet,
)
from tests.evaluator.worker.stock import stock


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("module", "name"),
    [(shards, "_write_whole"), (outbox_module, "write_durably")],
    ids=["a shard", "the outbox"],
)
def test_a_full_disk_stops_the_work_and_fails_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    (submission,) = stock(rig.store, ["hub:ada"])
    worker = rig.worker()
    with monkeypatch.context() as patch:
        patch.setattr(module, name, full)
        for _ in range(4):
            with pytest.raises(TransientError) as caught:
                worker.run_next()
            assert caught.value.code in {"disk_failed", "disk_low"}
    assert Ledger(rig.store).status(submission).state is State.SCORING
    assert worker.run_next()
    until_quiet(rig, worker)
    assert published_once(rig.store, submission)
    assert [e.state for e in Ledger(rig.store).events(submission)].count(State.CLAIMED) == 1


def test_a_disk_that_fills_in_the_middle_of_a_file_leaves_no_half_of_an_entry(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    write, written = write_durably, list[Path]()

    def fills(path: Path, content: bytes) -> None:
        if written:
            path.write_bytes(content[: len(content) // 2])
            full()
        written.append(path)
        write(path, content)

    worker = rig.worker()
    with monkeypatch.context() as patch:
        patch.setattr(outbox_module, "write_durably", fills)
        with pytest.raises(TransientError):
            worker.run_next()
    assert list((rig.folder / "scratch" / "outbox").iterdir()) == []
    until_quiet(rig, worker)
    assert published_once(rig.store, name)


@dataclass
class NoRoom:
    """A disk that has room again after a while."""

    until: int
    looked: int = 0

    def check(self) -> None:
        self.looked += 1
        if self.looked <= self.until:
            raise TransientError("disk_low", "There is less than 1 GiB left.")


def test_a_worker_without_room_claims_nothing_and_goes_on_later(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    stop, disk = threading.Event(), NoRoom(until=1)
    worker = rig.worker(disk=disk)
    thread = threading.Thread(target=worker.run_forever, args=(stop,), kwargs={"poll_s": 0.05})
    thread.start()
    wait_for(lambda: published_once(rig.store, name))
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert disk.looked >= 2


def test_the_pulse_of_a_worker_that_waits_says_for_what(rig: Rig) -> None:
    worker = rig.worker(disk=NoRoom(until=10**6))
    with pytest.raises(TransientError):
        worker.run_next()
    assert worker._rounds._once(1.0) > 0.0
    worker.heart.beat()
    (pulse,) = rig.store.live.pulses()
    assert pulse.stage == "waiting: the disk has no room"


def wait_for(happened: Callable[[], bool], at_most_s: float = 30.0) -> None:
    done = threading.Event()
    for _ in range(int(at_most_s / 0.05)):
        if happened():
            return
        done.wait(0.05)
    raise AssertionError("It did not happen.")


def test_a_worker_that_is_woken_looks_at_once(rig: Rig) -> None:
    stop, wake = threading.Event(), threading.Event()
    worker = rig.worker(wake=wake)
    thread = threading.Thread(target=worker.run_forever, args=(stop,), kwargs={"poll_s": 3600.0})
    thread.start()
    wait_for(lambda: bool(rig.store.live.pulses()))
    (name,) = stock(rig.store, ["hub:ada"])
    wake.set()
    wait_for(lambda: published_once(rig.store, name))
    stop.set()
    thread.join(60)
    assert not thread.is_alive(), "it also sees that it is to stop"


@dataclass
class DyingAtPublication(Breaking):
    """A process that dies whenever it is about to publish."""

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        if any(path.startswith("results/") for path in changes):
            raise Killed
        return super().commit(changes, parent=parent, message=message)


def test_a_finished_submission_outlives_more_deaths_than_one_that_runs_may_cause(rig: Rig) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    plain, switch = rig.store, Switch()
    rig.store = replace(plain, public=DyingAtPublication(plain.public, switch))
    for number in range(MAX_ATTEMPTS + 2):
        with pytest.raises(Killed):
            rig.worker(f"w{number}").run_all()
        rig.clock.move(hours=9)
    assert len(rig.backend.asked) > 0
    asked = list(rig.backend.asked)
    rig.store = plain
    rig.worker("last").run_all()
    assert published_once(plain, name)
    assert rig.backend.asked == asked


def dies_judging(*_: object) -> None:
    raise Killed


def test_scores_that_their_judging_does_not_survive_get_no_more_attempts_than_code(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    monkeypatch.setattr(publishing, "judge", dies_judging)
    for number in range(MAX_ATTEMPTS):
        with pytest.raises(Killed):
            rig.worker(f"w{number}").run_all()
        assert entries(rig) == {name}
        rig.clock.move(hours=9)
    rig.worker("last").run_all()
    status = Ledger(rig.store).status(name)
    assert (status.state, status.code) == (State.FAILED, "worker_lost")


def test_what_was_judged_once_keeps_its_attempts_if_a_later_judging_is_cut_off(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = stock(rig.store, ["hub:ada"])
    plain = rig.store
    rig.store = replace(plain, public=DyingAtPublication(plain.public, Switch()))
    with pytest.raises(Killed):
        rig.worker("w0").run_all()
    rig.store = plain
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "judge", dies_judging)
        for number in range(1, MAX_ATTEMPTS + 1):
            rig.clock.move(hours=9)
            with pytest.raises(Killed):
                rig.worker(f"w{number}").run_all()
    rig.clock.move(hours=9)
    rig.worker("last").run_all()
    assert published_once(plain, name)
