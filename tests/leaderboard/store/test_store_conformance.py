"""What every store must do; one suite for all implementations."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
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
from leaderboard.store.pending_changes import PendingChanges
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, created
from tests.kit.records import T0, a_pulse
from tests.kit.refusals import refused
from tests.kit.store import MemoryRepository, contents, memory_store, put


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


# Reading and writing


def test_a_commit_moves_the_head_and_is_read_back(repository: Repository) -> None:
    before = repository.head()
    assert put(repository, {"a/b.txt": b"1", "c": b"2"}) == repository.head() != before
    assert contents(repository) == {"a/b.txt": b"1", "c": b"2"}
    listed = [repository.list(prefix) for prefix in ("a/", "a/b", "nothing/here")]
    assert listed == [("a/b.txt",), ("a/b.txt",), ()]
    with pytest.raises(NotFoundError, match=r"a/c\.txt"):
        repository.read("a/c.txt")


ODD = ("a b/ü ?#%41&+=.json", "x/%2F", "...", "a;b", "-", "~", "日本/€", "'\"<>|*", "CON")


def test_odd_names_are_names_like_others(repository: Repository, tmp_path: Path) -> None:
    files = {path: path.encode() for path in ODD}
    put(repository, files)
    assert contents(repository) == files
    for number, path in enumerate(ODD):
        assert repository.has(path)
        alike = [other for other in ODD if other.startswith(path[:1])]
        assert repository.list(path[:1]) == tuple(sorted(alike))
        repository.fetch(path, tmp_path / str(number))
        assert (tmp_path / str(number)).read_bytes() == path.encode()
    put(repository, dict.fromkeys(ODD))
    assert (repository.list(), [repository.has(path) for path in ODD]) == ((), [False] * len(ODD))


def test_a_commit_on_an_old_version_changes_nothing(repository: Repository) -> None:
    old = repository.head()
    put(repository, {"a": b"1"})
    with pytest.raises(ConflictError):
        repository.commit({"a": b"2", "b": b"2"}, parent=old, message="second")
    assert contents(repository) == {"a": b"1"}


def test_a_deleted_file_is_gone_and_deleting_again_is_harmless(repository: Repository) -> None:
    put(repository, {"a": b"1", "b": b"2"})
    for _ in range(2):
        put(repository, {"a": None})
    assert repository.list() == ("b",)


# Paths

OUTSIDE = ("/etc/x", "../x", "a/../../x", "a//b", "a/./b", "a\\b", "a\0b")
RESERVED = (".commits/version", ".commits", ".COMMITS/lock")
IMPOSSIBLE = ("x" * 300, "a/" * 600 + "b", "\ud800")
"""Paths that a file system cannot keep: a commit of one could be decided, and never made."""


def test_a_path_that_is_none_is_refused(
    repository: Repository, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    acts: list[Callable[[str], object]] = [
        lambda path: put(repository, {path: b"1"}),
        repository.read,
        lambda path: repository.fetch(path, tmp_path / "copy"),
    ]
    for path, act in product(["", *OUTSIDE, *RESERVED, *IMPOSSIBLE], acts):
        with subtests.test(path=path), refused("bad_path", kind=PlatformError):
            act(path)
    for prefix in ("../", "..", "a/../", "/", *OUTSIDE):
        with subtests.test(prefix=prefix), refused("bad_path", kind=PlatformError):
            repository.list(prefix)
    assert repository.list() == ()
    assert not (tmp_path / "copy").exists()


def test_what_a_store_keeps_for_itself_is_in_no_list(repository: Repository) -> None:
    put(repository, {"a": b"1"})
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
def test_no_path_is_file_and_folder(
    repository: Repository, before: Changes, changes: Changes
) -> None:
    head = put(repository, before) if before else repository.head()
    with refused("path_clash", kind=PlatformError):
        put(repository, {"other": b"x", **changes})
    assert (repository.head(), contents(repository)) == (head, before)
    put(repository, {"other": b"y"})
    assert repository.read("other") == b"y"


@pytest.mark.parametrize(
    ("steps", "after"),
    [
        ([{"a": b"1"}, {"a/b": b"2", "a": None}], {"a/b": b"2"}),
        ([{"a/b/c": b"1", "a/d": b"1"}, {"a": b"2", "a/b/c": None, "a/d": None}], {"a": b"2"}),
        ([{"a/b/c": b"1"}, {"a/b/c": None}, {"a": b"2"}], {"a": b"2"}),
    ],
)
def test_a_file_gives_way_to_a_folder_and_a_folder_to_a_file(
    repository: Repository, steps: list[Changes], after: dict[str, bytes]
) -> None:
    for changes in steps:
        put(repository, changes)
    assert contents(repository) == after


def test_there_is_no_file_below_a_file(repository: Repository) -> None:
    put(repository, {"a": b"1"})
    with pytest.raises(NotFoundError):
        repository.read("a/b")
    assert repository.list("a/b") == ()


# Transactions


def test_concurrent_transactions_lose_no_update(repository: Repository) -> None:
    put(repository, {"n": b"0"})

    def change() -> Changes:
        return {"n": str(int(repository.read("n")) + 1).encode()}

    def add_five(_: int) -> None:
        for _ in range(5):
            transact(repository, change, "add one", attempts=1000)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_five, range(4)))
    assert repository.read("n") == b"20"


def test_a_transaction_that_changes_nothing_commits_nothing(repository: Repository) -> None:
    before = repository.head()
    transact(repository, dict, "nothing")
    assert repository.head() == before


ILLEGAL = PlatformError("illegal", "The files contradict each other.")


@pytest.mark.parametrize(
    ("overtaken", "fails", "tries", "ends"),
    [
        (3, False, 3, ConflictError),  # It gives up after its attempts.
        (1, True, 2, None),  # The error may come of having read files of two versions.
        (0, True, 1, PlatformError),  # The store stood still.
        (3, True, 3, PlatformError),  # It never stands still.
    ],
    ids=["races lost", "error and a race", "error", "errors and races"],
)
def test_an_error_counts_where_the_store_stood_still(
    repository: Repository, overtaken: int, fails: bool, tries: int, ends: type | None
) -> None:
    heads: list[str] = []

    def change() -> Changes:
        heads.append(repository.head())
        late = len(heads) <= overtaken
        if late:
            put(repository, {"other": b"%d" % len(heads)})
        if fails and (late or not overtaken):
            raise ILLEGAL
        return {"mine": b"y"}

    if ends is None:
        transact(repository, change, "m", attempts=3, sleep=lambda _: None)
    else:
        with pytest.raises(ends):
            transact(repository, change, "m", attempts=3, sleep=lambda _: None)
    assert len(heads) == len(set(heads)) == tries
    assert repository.has("mine") is (ends is None)


# Files of this machine


def test_a_file_of_this_machine_is_kept_and_fetched(repository: Repository, tmp_path: Path) -> None:
    content, own = bytes(range(256)) * 20_000, tmp_path / "from_a_file"
    own.write_bytes(content)
    put(repository, {"a/big": own, "small": b"1"})
    own.write_bytes(b"changed afterwards")
    assert contents(repository) == {"a/big": content, "small": b"1"}
    for path, expected in contents(repository).items():
        repository.fetch(path, tmp_path / path[-3:])
        assert (tmp_path / path[-3:]).read_bytes() == expected


def test_a_file_that_is_not_there_changes_nothing(repository: Repository, tmp_path: Path) -> None:
    head = put(repository, {"a": b"1"})
    with pytest.raises((TransientError, OSError)):
        put(repository, {"a": b"2", "b": tmp_path / "absent"})
    assert (repository.head(), contents(repository)) == (head, {"a": b"1"})
    repository.commit({"c": b"3"}, parent=head, message="goes on")
    assert repository.list() == ("a", "c")


@pytest.mark.parametrize("path", ["absent", "a", "a/b/c"])
def test_a_fetch_in_vain_leaves_no_file(repository: Repository, tmp_path: Path, path: str) -> None:
    put(repository, {"a/b": b"1"})
    with pytest.raises(NotFoundError, match=path):
        repository.fetch(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_fetch_writes_over_nothing(repository: Repository, tmp_path: Path) -> None:
    put(repository, {"a": b"1"})
    (tmp_path / "mine").write_bytes(b"mine")
    with pytest.raises((TransientError, OSError)):
        repository.fetch("a", tmp_path / "mine")
    assert (tmp_path / "mine").read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["folder", pytest.param("hub", marks=pytest.mark.slow)])
def test_large_files_go_in_and_out_piece_by_piece(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A store in memory holds what it keeps; the Hub of the tests runs in a process of its own."""
    n_bytes = 24 << 20
    with (tmp_path / "big").open("wb") as file:
        file.truncate(n_bytes)
    repository: Repository = FolderRepository(tmp_path / "r")
    if kind == "hub":
        repository = request.getfixturevalue("hub_apart").private
    tracemalloc.start()
    put(repository, {"big": tmp_path / "big"})
    repository.fetch("big", tmp_path / "copy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "copy").stat().st_size == n_bytes
    assert peak < 8 << 20


# Pulses


def test_the_latest_pulse_of_every_worker_is_kept(store: Store) -> None:
    for beat in (a_pulse("w1", done=1), a_pulse("w2", done=1), a_pulse("w1", done=2)):
        store.live.beat(beat)
    assert {(p.worker, p.done) for p in store.live.pulses()} == {("w1", 2), ("w2", 1)}


def test_pulses_of_workers_long_gone_are_forgotten_when_a_new_one_comes(tmp_path: Path) -> None:
    live = folder_store(tmp_path).live
    for worker, days in (("old", 0), ("recent", 2), ("new", 2)):
        live.beat(a_pulse(worker, T0 + timedelta(days=days)))
    assert {beat.worker for beat in live.pulses()} == {"recent", "new"}


# A repository as it will be after a commit


def test_new_files_lie_over_those_there_and_none_can_be_committed(tmp_path: Path) -> None:
    under = MemoryRepository()
    put(under, {"a/1": b"old", "a/2": b"kept"})
    seen = PendingChanges(under, {"a/1": b"new", "a/3": b"more", "b": b"beside"})
    assert contents(seen) == {"a/1": b"new", "a/2": b"kept", "a/3": b"more", "b": b"beside"}
    assert seen.list("a/") == ("a/1", "a/2", "a/3")
    for path in ("a/1", "a/2"):
        seen.fetch(path, tmp_path / path[-1])
    assert [(tmp_path / name).read_bytes() for name in "12"] == [b"new", b"kept"]
    assert seen.head() == under.head()
    with pytest.raises(NotFoundError):
        seen.read("c")
    with refused("read_only"):
        put(seen, {"c": b""})
    assert under.list() == ("a/1", "a/2")
