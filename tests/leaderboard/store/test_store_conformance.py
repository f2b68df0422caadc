"""What every store must do; one suite for all implementations."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.folder import FolderRepository, folder_store
from leaderboard.store.grouping import Grouping
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    Repository,
    Store,
    transact,
)
from leaderboard.store.live.interface import Pulse
from leaderboard.store.memory import MemoryRepository, memory_store
from tests.hub.server import HubServer
from tests.leaderboard.store.hub_rig import NAME, created


@pytest.fixture(params=["memory", "grouping", "folder", "hub", "hub_joined"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    if request.param == "memory":
        return MemoryRepository()
    if request.param == "grouping":
        return Grouping(MemoryRepository())
    if request.param == "folder":
        return FolderRepository(tmp_path / "r")
    parts = created(request.getfixturevalue("hub"), tmp_path / "h", fresh_for_s=2.0)
    return parts.private if request.param == "hub" else parts.public


@pytest.fixture(params=["memory", "folder", "hub"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return memory_store()
    if request.param == "folder":
        return folder_store(tmp_path)
    hub: HubServer = request.getfixturevalue("hub")
    created(hub, tmp_path)
    return hub_store(NAME, tmp_path, endpoint=hub.endpoint, token=hub.token)


def test_a_commit_is_read_back(repository: Repository) -> None:
    repository.commit({"a/b.txt": b"1", "c": b"2"}, parent=repository.head(), message="m")
    assert repository.read("a/b.txt") == b"1"
    assert repository.list() == ("a/b.txt", "c")
    assert repository.list("a/") == ("a/b.txt",)
    assert repository.list("a/b") == ("a/b.txt",)
    assert repository.list("nothing/here") == ()


ODD = ("a b/ü ?#%41&+=.json", "x/%2F", "...", "a;b", "-", "~", "日本/€", "'\"<>|*", "CON")


@pytest.mark.parametrize("path", ODD)
def test_odd_names_are_names_like_any_other(
    repository: Repository, tmp_path: Path, path: str
) -> None:
    repository.commit({path: b"1"}, parent=repository.head(), message=path)
    assert (repository.list(), repository.has(path), repository.read(path)) == ((path,), True, b"1")
    assert repository.list(path[:1]) == (path,)
    repository.fetch(path, tmp_path / "copy")
    repository.commit({path: None}, parent=repository.head(), message=path)
    assert (repository.list(), repository.has(path)) == ((), False)


def test_reading_what_is_not_there_says_so(repository: Repository) -> None:
    with pytest.raises(NotFoundError, match=r"a/b\.txt"):
        repository.read("a/b.txt")


def test_a_commit_moves_the_head(repository: Repository) -> None:
    before = repository.head()
    after = repository.commit({"a": b"1"}, parent=before, message="m")
    assert after == repository.head() != before


def test_a_commit_on_an_old_version_changes_nothing(repository: Repository) -> None:
    old = repository.head()
    repository.commit({"a": b"1"}, parent=old, message="first")
    with pytest.raises(ConflictError):
        repository.commit({"a": b"2", "b": b"2"}, parent=old, message="second")
    assert repository.read("a") == b"1"
    assert repository.list() == ("a",)


def test_a_deleted_file_is_gone_and_deleting_again_is_harmless(repository: Repository) -> None:
    repository.commit({"a": b"1", "b": b"2"}, parent=repository.head(), message="m")
    for _ in range(2):
        repository.commit({"a": None}, parent=repository.head(), message="m")
    assert repository.list() == ("b",)


OUTSIDE = ["/etc/x", "../x", "a/../../x", "a//b", "a/./b", "a\\b", "a\0b"]
RESERVED = [".commits/version", ".commits", ".COMMITS/lock"]
IMPOSSIBLE = ["x" * 300, "a/" * 600 + "b", "\ud800"]
"""Paths that a file system cannot keep: a commit of one could be decided, and never made."""


@pytest.mark.parametrize("path", ["", *OUTSIDE, *RESERVED, *IMPOSSIBLE])
def test_a_path_that_is_none_is_neither_written_nor_read(repository: Repository, path: str) -> None:
    with pytest.raises(PlatformError, match="not a path inside") as refused:
        repository.commit({path: b"1"}, parent=repository.head(), message="m")
    assert refused.value.code == "bad_path"
    with pytest.raises(PlatformError, match="not a path inside"):
        repository.read(path)
    assert repository.list() == ()


@pytest.mark.parametrize("prefix", ["../", "..", "a/../", "/", *OUTSIDE])
def test_a_prefix_out_of_the_store_is_refused(repository: Repository, prefix: str) -> None:
    with pytest.raises(PlatformError, match="not a path inside") as refused:
        repository.list(prefix)
    assert refused.value.code == "bad_path"


def test_what_a_store_keeps_for_itself_is_in_no_list(repository: Repository) -> None:
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    assert [repository.list(p) for p in (".commits/", ".com", ".")] == [(), (), ()]


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        ({"a": b"1"}, {"a/b": b"2"}),
        ({"a": b"1"}, {"a/b/c": b"2"}),
        ({"a/b": b"1"}, {"a": b"2"}),
        ({"a/b/c": b"1", "a/b/d": b"1"}, {"a": b"2", "a/b/c": None}),
        ({}, {"a": b"2", "a/b": b"2"}),
    ],
)
def test_no_path_becomes_a_file_and_a_folder(
    repository: Repository, before: Changes, changes: Changes
) -> None:
    if before:
        repository.commit(before, parent=repository.head(), message="before")
    head = repository.head()
    with pytest.raises(PlatformError) as refused:
        repository.commit({"other": b"x", **changes}, parent=head, message="clash")
    assert refused.value.code == "path_clash"
    assert (repository.head(), repository.list()) == (head, tuple(sorted(before)))
    repository.commit({"other": b"y"}, parent=head, message="goes on")
    assert repository.read("other") == b"y"


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ({"a": b"1"}, {"a/b": b"2", "a": None}, ("a/b",)),
        ({"a/b/c": b"1", "a/d": b"1"}, {"a": b"2", "a/b/c": None, "a/d": None}, ("a",)),
    ],
)
def test_a_file_gives_way_to_a_folder_and_a_folder_to_a_file(
    repository: Repository, before: Changes, changes: Changes, after: tuple[str, ...]
) -> None:
    repository.commit(before, parent=repository.head(), message="before")
    repository.commit(changes, parent=repository.head(), message="after")
    assert repository.list() == after
    assert repository.read(after[0]) == b"2"


def test_a_file_may_take_the_name_of_a_folder_that_was_emptied(repository: Repository) -> None:
    for changes in ({"a/b/c": b"1"}, {"a/b/c": None}, {"a": b"2"}):
        repository.commit(changes, parent=repository.head(), message="m")
    assert repository.list() == ("a",)


def test_there_is_no_file_below_a_file(repository: Repository) -> None:
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    with pytest.raises(NotFoundError):
        repository.read("a/b")
    assert repository.list("a/b") == ()


def test_concurrent_transactions_lose_no_update(repository: Repository) -> None:
    repository.commit({"n": b"0"}, parent=repository.head(), message="m")

    def add_five() -> None:
        for _ in range(5):
            transact(
                repository,
                lambda: {"n": str(int(repository.read("n")) + 1).encode()},
                "add one",
                attempts=1000,
            )

    with ThreadPoolExecutor(4) as pool:
        for adding in [pool.submit(add_five) for _ in range(4)]:
            adding.result()
    assert repository.read("n") == b"20"


def test_a_transaction_that_changes_nothing_commits_nothing(repository: Repository) -> None:
    before = repository.head()
    transact(repository, dict, "nothing")
    assert repository.head() == before


def test_a_transaction_gives_up_after_its_attempts(repository: Repository) -> None:
    def always_late() -> Changes:
        repository.commit({"other": b"x"}, parent=repository.head(), message="meanwhile")
        return {"mine": b"y"}

    with pytest.raises(ConflictError):
        transact(repository, always_late, "m", attempts=3, sleep=lambda _: None)
    assert "mine" not in repository.list()


def test_an_error_over_a_store_that_moved_on_is_a_lost_race(repository: Repository) -> None:
    """It may come of having read files of two versions, so it says nothing."""
    seen: list[str] = []

    def overtaken_once() -> Changes:
        seen.append(repository.head())
        if len(seen) == 1:
            repository.commit({"other": b"x"}, parent=repository.head(), message="meanwhile")
            raise PlatformError("illegal_transition", "The files contradict each other.")
        return {"mine": b"y"}

    transact(repository, overtaken_once, "m", sleep=lambda _: None)
    assert len(set(seen)) == 2
    assert repository.read("mine") == b"y"


def test_an_error_over_a_store_that_stood_still_ends_the_transaction(
    repository: Repository,
) -> None:
    tries: list[int] = []

    def refuse() -> Changes:
        tries.append(1)
        raise PlatformError("no", "No.")

    with pytest.raises(PlatformError, match="No"):
        transact(repository, refuse, "m", sleep=lambda _: None)
    assert len(tries) == 1


def test_errors_over_a_store_that_never_stands_still_are_let_out_in_the_end(
    repository: Repository,
) -> None:
    tries: list[int] = []

    def always_overtaken() -> Changes:
        tries.append(1)
        repository.commit({"other": b"x"}, parent=repository.head(), message="meanwhile")
        raise PlatformError("no", "No.")

    with pytest.raises(PlatformError, match="No"):
        transact(repository, always_overtaken, "m", attempts=3, sleep=lambda _: None)
    assert len(tries) == 3


def test_a_file_of_this_machine_is_kept_and_fetched(repository: Repository, tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    (tmp_path / "from_a_file").write_bytes(content)
    changes: Changes = {"a/big": tmp_path / "from_a_file", "small": b"1"}
    repository.commit(changes, parent=repository.head(), message="m")
    (tmp_path / "from_a_file").write_bytes(b"changed afterwards")
    repository.fetch("a/big", tmp_path / "copy")
    assert repository.read("a/big") == content == (tmp_path / "copy").read_bytes()
    repository.fetch("small", tmp_path / "small")
    assert (tmp_path / "small").read_bytes() == b"1"
    assert repository.list() == ("a/big", "small")


def test_a_file_that_is_not_there_leaves_the_store_as_it_was(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    head = repository.head()
    with pytest.raises((TransientError, OSError)):
        repository.commit({"a": b"2", "b": tmp_path / "absent"}, parent=head, message="m")
    assert (repository.head(), repository.list(), repository.read("a")) == (head, ("a",), b"1")
    repository.commit({"c": b"3"}, parent=head, message="goes on")
    assert repository.list() == ("a", "c")


@pytest.mark.parametrize("path", ["absent", "a", "a/b/c"])
def test_fetching_what_is_not_there_leaves_no_file(
    repository: Repository, tmp_path: Path, path: str
) -> None:
    repository.commit({"a/b": b"1"}, parent=repository.head(), message="m")
    with pytest.raises(NotFoundError, match=path):
        repository.fetch(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_path_out_of_the_store_is_not_fetched(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="not a path inside"):
        repository.fetch("../x", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_fetch_writes_over_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"a": b"1"}, parent=repository.head(), message="m")
    (tmp_path / "mine").write_bytes(b"mine")
    with pytest.raises((TransientError, OSError)):
        repository.fetch("a", tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["folder", "hub"])
def test_large_files_go_in_and_out_piece_by_piece(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A store in memory holds what it keeps; the Hub of the tests runs in a process of its own."""
    n_bytes = 48 << 20
    with (tmp_path / "big").open("wb") as file:
        file.truncate(n_bytes)
    repository: Repository = FolderRepository(tmp_path / "r")
    if kind == "hub":
        repository = request.getfixturevalue("hub_apart").private
    tracemalloc.start()
    repository.commit({"big": tmp_path / "big"}, parent=repository.head(), message="m")
    repository.fetch("big", tmp_path / "copy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "copy").stat().st_size == n_bytes
    assert peak < 8 << 20


def test_the_latest_pulse_of_every_worker_is_kept(store: Store) -> None:
    def pulse(worker: str, done: int) -> Pulse:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        return Pulse(worker=worker, at=at, isolation_ok=True, isolation="x", done=done)

    for beat in (pulse("w1", 1), pulse("w2", 1), pulse("w1", 2)):
        store.live.beat(beat)
    assert {(p.worker, p.done) for p in store.live.pulses()} == {("w1", 2), ("w2", 1)}


def test_pulses_of_workers_long_gone_are_forgotten_when_a_new_one_comes(tmp_path: Path) -> None:
    live = folder_store(tmp_path).live
    for worker, day in (("old", 1), ("recent", 3), ("new", 3)):
        at = datetime(2026, 1, day, tzinfo=UTC)
        live.beat(Pulse(worker=worker, at=at, isolation_ok=True, isolation="x"))
    assert {pulse.worker for pulse in live.pulses()} == {"recent", "new"}
