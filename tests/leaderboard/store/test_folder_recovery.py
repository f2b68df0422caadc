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
from benchmarks.sources.output import DRAFT, replace_durably
from leaderboard.store import folder
from leaderboard.store.folder import FolderRepository, folder_store
from leaderboard.store.interface import NotFoundError, transact
from tests.kit.hub_store import contents, put
from tests.kit.refusals import refused

OLD = {"one": b"old", "two": b"old"}
NEW = {"one": b"new", "two": b"new"}


@pytest.fixture
def repository(tmp_path: Path) -> FolderRepository:
    made = FolderRepository(tmp_path)
    put(made, OLD)
    return made


def on_disk(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in OLD}


# Killed


def _die_at(root: Path, step: str) -> None:
    """Commit two files and be killed at a named step, in a process of its own."""
    repository = FolderRepository(root)

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if step == "before":
        repository._write_journal = die  # type: ignore[method-assign, assignment]
    elif step == "staged":
        setattr(folder, "replace_durably", die)  # noqa: B010 (it exports no such name)
    elif step == "after":
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
    put(repository, NEW)


def kill_at(root: Path, step: str) -> None:
    """Be killed before a commit is staged or when it is, after its journal is written, or amid its moves."""
    child = multiprocessing.get_context("spawn").Process(target=_die_at, args=(root, step))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("step", ["before", "staged", "after", "amid"])
def test_a_killed_commit_is_whole_or_absent_when_reopened(tmp_path: Path, step: str) -> None:
    kill_at(tmp_path, step)
    expected, head = (OLD, "1") if step in {"before", "staged"} else (NEW, "2")
    opened = FolderRepository(tmp_path)
    assert (on_disk(tmp_path), contents(opened), opened.head()) == (expected, expected, head)
    put(opened, {"one": b"later"})
    assert opened.read("one") == b"later"
    assert sorted(p.name for p in (tmp_path / ".commits").iterdir()) == ["lock", "version"]


@pytest.mark.parametrize("ask", [lambda r: r.read("two"), lambda r: r.list(), lambda r: r.head()])
def test_whoever_reads_finishes_a_killed_commit_of_another(
    tmp_path: Path, repository: FolderRepository, ask: Callable[[FolderRepository], object]
) -> None:
    kill_at(tmp_path, "amid")
    ask(repository)
    assert on_disk(tmp_path) == NEW


def test_a_reader_waits_for_a_commit(tmp_path: Path, repository: FolderRepository) -> None:
    writer, seen = FolderRepository(tmp_path), list[bytes]()
    thread = threading.Thread(target=lambda: seen.append(repository.read("two")))
    with writer._locked():
        writer._write_journal(NEW, "2", "m")
        thread.start()
        time.sleep(0.2)
        assert seen == []
        writer.finish_interrupted()
    thread.join(timeout=60)
    assert seen == [b"new"]


