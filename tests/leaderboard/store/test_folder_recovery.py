"""A folder store when the process is killed or the disk refuses."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.store import disk
from leaderboard.store.folder import FolderRepository
from leaderboard.store.interface import NotFoundError, transact

OLD = {"one": b"old", "two": b"old"}
NEW = {"one": b"new", "two": b"new"}


# Killed.


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
    repository.commit(NEW, parent=repository.head(), message="m")


def kill_at(root: Path, step: str) -> None:
    """Commit the old files, then be killed while the new ones are committed."""
    FolderRepository(root).commit(OLD, parent="0", message="m")
    child = multiprocessing.get_context("spawn").Process(target=_die_at, args=(root, step))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL


def files(repository: FolderRepository) -> dict[str, bytes]:
    return {path: repository.read(path) for path in repository.list()}


@pytest.mark.parametrize("step", ["before the journal", "after the journal", "amid the moves"])
def test_a_killed_commit_is_whole_or_absent(tmp_path: Path, step: str) -> None:
    kill_at(tmp_path, step)
    repository = FolderRepository(tmp_path)
    assert files(repository) == (OLD if step == "before the journal" else NEW)
    assert repository.head() == ("1" if step == "before the journal" else "2")
    repository.commit({"one": b"later"}, parent=repository.head(), message="goes on")
    assert repository.read("one") == b"later"
    assert sorted(p.name for p in (tmp_path / ".commits").iterdir()) == ["lock", "version"]


def test_whoever_opens_the_folder_finishes_a_killed_commit(tmp_path: Path) -> None:
    kill_at(tmp_path, "amid the moves")
    FolderRepository(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in OLD] == [b"new", b"new"]


@pytest.mark.parametrize("ask", [lambda r: r.read("two"), lambda r: r.list(), lambda r: r.head()])
def test_whoever_reads_finishes_a_killed_commit_of_another(
    tmp_path: Path, ask: Callable[[FolderRepository], object]
) -> None:
    reader = FolderRepository(tmp_path)
    kill_at(tmp_path, "amid the moves")
    ask(reader)
    assert [(tmp_path / name).read_bytes() for name in OLD] == [b"new", b"new"]


def test_a_reader_waits_for_a_commit_that_is_being_made(tmp_path: Path) -> None:
    reader = FolderRepository(tmp_path)
    writer = FolderRepository(tmp_path)
    with writer._locked():
        writer._write_journal(NEW, "1", "m")
        seen: list[bytes] = []
        thread = threading.Thread(target=lambda: seen.append(reader.read("two")))
        thread.start()
        time.sleep(0.2)
        assert seen == []
        writer.finish_interrupted()
    thread.join(timeout=60)
    assert seen == [b"new"]


def test_a_listing_is_of_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = FolderRepository(tmp_path)
    reader.commit({"a": b"1", "z": b"1"}, parent="0", message="m")
    walk, walks = reader._walk, []

    def overtaken(prefix: str) -> tuple[str, ...]:
        found = walk(prefix)
        walks.append(found)
        if len(walks) == 1:
            changes = {"a": None, "z": None, "b": b"2"}
            FolderRepository(tmp_path).commit(changes, parent="1", message="m")
            return ("b", "z")  # What a walk finds that a commit overtakes.
        return found

    monkeypatch.setattr(reader, "_walk", overtaken)
    assert reader.list() == ("b",)


def test_drafts_of_a_killed_process_are_dropped(tmp_path: Path) -> None:
    repository = FolderRepository(tmp_path)
    draft = tmp_path / ".commits" / f"journal.json.0{disk.DRAFT}"
    draft.write_bytes(b"half a jour")
    repository.commit(NEW, parent="0", message="m")
    assert not draft.exists()


# A disk that refuses.


def refusing(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int, when: Callable[[Path], bool]
) -> None:
    """Let a method of Path fail for some paths."""
    method = getattr(Path, name)

    def refuse(self: Path, *given: object, **more: object) -> object:
        if when(self):
            raise OSError(number, os.strerror(number), str(self))
        return method(self, *given, **more)

    monkeypatch.setattr(Path, name, refuse)


def test_a_lock_is_free_again_when_what_was_interrupted_cannot_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = FolderRepository(tmp_path)
    with repository._locked():
        repository._write_journal(NEW, "1", "m")
    with monkeypatch.context() as patch:
        refusing(patch, "replace", errno.ENOSPC, lambda path: "staged-" in str(path))
        with pytest.raises(TransientError, match="No space left"):
            repository.head()
    seen: list[str] = []
    # Another thread: the one that holds a lock may take it again.
    thread = threading.Thread(target=lambda: seen.append(FolderRepository(tmp_path).head()))
    thread.start()
    thread.join(timeout=60)
    assert seen == ["1"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Free space"), (errno.EACCES, "Let this user"), (errno.EIO, "Check the")],
)
def test_a_commit_that_the_disk_refuses_is_absent_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    repository = FolderRepository(tmp_path)
    repository.commit(OLD, parent="0", message="m")
    with monkeypatch.context() as patch:
        refusing(patch, "open", number, lambda path: path.name == "1")
        with pytest.raises(TransientError) as failed:
            repository.commit(NEW, parent="1", message="put two")
    assert failed.value.code == "store_failed"
    assert "could not commit 'put two'" in failed.value.message
    assert os.strerror(number) in failed.value.message
    assert str(tmp_path) not in failed.value.message  # It may be shown on a page.
    assert failed.value.hint.startswith(remedy)
    assert (files(repository), repository.head()) == (OLD, "1")
    assert sorted(p.name for p in (tmp_path / ".commits").iterdir()) == ["lock", "version"]
    repository.commit(NEW, parent="1", message="again")
    assert files(repository) == NEW


def test_half_a_commit_is_never_shown_while_the_disk_refuses_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = FolderRepository(tmp_path)
    repository.commit(OLD, parent="0", message="m")
    with monkeypatch.context() as patch:
        refusing(
            patch,
            "replace",
            errno.EIO,
            lambda path: path.parent.name != ".commits" and path.name == "1",
        )
        with pytest.raises(TransientError, match="commit"):
            repository.commit(NEW, parent="1", message="m")
        assert (tmp_path / "one").read_bytes() == b"new"
        for ask in (lambda: repository.read("one"), repository.list, repository.head):
            with pytest.raises(TransientError) as failed:
                ask()
            assert failed.value.code == "store_failed"
    assert (files(repository), repository.head()) == (NEW, "2")


def test_a_transaction_whose_commit_was_decided_and_not_finished_is_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = FolderRepository(tmp_path)
    repository.commit({"n": b"0"}, parent="0", message="m")
    finish, failures = repository._finish_journal, iter([True])

    def fail_once() -> None:
        if repository._journal.exists() and next(failures, False):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        finish()

    def add_one() -> dict[str, bytes]:
        return {"n": str(int(repository.read("n")) + 1).encode()}

    monkeypatch.setattr(repository, "_finish_journal", fail_once)
    with pytest.raises(TransientError):
        transact(repository, add_one, "add one")
    assert repository.read("n") == b"1"


def test_what_cannot_be_read_is_told_from_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = FolderRepository(tmp_path)
    repository.commit(OLD, parent="0", message="m")
    refusing(monkeypatch, "read_bytes", errno.EIO, lambda path: path.name == "one")
    with pytest.raises(TransientError, match="could not read 'one': Input/output error"):
        repository.read("one")
    with pytest.raises(NotFoundError):
        repository.read("three")


def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = FolderRepository(tmp_path)
    repository.commit({"a/b": b"1"}, parent="0", message="m")
    scan = os.scandir

    def refuse(path: Path) -> object:
        if str(path).endswith("a"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(TransientError, match="could not list 'a/': Permission denied"):
        repository.list("a/")
