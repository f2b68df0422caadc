"""A folder store when the process is killed or the disk refuses."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from benchmarks.sources.output import DRAFT, replace_durably
from leaderboard.store import folder
from leaderboard.store.folder import FolderRepository, folder_store
from leaderboard.store.interface import NotFoundError, transact
from tests.kit.refusals import refused
from tests.kit.store import contents, put
from tests.leaderboard.store.dying import DONE, KILLED, Dying
from tests.leaderboard.store.dying_folder_writer import NEW, OLD


@pytest.fixture
def repository(tmp_path: Path) -> FolderRepository:
    repository = FolderRepository(tmp_path)
    put(repository, OLD)
    return repository


def on_disk(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in OLD}


# Killed


def killed_when(dying: Dying, root: Path, holds: Callable[[], bool]) -> None:
    """Kill a writer of `NEW` before the first change of a file before which this holds."""
    for last in count(1):
        put(FolderRepository(root), OLD)
        assert dying("dying_folder_writer", last, root) == KILLED
        if holds():
            return


def test_killed_before_any_change_of_a_file_a_commit_is_whole_or_absent_when_reopened(
    tmp_path: Path, dying: Dying
) -> None:
    whole: list[bool] = []
    for last in count(1):
        root = tmp_path / str(last)
        put(FolderRepository(root), OLD)
        ended = dying("dying_folder_writer", last, root)
        opened = FolderRepository(root)
        assert on_disk(root) == contents(opened)
        assert (contents(opened), opened.head()) in ((OLD, "1"), (NEW, "2"))
        whole.append(opened.head() == "2")
        put(opened, {"one": b"later"})
        assert opened.read("one") == b"later"
        assert sorted(p.name for p in (root / ".commits").iterdir()) == ["lock", "version"]
        if ended == DONE:
            break
        assert ended == KILLED
    assert whole == sorted(whole), "once it is decided, it is decided"
    assert {*whole[:-1]} == {False, True}, "some were killed before that and some after it"


@pytest.mark.parametrize("ask", [lambda r: r.read("two"), lambda r: r.list(), lambda r: r.head()])
def test_whoever_reads_finishes_a_killed_commit_of_another(
    tmp_path: Path,
    repository: FolderRepository,
    dying: Dying,
    ask: Callable[[FolderRepository], object],
) -> None:
    half = {**OLD, "one": NEW["one"]}
    killed_when(dying, tmp_path, lambda: on_disk(tmp_path) == half)
    ask(repository)
    assert on_disk(tmp_path) == NEW


def test_a_reader_waits_for_a_commit(
    tmp_path: Path, repository: FolderRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append(FolderRepository(tmp_path).read("two")))
    move = Path.replace

    def read_before_the_move(self: Path, target: Path) -> Path:
        if target == tmp_path / "two":
            reader.start()
            reader.join(0.1)  # Long enough to read, where nothing keeps it waiting.
            assert seen == []
        return move(self, target)

    monkeypatch.setattr(Path, "replace", read_before_the_move)
    put(repository, NEW)
    reader.join(60)
    assert seen == [b"new"]


def test_a_listing_is_of_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, scan, scanned = FolderRepository(tmp_path), os.scandir, list[str]()
    put(repository, {"a/old": b"1", "b/old": b"1"})

    def overtaken(path: str | Path | int) -> object:
        if isinstance(path, str):  # as a walk through folders asks
            scanned.append(path)
            if len(scanned) == 3:  # The store and one of its two folders are read by now.
                moved = {"a/old": None, "b/old": None, "a/new": b"2", "b/new": b"2"}
                put(FolderRepository(tmp_path), moved)
        return scan(path)

    monkeypatch.setattr(os, "scandir", overtaken)
    assert repository.list() == ("a/new", "b/new")


@pytest.mark.parametrize("side", ["public", "private"])
def test_a_sweep_takes_what_the_killed_staged_though_no_commit_follows(
    tmp_path: Path, dying: Dying, side: str
) -> None:
    store, control = folder_store(tmp_path), tmp_path / side / ".commits"
    put(getattr(store, side), OLD)
    killed_when(dying, tmp_path / side, lambda: any(control.glob("staged-*/1")))
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
    with monkeypatch.context() as patch:
        refusing(patch, "replace", errno.ENOSPC, lambda path: "staged-" in str(path))
        for act in (lambda: put(repository, NEW), repository.head):
            with refused("store_failed", os.strerror(errno.ENOSPC)):
                act()
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
    tmp_path: Path,
    repository: FolderRepository,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    remedy: str,
) -> None:
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

    put_new, read_one = (lambda: put(repository, NEW)), (lambda: repository.read("one"))
    with monkeypatch.context() as patch:
        refusing(patch, "replace", errno.EIO, second)
        for ask in (put_new, read_one, repository.list, repository.head):
            with refused("store_failed"):
                ask()
            assert (tmp_path / "one").read_bytes() == b"new"
    assert (contents(repository), repository.head()) == (NEW, "2")


def test_a_transaction_whose_commit_was_decided_and_not_finished_is_not_made_twice(
    repository: FolderRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([True])
    refusing(
        monkeypatch,
        "replace",
        errno.EIO,
        lambda path: "staged-" in str(path) and next(failures, False),
    )
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
