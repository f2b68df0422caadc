"""Disks that fill up while workers run: all of it waits and says so, and ends when there is room."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.ledger.chronicle import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from tests.endurance.crew import Crew, Launcher
from tests.endurance.ladder import CallLog
from tests.endurance.verdict import (
    all_finished,
    attempts,
    check_asked,
    check_nothing_left,
    check_published,
    undisturbed,
)
from tests.endurance.worker_process import Given
from tests.evaluator.worker.stock import stock

pytestmark = pytest.mark.slow

ACCOUNTS = [f"hub:u{n}" for n in range(8)]
WORKERS = 2
SEED = 41
TIMES_FULL = 12
LONGEST_FULL_S = 0.6


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A real file system of its own, of so many bytes."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"no right to mount a file system here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(folder: Path) -> Iterator[int]:
    """Not a byte is free while this is entered; tells how many were."""
    filler, written = folder / ".filler", 0
    with filler.open("wb", buffering=0) as opened:
        with suppress(OSError):
            while True:
                written += opened.write(bytes(1 << 12))
        try:
            yield written
        finally:
            filler.unlink()


def test_workers_wait_while_a_disk_is_full_and_lose_nothing(
    launcher: Launcher, place: Path
) -> None:
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS)
    chance = random.Random(SEED)
    with ExitStack() as disks:
        root = disks.enter_context(disk(place / "store", "24m"))
        scratch = disks.enter_context(disk(place / "scratch", "8m"))
        store = folder_store(root)
        ids = stock(store, ACCOUNTS)
        given = Given("w", 0, str(place), str(root), str(scratch), delay_s=0.03)
        crew = Crew(launcher, given)
        members = [crew.start(line) for line in range(WORKERS)]
        filled = Counter[str]()
        for n in range(TIMES_FULL):
            time.sleep(chance.uniform(0.01, 0.5))
            which = (root, scratch)[n % 2]
            with full(which):
                filled[which.name] += 1
                time.sleep(chance.uniform(0.05, LONGEST_FULL_S))
                assert_readable(store)
        wait_for(store, ids)
        for member in members:
            member.end()
        said = "".join((place / f"{m.given.name}.log").read_text() for m in members)
        print(f"\nfull: {dict(filled)}; told {said.count('No space left')} times in the logs")
        check_published(store, ids, wanted)
        assert attempts(store, ids) == {1: len(ids)}
        assert "No space left on device" in said
        waits = said.count("Nothing can be done for now")  # Each may have cost a batch.
        check_asked(CallLog(place / "calls"), deaths=0, disk_faults=waits)
        check_nothing_left(store, root, given)


def test_a_worker_says_that_its_disk_is_full_and_goes_on_when_there_is_room(
    launcher: Launcher, place: Path
) -> None:
    (place / "plain").mkdir()
    wanted = undisturbed(place / "plain", ACCOUNTS[:1])
    with disk(place / "scratch", "4m") as scratch:
        store = folder_store(place / "store")
        ids = stock(store, ACCOUNTS[:1])
        given = Given("w", 0, str(place), str(place / "store"), str(scratch), floor_bytes=1 << 20)
        with full(scratch):
            member = Crew(launcher, given).start()
            until = time.monotonic() + 30.0
            while "waiting: the disk has no room" not in {p.stage for p in store.live.pulses()}:
                assert time.monotonic() < until, member.said()
                time.sleep(0.05)
            assert [e.state for e in Ledger(store).events(ids[0])] == ["received", "queued"]
        wait_for(store, ids)
        member.end()
        check_published(store, ids, wanted)


def assert_readable(store: Store) -> None:
    """Whatever is written meanwhile, what is there can be read; it may have to be waited for."""
    with suppress(TransientError):
        assert len(Ledger(store).statuses()) == len(ACCOUNTS)
        assert verify(store.public) == ()


def wait_for(store: Store, ids: tuple[str, ...]) -> None:
    until = time.monotonic() + 150.0
    while not all_finished(store, ids):
        assert time.monotonic() < until
        time.sleep(0.2)
