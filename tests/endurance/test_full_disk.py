"""Disks that fill up while workers run: all of it waits and says so, and ends when there is room."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.ledger.audit_log import verify
from leaderboard.ledger.ledger import Ledger
from tests.endurance.crew import Launcher
from tests.endurance.ground import Ground, ground
from tests.endurance.verdict import ACCOUNTS, Undisturbed
from tests.kit.processes import finished

pytestmark = pytest.mark.slow


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Path]:
    """A real file system of its own, of so many bytes."""
    folder.mkdir()
    made = finished(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder])
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
    launcher: Launcher, place: Path, alone: Undisturbed
) -> None:
    chance, filled = random.Random(41), Counter[str]()
    with (
        disk(place / "store", "24m") as root,
        disk(place / "scratch", "8m") as scratch,
        ground("folder", place, launcher, delay_s=0.03) as here,
    ):
        here.stock(ACCOUNTS[:8])
        members = [here.crew.start() for _ in range(2)]
        for n in range(12):
            time.sleep(chance.uniform(0.01, 0.5))
            which = (root, scratch)[n % 2]
            with full(which):
                filled[which.name] += 1
                time.sleep(chance.uniform(0.05, 0.6))
                assert_readable(here)
        here.wait(members, 150.0)
        for member in members:
            member.end()
        said = "".join((place / f"{m.given.name}.log").read_text() for m in members)
        print(f"\nfull: {dict(filled)}; told {said.count('No space left')} times in the logs")
        assert "No space left on device" in said
        waits = said.count("Nothing can be done for now")  # Each may have cost a batch.
        here.check(alone, tries={1: len(here.ids)}, disk_faults=waits)


def test_a_worker_says_that_its_disk_is_full_and_goes_on_when_there_is_room(
    launcher: Launcher, place: Path, alone: Undisturbed
) -> None:
    with (
        disk(place / "scratch", "4m") as scratch,
        ground("folder", place, launcher, floor_bytes=1 << 20) as here,
    ):
        here.stock(ACCOUNTS[:1])
        with full(scratch):
            member = here.crew.start()
            until = time.monotonic() + 30.0
            while "waiting: the disk has no room" not in {
                p.stage for p in here.store.live.pulses()
            }:
                assert time.monotonic() < until, member.said()
                time.sleep(0.05)
            begun = [event.state for event in Ledger(here.store).events(here.ids[0])]
            assert begun == ["received", "queued"]
        here.wait([member], 150.0)
        member.end()
        here.check(alone)


def assert_readable(here: Ground) -> None:
    """Whatever is written meanwhile, what is there can be read; it may have to be waited for."""
    with suppress(TransientError):
        assert len(Ledger(here.store).statuses()) == len(here.ids)
        assert verify(here.store.public) == ()
