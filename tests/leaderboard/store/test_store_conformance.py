"""What every store must do; one suite for all implementations."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from leaderboard.store.folder import FolderRepository, folder_store
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    Repository,
    Store,
    transact,
)
from leaderboard.store.live import Pulse
from leaderboard.store.memory import MemoryRepository, memory_store


@pytest.fixture(params=["memory", "folder"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    return MemoryRepository() if request.param == "memory" else FolderRepository(tmp_path / "r")


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return memory_store() if request.param == "memory" else folder_store(tmp_path)


def test_a_commit_is_read_back(repository: Repository) -> None:
    repository.commit({"a/b.txt": b"1", "c": b"2"}, parent=repository.head(), message="m")
    assert repository.read("a/b.txt") == b"1"
    assert repository.list() == ("a/b.txt", "c")
    assert repository.list("a/") == ("a/b.txt",)
    assert repository.list("a/b") == ("a/b.txt",)
    assert repository.list("nothing/here") == ()


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


@pytest.mark.parametrize("path", ["", "/etc/x", "../x", "a/../../x", "a//b", "a/./b", "a\\b"])
def test_paths_out_of_the_store_are_refused(repository: Repository, path: str) -> None:
    with pytest.raises(PlatformError, match="not a path inside"):
        repository.commit({path: b"1"}, parent=repository.head(), message="m")
    assert repository.list() == ()


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

    threads = [threading.Thread(target=add_five) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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


def _die_at(root: Path, step: str) -> None:
    """Commit two files and be killed at a named step, in a process of its own."""
    repository = FolderRepository(root)

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if step == "before the journal":
        repository._write_journal = die  # type: ignore[method-assign, assignment]
    elif step == "after the journal":
        finish = repository._finish_journal
        repository._finish_journal = (  # type: ignore[method-assign]
            lambda: die() if repository._journal.exists() else finish()
        )
    else:
        move: Callable[..., Path] = Path.replace

        def move_one_then_die(self: Path, target: Path) -> Path:
            moved = move(self, target)
            if target.name == "one":
                die()
            return moved

        Path.replace = move_one_then_die  # type: ignore[method-assign, assignment]
    repository.commit({"one": b"new", "two": b"new"}, parent=repository.head(), message="m")


@pytest.mark.parametrize("step", ["before the journal", "after the journal", "amid the moves"])
def test_a_killed_commit_is_whole_or_absent(tmp_path: Path, step: str) -> None:
    FolderRepository(tmp_path).commit({"one": b"old", "two": b"old"}, parent="0", message="m")
    child = multiprocessing.get_context("spawn").Process(target=_die_at, args=(tmp_path, step))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL

    repository = FolderRepository(tmp_path)
    expected = (b"old", "1") if step == "before the journal" else (b"new", "2")
    assert repository.head() == expected[1]
    assert {repository.read("one"), repository.read("two")} == {expected[0]}
    repository.commit({"one": b"later"}, parent=repository.head(), message="goes on")
    assert repository.read("one") == b"later"
    assert sorted(p.name for p in (tmp_path / ".commits").iterdir()) == ["lock", "version"]
