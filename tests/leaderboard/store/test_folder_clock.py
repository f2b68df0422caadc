"""The clock of a folder store: the file system's, whatever the machine believes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.store.folder import folder_store
from leaderboard.store.folder_clock import REFRESHED_EVERY_S, FolderClock

REPOSITORY = Path(__file__).resolve().parents[3]


class Steady:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_tells_the_time_by_which_files_are_stamped(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    (tmp_path / "written").write_bytes(b"x")
    stamp = datetime.fromtimestamp((tmp_path / "written").stat().st_mtime, UTC)
    assert abs(store.clock() - stamp) < timedelta(seconds=5)
    assert store.clock().tzinfo is not None


def test_a_machine_whose_clock_is_an_hour_wrong_tells_the_same_time(tmp_path: Path) -> None:
    script = (
        "import sys, time, datetime\n"
        "wrong = time.time\n"
        "time.time = lambda: wrong() + 3600\n"
        "from pathlib import Path\n"
        "from leaderboard.store.folder import folder_store\n"
        "print(folder_store(Path(sys.argv[1])).clock().isoformat())\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True, text=True, check=True, cwd=REPOSITORY,
    ).stdout  # fmt: skip
    here = folder_store(tmp_path).clock()
    assert timedelta(0) <= here - datetime.fromisoformat(told.strip()) < timedelta(seconds=60)


def test_between_two_touches_time_goes_on_by_the_steady_clock(tmp_path: Path) -> None:
    steady = Steady()
    clock = FolderClock(tmp_path / ".clock", steady)
    first = clock()
    os.utime(tmp_path / ".clock", (0, 0))
    steady.now += REFRESHED_EVERY_S / 2
    assert clock() - first == timedelta(seconds=REFRESHED_EVERY_S / 2)
    assert (tmp_path / ".clock").stat().st_mtime == 0  # it was not touched again


def test_after_a_while_the_file_system_is_asked_again(tmp_path: Path) -> None:
    steady = Steady()
    clock = FolderClock(tmp_path / ".clock", steady)
    first = clock()
    steady.now += 3600  # the machine slept, or its steady clock runs wild
    assert clock() - first < timedelta(seconds=60)


def test_a_tick_backwards_is_not_told(tmp_path: Path) -> None:
    steady = Steady()
    clock = FolderClock(tmp_path / ".clock", steady)
    clock()
    steady.now += 0.5  # ahead of the file system, which had no half second to go
    before = clock()
    steady.now += REFRESHED_EVERY_S
    assert clock() >= before


def test_a_clock_that_cannot_be_touched_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TransientError, match="tell the time"):
        FolderClock(tmp_path / "file" / ".clock")()


def test_while_the_file_system_fails_the_time_goes_on(tmp_path: Path) -> None:
    steady = Steady()
    clock = FolderClock(tmp_path / "live" / ".clock", steady)
    first = clock()
    (tmp_path / "live" / ".clock").unlink()
    (tmp_path / "live").rmdir()
    (tmp_path / "live").write_bytes(b"")
    steady.now += 100
    assert clock() - first == timedelta(seconds=100)


def test_between_two_touches_no_file_is_looked_at(tmp_path: Path) -> None:
    """It is asked at every step."""
    steady = Steady()
    clock = FolderClock(tmp_path / ".clock", steady)
    clock()
    (tmp_path / ".clock").unlink()
    for _ in range(100):
        clock()
    assert not (tmp_path / ".clock").exists()
    steady.now += REFRESHED_EVERY_S
    clock()
    assert (tmp_path / ".clock").exists()
