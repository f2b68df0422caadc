"""What time it is to a store: the file system's, or the Hub's, whatever the machine believes."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.folder import folder_store
from leaderboard.store.folder_clock import REFRESHED_EVERY_S, FolderClock
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.hub.server_clock import ServerClock
from tests.hub.server import HubServer
from tests.leaderboard.refusing import refused
from tests.leaderboard.store.hub_rig import NAME

REPOSITORY = Path(__file__).resolve().parents[3]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = timedelta(seconds=100)


class Steady:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def steady() -> Steady:
    return Steady()


# Of a folder


@pytest.fixture
def clock(tmp_path: Path, steady: Steady) -> FolderClock:
    return FolderClock(tmp_path / "live" / ".clock", steady)


def test_a_folder_tells_the_time_by_which_files_are_stamped(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    (tmp_path / "written").write_bytes(b"x")
    stamp = datetime.fromtimestamp((tmp_path / "written").stat().st_mtime, UTC)
    assert abs(store.clock() - stamp) < timedelta(seconds=5)


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


def test_between_two_touches_time_goes_on_by_the_steady_clock_and_no_file_is_looked_at(
    tmp_path: Path, steady: Steady, clock: FolderClock
) -> None:
    """It is asked at every step."""
    first, file = clock(), tmp_path / "live" / ".clock"
    file.unlink()
    steady.now += REFRESHED_EVERY_S / 2
    assert clock() - first == timedelta(seconds=REFRESHED_EVERY_S / 2)
    assert not file.exists()
    steady.now += REFRESHED_EVERY_S
    clock()
    assert file.exists()


def test_after_a_while_the_file_system_is_asked_again(steady: Steady, clock: FolderClock) -> None:
    first = clock()
    steady.now += 3600  # the machine slept, or its steady clock runs wild
    assert clock() - first < timedelta(seconds=60)


def test_a_tick_backwards_is_not_told(steady: Steady, clock: FolderClock) -> None:
    clock()
    steady.now += 0.5  # ahead of the file system, which had no half second to go
    before = clock()
    steady.now += REFRESHED_EVERY_S
    assert clock() >= before


def test_a_folder_that_cannot_be_touched_tells_no_time_and_one_that_fails_later_goes_on(
    tmp_path: Path, steady: Steady, clock: FolderClock
) -> None:
    (tmp_path / "file").write_bytes(b"")
    with refused("store_failed", kind=TransientError):
        FolderClock(tmp_path / "file" / ".clock")()
    first = clock()
    (tmp_path / "live" / ".clock").unlink()
    (tmp_path / "live").rmdir()
    (tmp_path / "live").write_bytes(b"")
    steady.now += LATER.seconds
    assert clock() - first == LATER


# Of the Hub


@pytest.fixture
def server(steady: Steady) -> ServerClock:
    return ServerClock(steady)


def hears(clock: ServerClock, when: datetime, **more: str) -> None:
    clock.heard({"Date": format_datetime(when, usegmt=True), **more})


def test_the_hubs_time_goes_on_from_its_last_reply(steady: Steady, server: ServerClock) -> None:
    hears(server, NOON, Age="60")
    assert server() == NOON + timedelta(seconds=60)
    steady.now += LATER.seconds
    assert server() == NOON + timedelta(seconds=60) + LATER


def test_it_does_not_run_back_for_rounding(steady: Steady, server: ServerClock) -> None:
    hears(server, NOON)
    steady.now += 1.9
    first = server()
    hears(server, NOON + timedelta(seconds=1))
    assert server() == first
    hears(server, NOON - timedelta(hours=1))
    assert server() == NOON - timedelta(hours=1)


@pytest.mark.parametrize("headers", [{}, {"Date": "yesterday"}, {"Date": ""}])
def test_a_reply_without_a_date_tells_no_time(server: ServerClock, headers: dict[str, str]) -> None:
    server.heard(headers)
    with refused("no_clock", kind=TransientError):
        server()


@pytest.mark.parametrize(
    "error",
    [TransientError("store_unreachable", "Down."), PlatformError("no_store", "It is gone.")],
    ids=lambda error: error.code,
)
def test_a_silent_hub_is_asked_and_one_that_fails_is_counted_on_from_the_last_time(
    steady: Steady, server: ServerClock, error: Exception
) -> None:
    asked = []

    def ask() -> None:
        asked.append(steady.now)
        raise error

    server.asks(ask)
    with pytest.raises(type(error)):
        server()
    hears(server, NOON)
    server()
    steady.now += 3600.0
    assert server() == NOON + timedelta(hours=1)
    assert asked == [1000.0, 4600.0]


def test_a_store_has_the_time_of_the_hub(hub: HubServer, parts: HubParts, tmp_path: Path) -> None:
    hub.clock.set(NOON)
    store = hub_store(NAME, tmp_path, endpoint=hub.endpoint, token=hub.token)
    assert abs(store.clock() - NOON) < timedelta(seconds=30)