def test_a_listing_is_of_one_version(
    tmp_path: Path, repository: FolderRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk, walks = repository._walk, []

    def overtaken(prefix: str) -> tuple[str, ...]:
        walks.append(prefix)
        if len(walks) > 1:
            return walk(prefix)
        put(FolderRepository(tmp_path), {"one": None, "two": None, "b": b"2"})
        return ("b", "two")  # What a walk finds that a commit overtakes.

    monkeypatch.setattr(repository, "_walk", overtaken)
    assert repository.list() == ("b",)


@pytest.mark.parametrize("side", ["public", "private"])
def test_a_sweep_takes_what_the_killed_staged_though_no_commit_follows(
    tmp_path: Path, side: str
) -> None:
    store, control = folder_store(tmp_path), tmp_path / side / ".commits"
    put(getattr(store, side), OLD)
    kill_at(tmp_path / side, "staged")
    assert list(control.glob("staged-*"))
    store.sweep()
    assert sorted(p.name for p in control.iterdir()) == ["lock", "version"]
    assert contents(getattr(store, side)) == OLD


def test_a_sweep_takes_nothing_that_a_living_process_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = folder_store(tmp_path)
    sweeping = threading.Thread(target=store.sweep)

    def while_swept(path: Path, content: bytes) -> None:
        sweeping.start()
        sweeping.join(0.2)  # Long enough to sweep, where nothing keeps it waiting.
        replace_durably(path, content)

    monkeypatch.setattr(folder, "replace_durably", while_swept)
    put(store.public, NEW)
    sweeping.join(60)
    assert not sweeping.is_alive()
    assert contents(store.public) == NEW


def test_drafts_of_the_killed_are_dropped(tmp_path: Path, repository: FolderRepository) -> None:
    draft = tmp_path / ".commits" / f"journal.json.0{DRAFT}"
    draft.write_bytes(b"half a jour")
    put(repository, NEW)
    assert not draft.exists()


# A disk that refuses


def refusing(
    patch: pytest.MonkeyPatch, name: str, number: int, when: Callable[[Path], bool]
) -> None:
    """Let a method of Path fail for some paths."""
    method = getattr(Path, name)

    def refuse(self: Path, *given: object, **more: object) -> object:
        if when(self):
            raise OSError(number, os.strerror(number), str(self))
        return method(self, *given, **more)

    patch.setattr(Path, name, refuse)


def test_a_lock_is_free_again_when_what_was_interrupted_cannot_be_finished(
    tmp_path: Path, repository: FolderRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    with repository._locked():
        repository._write_journal(NEW, "2", "m")
    with monkeypatch.context() as patch:
        refusing(patch, "replace", errno.ENOSPC, lambda path: "staged-" in str(path))
        with refused("store_failed", os.strerror(errno.ENOSPC)):
            repository.head()
    seen: list[str] = []
    # Another thread: the one that holds a lock may take it again.
    thread = threading.Thread(target=lambda: seen.append(FolderRepository(tmp_path).head()))
    thread.start()
    thread.join(timeout=60)
    assert seen == ["2"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Free space"), (errno.EACCES, "Let this user"), (errno.EIO, "Check")],
)
def test_a_commit_that_the_disk_refuses_is_absent_and_says_what_to_do(
    tmp_path: Path, repository: FolderRepository, monkeypatch: pytest.MonkeyPatch,
    number: int, remedy: str
) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        refusing(patch, "open", number, lambda path: path.name == "1")
        with pytest.raises(TransientError, match=os.strerror(number)) as failed:
            repository.commit(NEW, parent="1", message="two")
    assert failed.value.code == "store_failed"
    assert "'two'" in failed.value.message
    assert str(tmp_path) not in failed.value.message  # It may be shown on a page.
    assert failed.value.hint.startswith(remedy)
    assert (contents(repository), repository.head()) == (OLD, "1")
    assert sorted(p.name for p in (tmp_path / ".commits").iterdir()) == ["lock", "version"]
    put(repository, NEW)
    assert contents(repository) == NEW


def test_half_a_commit_is_never_shown_while_the_disk_refuses_the_rest(
    tmp_path: Path, repository: FolderRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second(path: Path) -> bool:
        return path.parent.name != ".commits" and path.name == "1"

    asks = (lambda: put(repository, NEW), lambda: repository.read("one"), repository.list,
            repository.head)  # fmt: skip
    with monkeypatch.context() as patch:
        refusing(patch, "replace", errno.EIO, second)
        for ask in asks:
            with refused("store_failed"):
                ask()
            assert (tmp_path / "one").read_bytes() == b"new"
    assert (contents(repository), repository.head()) == (NEW, "2")


def test_a_transaction_whose_commit_was_decided_and_not_finished_is_not_made_twice(
    repository: FolderRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, failures = repository._finish_journal, iter([True])

    def fail_once() -> None:
        if repository._journal.exists() and next(failures, False):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        finish()

    monkeypatch.setattr(repository, "_finish_journal", fail_once)
    with refused("store_failed"):
        transact(repository, lambda: {"one": repository.read("one") + b"+"}, "add")
    assert repository.read("one") == b"old+"


def test_what_cannot_be_read_or_listed_is_told_from_what_is_not_there(
    repository: FolderRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(repository, {"a/b": b"1"})
    scan = os.scandir

    def refuse(path: Path) -> object:
        if str(path).endswith("a"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    refusing(monkeypatch, "read_bytes", errno.EIO, lambda path: path.name == "one")
    monkeypatch.setattr(os, "scandir", refuse)
    with refused("store_failed", "'one'", os.strerror(errno.EIO)):
        repository.read("one")
    with refused("store_failed", "'a/'", os.strerror(errno.EACCES)):
        repository.list("a/")
    with pytest.raises(NotFoundError):
        repository.read("three")
