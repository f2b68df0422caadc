"""A worker process that is told to end stops after its batch and leaves everything to others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.commands.person import this_person
from evaluator.worker.stopping import stop_on_signals
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from tests.evaluator.worker.breaking import published_once
from tests.evaluator.worker.stock import stock
from tests.processes import running

SLOW = b"""
import time
class Scorer:
    def score(self, images, prompts):
        time.sleep(0.01 * len(images))
        return [float(len(p)) for p in prompts]
"""
AT_MOST_S = 90.0


@contextmanager
def working(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as a process, for as long as the block runs."""
    command = [sys.executable, "-m", "evaluator", "worker", "--store", str(folder)]
    command += ["--isolation", "none", "--claim", "3", *words]
    with (folder.parent / "log").open("ab") as log, running(command, stdout=log, stderr=log) as one:
        yield one


def wait_for(happened: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + AT_MOST_S
    while not happened():
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < ends
        time.sleep(0.1)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[Path, Store, tuple[str, ...]]]:
    folder = tmp_path / "store"
    store = folder_store(folder)
    ids = stock(store, [this_person().key] * 2, benchmark="demo_ts2", scorer=SLOW)
    yield folder, store, ids


def statuses(store: Store) -> tuple[Status, ...]:
    return Ledger(store).statuses()


@pytest.mark.slow
def test_a_terminated_worker_hands_everything_back_and_another_process_goes_on(
    started: tuple[Path, Store, tuple[str, ...]],
) -> None:
    folder, store, ids = started
    with working(folder) as process:
        wait_for(lambda: any(p.done >= 64 for p in store.live.pulses()), process)
        (pulse,) = store.live.pulses()
        assert set(pulse.claimed) == set(ids)
        head = int(store.public.head())
        process.send_signal(signal.SIGTERM)
        assert process.wait(AT_MOST_S) == 0, (folder.parent / "log").read_text()
    assert int(store.public.head()) == head + 1, "all of them in one commit"
    assert {(s.state, s.attempts) for s in statuses(store)} == {(State.QUEUED, 0)}
    assert "stopped" in statuses(store)[0].reason
    kept = list((folder / "scratch" / "shards" / ids[0]).rglob("*.parquet"))
    assert kept, "what was finished is kept"
    assert list((folder / "scratch" / "unpacked").iterdir()) == []

    with working(folder, "--once") as again:
        assert again.wait(AT_MOST_S) == 0, (folder.parent / "log").read_text()
    assert all(published_once(store, name) for name in ids)


def test_a_killed_workers_claims_are_taken_up_at_once_on_the_same_machine(
    started: tuple[Path, Store, tuple[str, ...]],
) -> None:
    """The kernel says that its process is gone; nobody waits for its silence or its lease."""
    folder, store, ids = started
    with working(folder) as process:
        wait_for(lambda: any(p.done >= 64 for p in store.live.pulses()), process)
        process.kill()
    assert {s.state for s in statuses(store)} == {State.SCORING, State.CLAIMED}
    with working(folder, "--once") as again:
        assert again.wait(AT_MOST_S) == 0, (folder.parent / "log").read_text()
    assert all(published_once(store, name) for name in ids)
    reasons = [e.reason for e in Ledger(store).events(ids[0]) if e.state is State.CLAIMED]
    assert len(reasons) == 2
    assert "ended" in reasons[1]


def test_the_first_signal_asks_and_the_second_interrupts() -> None:
    stop, wake = threading.Event(), threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals(stop, wake):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(60)
        assert wake.wait(60)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
    assert signal.getsignal(signal.SIGTERM) == before
