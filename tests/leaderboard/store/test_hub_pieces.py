"""The parts a store is built of: clocks, shelf, descriptions, messages, files, opening."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from benchmarks.errors import AssayError, PlatformError, TransientError
from benchmarks.sources.client import hf_raise_for_status, httpx
from leaderboard.store.folder import REFRESHED_EVERY_S, FolderClock, folder_store
from leaderboard.store.hub.client import ServerClock
from leaderboard.store.hub.faults import HubRequest, refused_for, translate_errors
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.hub.uploads import (
    FileOnDemand,
    describe,
    describe_squashed,
    described,
    new_nonce,
)
from leaderboard.store.interface import Groups
from leaderboard.store.opening import StoreName
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, as_the_hub, parts_of
from tests.kit.processes import open_files
from tests.kit.refusals import refused
from tests.kit.store import put

# What was read before


def test_a_damaged_copy_on_this_machine_is_read_again(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    put(parts.private, {"small": b"abc", "large.zip": b"kept apart"})
    for _ in range(2):
        private = parts_of(hub, tmp_path / "used").private
        assert (private.read("small"), private.read("large.zip")) == (b"abc", b"kept apart")
        for file in (tmp_path / "used" / "contents").iterdir():
            file.write_bytes(b"damaged")


def test_what_others_make_a_reader_forget_halfway_is_not_taken_for_absent(
    hub: HubServer, parts: HubParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(parts.private, {"a": b"1"})
    monkeypatch.setattr("leaderboard.store.hub.versions._VERSIONS", 0)  # forgotten at once
    other = parts_of(hub, tmp_path / "other").private
    assert (other.has("a"), other.has("b"), other.read("a")) == (True, False, b"1")


def test_a_broken_disk_costs_only_speed(hub: HubServer, parts: HubParts, tmp_path: Path) -> None:
    put(parts.public, {"snapshot.parquet": b"s"})
    (tmp_path / "file").write_bytes(b"")
    public = parts_of(hub, tmp_path / "file" / "below").public
    assert public.read("snapshot.parquet") == public.read("snapshot.parquet") == b"s"


# What a commit says of itself


def test_a_description_tells_nonce_and_paths_and_survives_a_squash() -> None:
    nonce = new_nonce()
    found = described("sha", "title", describe(nonce, ["b", "a/ü"]))
    assert (found.nonces, found.paths) == (frozenset({nonce}), ("a/ü", "b"))
    squashed = describe_squashed([nonce])
    for title, message in ((squashed, ""), tuple(squashed.split("\n\n"))):
        found = described("sha", title, message)
        assert (found.nonces, found.paths) == (frozenset({nonce}), None)


def test_a_message_of_many_stands_before_what_a_program_reads() -> None:
    nonce, message = new_nonce(), 'receive one\nreceive two {"nonce": "x"}'
    text = describe(nonce, ["a{"], message)
    found = described("sha", "receive one", text)
    assert text.startswith(message)
    assert (found.nonces, found.paths) == (frozenset({nonce}), ("a{",))


def test_too_many_paths_are_left_out_rather_than_cut() -> None:
    nonce = new_nonce()
    found = described("sha", "t", describe(nonce, [f"results/{n}/a.json" for n in range(2000)]))
    assert (found.nonces, found.paths) == (frozenset({nonce}), None)


@pytest.mark.parametrize(
    "message",
    ["", "{", "[1]", '{"nonce": 5, "paths": "x"}', '{"nonce": "short", "paths": [1]}', "{" * 5000],
)
def test_anybodys_message_is_taken_for_nothing(message: str) -> None:
    found = described("sha", "Update README.md", message)
    assert (found.nonces, found.paths) == (frozenset(), None)


@pytest.mark.parametrize("status", [400, 503])
def test_no_message_tells_an_address_that_opens_a_file_to_anybody(status: int) -> None:
    signed = httpx.Request("PUT", "https://large.hub/ab/cd?X-Signature=0123abcd&Expires=9")
    reply = httpx.Response(status, request=signed)
    with (
        pytest.raises(AssayError) as caught,
        translate_errors(HubRequest("upload files", "lab/assay")),
    ):
        hf_raise_for_status(reply)
    assert "Signature" not in str(caught.value)
    with (
        pytest.raises(TransientError) as cut,
        translate_errors(HubRequest("upload files", "lab/assay")),
    ):
        raise httpx.ReadError(f"cut while reading {signed.url}", request=signed)
    assert "https://large.hub/ab/cd" in str(cut.value)
    assert "Signature" not in str(cut.value)


# Files that go up


def test_a_file_on_demand_reads_as_an_open_one_and_holds_no_handle(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10
    (tmp_path / "f").write_bytes(content)
    with FileOnDemand(tmp_path / "f") as file:
        assert (file.read(10), file.tell()) == (content[:10], 10)
        assert (file.read(), file.read()) == (content[10:], b"")
        assert file.seek(0, io.SEEK_END) == len(content)
        assert file.seek(-5, io.SEEK_END) == len(content) - 5
        assert file.read(100) == content[-5:]
        assert file.seek(0) == 0
        handles = open_files()
        others = [FileOnDemand(tmp_path / "f") for _ in range(50)]
        assert [each.read() == content for each in others] == [True] * 50
        assert not open_files() - handles


# Opening


def test_opening_a_store_on_the_hub_asks_nothing(hub: HubServer, tmp_path: Path) -> None:
    store = hub_store(NAME, tmp_path, endpoint=hub.endpoint, token=hub.token)
    assert hub.served == []
    assert store.jobs_per_commit == 8
    assert isinstance(store.public, Groups)


def test_a_store_of_the_hub_is_opened_by_its_name(
    hub: HubServer, parts: HubParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_the_hub(hub, monkeypatch)
    monkeypatch.chdir(tmp_path)
    store = StoreName.parse(f"hub:{NAME}").open()
    put(store.public, {"a": b"1"})
    assert store.public.read("a") == b"1"


@pytest.mark.parametrize(
    "text", ["", "  ", "hubb:lab/board", "Hub:lab/board", "hf:x", "https://hub/x", "hub:board"]
)
def test_a_slip_in_a_name_is_told_before_a_folder_of_that_name_is_made(text: str) -> None:
    with refused("bad_store", "hub:OWNER/NAME"):
        StoreName.parse(text)


@pytest.mark.parametrize("text", ["store", ".assay/store", "/srv/a:b", "./a:b", "../a b/c:d"])
def test_every_other_name_is_a_folder(text: str) -> None:
    named = StoreName.parse(text)
    assert (named.on_hub, named.repositories) == (False, ())


def test_a_store_knows_the_repositories_it_is_kept_in() -> None:
    named = StoreName.parse("hub:lab/board")
    parts = ("requests", "results", "submissions")
    assert named.hub_name == "lab/board"
    assert named.repositories == tuple(f"lab/board-{part}" for part in parts)


def test_a_folder_without_a_store_is_not_made_into_one_by_looking(tmp_path: Path) -> None:
    mistyped = StoreName(str(tmp_path / "sotre"))
    with refused("no_store"):
        mistyped.existing()
    assert list(tmp_path.iterdir()) == []
    mistyped.open()
    assert mistyped.existing().public.list() == ()


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


def test_a_machine_whose_clock_is_an_hour_wrong_tells_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: right() + 3600)
        wrong_machine = folder_store(tmp_path).clock()
    assert timedelta(0) <= folder_store(tmp_path).clock() - wrong_machine < timedelta(seconds=60)


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


@pytest.mark.parametrize(
    ("age", "seconds"), [("", 0), ("x", 0), ("-5", 0), ("²", 0), ("٣", 0), ("86400", 86_400)]
)
def test_an_age_that_is_none_is_not_counted(server: ServerClock, age: str, seconds: int) -> None:
    hears(server, NOON, Age=age)
    assert server() == NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize("age", ["86401", "1000000000", "9" * 30, "9" * 9000])
def test_a_copy_that_is_too_old_does_not_move_the_clock(server: ServerClock, age: str) -> None:
    hears(server, NOON)
    hears(server, NOON, Age=age)
    assert server() == NOON


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("30", 30.0), (" 7 ", 7.0), ("²", None), ("-1", None), ("soon", None), ("9" * 400, 3600.0)],
)
def test_a_hub_is_left_alone_for_as_long_as_it_asks_within_a_bound(
    asked: str, seconds: float | None
) -> None:
    reply = httpx.Response(
        503,
        headers=[(b"Retry-After", asked.encode("latin-1"))],
        request=httpx.Request("GET", "https://hub/x"),
    )
    with (
        pytest.raises(TransientError) as caught,
        translate_errors(HubRequest("list", "lab/assay")),
    ):
        hf_raise_for_status(reply)
    assert refused_for(caught.value) == seconds


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


def test_the_permanent_address_of_a_version_has_the_results_of_then(
    hub: HubServer, parts: HubParts
) -> None:
    version = put(parts.public, {"boards/x.parquet": b"then"})
    address = parts.permanent_address(version)
    put(parts.public, {"boards/x.parquet": b"now"})
    assert parts.permanent_address(version) == address
    name, _, commit = address.removeprefix("https://huggingface.co/datasets/").partition("/tree/")
    assert name == f"{NAME}-results"
    assert hub.repositories[name].files(commit)["boards/x.parquet"].content == b"then"


def test_a_folder_keeps_no_history_and_says_so(tmp_path: Path) -> None:
    store = folder_store(tmp_path)
    assert store.permanent_address(put(store.public, {"a": b"1"})) == ""
