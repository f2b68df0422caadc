"""The parts a Hub store is built of: clock, shelf, descriptions, files on demand, opening."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from benchmarks.errors import AssayError, SubmitterError, TransientError
from benchmarks.sources.client import hf_raise_for_status, httpx
from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.description import describe, describe_squashed, described, new_nonce
from leaderboard.store.hub.faults import Asked, told
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.hub.server_clock import ServerClock
from leaderboard.store.hub.shelf import Shelf, git_blob_id
from leaderboard.store.hub.spending import Spending
from leaderboard.store.hub.uploads import FileOnDemand
from leaderboard.store.interface import ConflictError, Groups
from leaderboard.store.opening import StoreName
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, as_the_hub, created, parts_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _dated(when: datetime, **more: str) -> dict[str, str]:
    return {"Date": format_datetime(when, usegmt=True), **more}


def test_the_clock_goes_on_from_the_last_reply_by_the_steady_clock() -> None:
    steady = [100.0]
    clock = ServerClock(lambda: steady[0])
    clock.heard(_dated(NOON))
    steady[0] += 90
    assert clock() == NOON + timedelta(seconds=90)


def test_a_reply_that_something_kept_on_the_way_is_as_old_as_it_says() -> None:
    clock = ServerClock(lambda: 0.0)
    clock.heard(_dated(NOON, Age="60"))
    assert clock() == NOON + timedelta(seconds=60)


def test_the_clock_does_not_run_back_for_a_second_of_rounding() -> None:
    steady = [0.0]
    clock = ServerClock(lambda: steady[0])
    clock.heard(_dated(NOON))
    steady[0] = 1.9
    first = clock()
    clock.heard(_dated(NOON + timedelta(seconds=1)))
    assert clock() == first
    clock.heard(_dated(NOON - timedelta(hours=1)))
    assert clock() == NOON - timedelta(hours=1)


@pytest.mark.parametrize("headers", [{}, {"Date": "yesterday"}, {"Date": ""}])
def test_a_reply_without_a_date_tells_no_time(headers: dict[str, str]) -> None:
    clock = ServerClock(lambda: 0.0)
    clock.heard(headers)
    with pytest.raises(TransientError, match="not told the time"):
        clock()


def test_a_silent_hub_is_asked_and_one_that_fails_is_counted_on_from_the_last_time() -> None:
    steady, asked = [0.0], []

    def ask() -> None:
        asked.append(steady[0])
        raise TransientError("store_unreachable", "Down.")

    clock = ServerClock(lambda: steady[0])
    clock.asks(ask)
    with pytest.raises(TransientError, match="Down"):
        clock()
    clock.heard(_dated(NOON))
    clock()
    steady[0] = 700.0
    assert clock() == NOON + timedelta(seconds=700)
    assert asked == [0.0, 700.0]


def test_the_time_of_a_store_is_the_hubs_and_not_this_machines(
    hub: HubServer, tmp_path: Path
) -> None:
    created(hub, tmp_path)
    hub.clock.set(NOON)
    store = hub_store(NAME, tmp_path, endpoint=hub.endpoint, token=hub.token)
    assert abs(store.clock() - NOON) < timedelta(seconds=30)


# What was read before


def test_a_damaged_content_is_as_good_as_none(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    for oid in (git_blob_id(b"abc"), hashlib.sha256(b"abc").hexdigest()):
        shelf.put(oid, b"abc")
        assert shelf.get(oid) == b"abc"
        (tmp_path / oid).write_bytes(b"abd")
        assert shelf.get(oid) is None
        assert not (tmp_path / oid).exists()


def test_the_shelf_is_bounded_and_drops_what_was_not_used_for_longest(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, most_bytes=10_000)
    contents = {git_blob_id(c): c for c in (bytes([n]) * 1000 for n in range(30))}
    first = next(iter(contents))
    for n, (oid, content) in enumerate(contents.items()):
        shelf.put(oid, content)
        os.utime(tmp_path / oid, (n, n))
        if n < 29:
            os.utime(tmp_path / first, (1000, 1000))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 11_000
    assert shelf.get(first) is not None


def test_only_the_owner_can_read_what_was_read_before(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Shelf(tmp_path / "hub" / "contents").put(git_blob_id(b"private"), b"private")
    finally:
        os.umask(before)
    assert (tmp_path / "hub" / "contents").stat().st_mode & 0o077 == 0


def test_what_others_make_a_reader_forget_halfway_is_not_taken_for_absent(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = created(hub, tmp_path).private
    private.commit({"a": b"1"}, parent=private.head(), message="m")
    monkeypatch.setattr("leaderboard.store.hub.known._VERSIONS", 0)  # forgotten at once
    other = parts_of(hub, tmp_path / "other").private
    assert (other.has("a"), other.has("b"), other.read("a")) == (True, False, b"1")


def test_a_content_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, largest=10)
    shelf.put(git_blob_id(b"x" * 11), b"x" * 11)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_costs_only_speed(hub: HubServer, tmp_path: Path) -> None:
    created(hub, tmp_path / "mine").public.commit(
        {"snapshot.parquet": b"s"},
        parent=parts_of(hub, tmp_path / "mine").public.head(),
        message="m",
    )
    (tmp_path / "file").write_bytes(b"")
    public = parts_of(hub, tmp_path / "file" / "below").public
    assert public.read("snapshot.parquet") == public.read("snapshot.parquet") == b"s"


# What a commit says of itself


def test_a_description_tells_nonce_and_paths_and_survives_a_squash() -> None:
    nonce = new_nonce()
    told = described("sha", "title", describe(nonce, ["b", "a/ü"]))
    assert (told.nonces, told.paths) == (frozenset({nonce}), ("a/ü", "b"))
    squashed = describe_squashed([nonce])
    for title, message in ((squashed, ""), tuple(squashed.split("\n\n"))):
        assert described("sha", title, message).nonces == {nonce}
        assert described("sha", title, message).paths is None


def test_a_message_of_many_stands_before_what_a_program_reads() -> None:
    nonce = new_nonce()
    text = describe(nonce, ["a{"], 'receive one\nreceive two {"nonce": "x"}')
    told = described("sha", "receive one", text)
    assert text.startswith("receive one\nreceive two")
    assert (told.nonces, told.paths) == (frozenset({nonce}), ("a{",))


def test_too_many_paths_are_left_out_rather_than_cut() -> None:
    nonce = new_nonce()
    told = described("sha", "t", describe(nonce, [f"results/{n}/a.json" for n in range(2000)]))
    assert (told.nonces, told.paths) == (frozenset({nonce}), None)


@pytest.mark.parametrize(
    "message",
    ["", "{", "[1]", '{"nonce": 5, "paths": "x"}', '{"nonce": "short", "paths": [1]}', "{" * 5000],
)
def test_anybodys_message_is_taken_for_nothing(message: str) -> None:
    told = described("sha", "Update README.md", message)
    assert (told.nonces, told.paths) == (frozenset(), None)


@pytest.mark.parametrize("status", [400, 503])
def test_no_message_tells_an_address_that_opens_a_file_to_anybody(status: int) -> None:
    signed = httpx.Request("PUT", "https://large.hub/ab/cd?X-Signature=0123abcd&Expires=9")
    reply = httpx.Response(status, request=signed)
    with pytest.raises(AssayError) as caught, told(Asked("upload files", "lab/assay")):
        hf_raise_for_status(reply)
    assert "Signature" not in str(caught.value)
    with pytest.raises(TransientError) as cut, told(Asked("upload files", "lab/assay")):
        raise httpx.ReadError(f"cut while reading {signed.url}", request=signed)
    assert "https://large.hub/ab/cd" in str(cut.value)
    assert "Signature" not in str(cut.value)


# Files that go up


def test_a_file_on_demand_reads_as_an_open_one_and_holds_no_handle(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10
    (tmp_path / "f").write_bytes(content)
    with FileOnDemand(tmp_path / "f") as file:
        assert file.read(10) == content[:10]
        assert file.tell() == 10
        assert file.read() == content[10:]
        assert file.read() == b""
        assert file.seek(0, io.SEEK_END) == len(content)
        assert file.seek(-5, io.SEEK_END) == len(content) - 5
        assert file.read(100) == content[-5:]
        assert file.seek(0) == 0
        handles = len(list(Path("/proc/self/fd").iterdir()))
        others = [FileOnDemand(tmp_path / "f") for _ in range(50)]
        assert [each.read() == content for each in others] == [True] * 50
        assert len(list(Path("/proc/self/fd").iterdir())) <= handles


# Commits paid for


class Purse:
    """A budget that only notes what is asked of it."""

    def __init__(self) -> None:
        self.waited = 0
        self.asked: list[int] = []

    def wait(self) -> None:
        self.waited += 1

    def ready(self, commits: int = 1) -> None:
        self.asked.append(commits)

    def delay(self, commits: int = 1) -> float:
        return float(commits)

    def penalise(self, seconds: float) -> None:
        self.asked.append(int(seconds))


def test_what_was_paid_for_and_not_made_is_used_by_the_next_commit() -> None:
    purse = Purse()
    spending = Spending(purse)
    spending.ahead(3)
    assert purse.waited == 3
    spending.one()
    spending.ahead(3)
    assert purse.waited == 4
    assert (spending.delay(3), spending.delay(5)) == (0.0, 2.0)
    spending.ready(5)
    for _ in range(4):
        spending.one()
    assert (purse.waited, purse.asked) == (5, [2])


def test_after_a_refusal_what_was_paid_for_is_worth_nothing() -> None:
    purse = Purse()
    spending = Spending(purse)
    spending.ahead(2)
    spending.penalise(60)
    spending.one()
    assert (purse.waited, purse.asked) == (3, [60])


def test_who_needs_three_commits_is_not_overtaken_for_ever_by_those_who_need_one() -> None:
    arrived, on = threading.Event(), threading.Event()

    class Slow(Purse):
        def ready(self, commits: int = 1) -> None:
            super().ready(commits)
            arrived.set()
            assert on.wait(60)

    purse = Slow()
    spending = Spending(purse)
    with ThreadPoolExecutor(2) as pool:
        three = pool.submit(spending.ready, 3)
        assert arrived.wait(60)
        one = pool.submit(spending.ready, 1)
        assert not wait({one}, timeout=0.2).done
        assert purse.asked == [3]
        on.set()
        assert three.result(60) is one.result(60) is None
    assert purse.asked == [3, 1]


def test_a_commit_to_three_repositories_is_paid_for_before_its_first_step(
    hub: HubServer, tmp_path: Path
) -> None:
    created(hub, tmp_path)
    purse, made = Purse(), []
    public = parts_of(hub, tmp_path, budget=purse).public
    purse.wait = lambda: made.append(hub.tally.commits())  # type: ignore[method-assign]
    before = hub.tally.commits()
    changes = {"queue.json": b"q", "results/a/b.json": b"{}", "snapshot.parquet": b"s"}
    public.commit(changes, parent=public.head(), message="m")
    assert made == [before] * 2
    old = list(public.decisive.client.history(f"{NAME}-requests"))[1].sha
    with pytest.raises(ConflictError):
        public.commit(changes, parent=old, message="late")
    assert made == [before] * 2 + [before + 2] * 2
    public.commit({"queue.json": b"2"}, parent=public.head(), message="m")
    assert len(made) == 4


# Opening


def test_opening_a_store_on_the_hub_asks_nothing(hub: HubServer, tmp_path: Path) -> None:
    store = hub_store(NAME, tmp_path, endpoint=hub.endpoint, token=hub.token)
    assert hub.served == []
    assert store.jobs_per_commit == 8
    assert isinstance(store.public, Groups)


def test_a_store_of_the_hub_is_opened_by_its_name(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(hub, tmp_path)
    as_the_hub(hub, monkeypatch)
    monkeypatch.chdir(tmp_path)
    store = StoreName.parse(f"hub:{NAME}").open()
    store.public.commit({"a": b"1"}, parent=store.public.head(), message="m")
    assert store.public.read("a") == b"1"


# Each process has its part of the commits


@pytest.mark.parametrize(("given", "left"), [("", 100), ("50", 50), (" 1 ", 1)])
def test_a_process_is_told_its_part_of_the_commits(given: str, left: int) -> None:
    assert CommitBudget.of({"ASSAY_COMMITS_PER_HOUR": given}).left() == left


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "9999999"])
def test_a_part_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(SubmitterError, match="ASSAY_COMMITS_PER_HOUR"):
        CommitBudget.of({"ASSAY_COMMITS_PER_HOUR": given})
