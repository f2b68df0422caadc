"""A store in a folder: the embedded default, for one machine and any number of processes.

A commit is made durable by one rename. All new contents are written below `.commits/`, then the
list of moves becomes `.commits/journal.json` (the rename that decides), then the moves are made
and the journal removed. Whoever opens the folder or takes the lock after a crash finishes the
journal first, so a commit is always either absent or whole.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

from filelock import FileLock, Timeout

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.interface import Changes, ConflictError, NotFoundError, Store, check_path
from leaderboard.store.live import FolderLive

_CONTROL = ".commits"
_LOCK_TIMEOUT_S = 30.0


class FolderRepository:
    """Versioned files below a folder; safe among processes of one machine.

    Args:
        root: the folder; made if it does not exist.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._control = root / _CONTROL
        try:
            self._control.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlatformError(
                "store_not_writable",
                f"The store {root} cannot be used: {error.strerror}.",
                "Give a folder this user may write to.",
            ) from error
        self._lock = FileLock(self._control / "lock", timeout=_LOCK_TIMEOUT_S)

    def head(self) -> str:
        """See `Repository`."""
        if self._journal.exists():
            with self._locked():
                pass  # Taking the lock finishes a commit that a crash left half done.
        return self._version()

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        try:
            return (self._root / check_path(path)).read_bytes()
        except (FileNotFoundError, IsADirectoryError) as error:
            raise NotFoundError(path) from error

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        # Only the part of the tree that can hold the prefix is walked.
        top = self._root / prefix.rpartition("/")[0]
        found = (p for p in top.rglob("*") if p.is_file() and self._control not in p.parents)
        paths = (p.relative_to(self._root).as_posix() for p in found)
        return tuple(sorted(p for p in paths if p.startswith(prefix)))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`."""
        for path in changes:
            check_path(path)
        with self._locked():
            current = self._version()
            if parent != current:
                raise ConflictError(parent, current)
            version = str(int(current) + 1)
            self._write_journal(changes, version, message)
            self._finish_journal()
            return version

    @property
    def _journal(self) -> Path:
        return self._control / "journal.json"

    def _version(self) -> str:
        try:
            return (self._control / "version").read_text()
        except FileNotFoundError:
            return "0"

    def _locked(self) -> _RecoveringLock:
        return _RecoveringLock(self)

    def _write_journal(self, changes: Changes, version: str, message: str) -> None:
        staged = self._control / f"staged-{uuid.uuid4().hex}"
        staged.mkdir()
        moves: list[tuple[str | None, str]] = []
        for number, (path, content) in enumerate(changes.items()):
            if content is None:
                moves.append((None, path))
                continue
            name = f"{staged.name}/{number}"
            _write_durably(self._control / name, content)
            moves.append((name, path))
        journal = {"version": version, "message": message, "staged": staged.name, "moves": moves}
        replace_durably(self._journal, json.dumps(journal).encode())

    def _finish_journal(self) -> None:
        """Make the moves of the journal; each is harmless to repeat."""
        if not self._journal.exists():
            return
        journal = json.loads(self._journal.read_bytes())
        for name, path in journal["moves"]:
            target = self._root / path
            if name is None:
                target.unlink(missing_ok=True)
                continue
            source = self._control / name
            if source.exists():  # Absent when an earlier try had moved it.
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)
        replace_durably(self._control / "version", journal["version"].encode())
        self._journal.unlink()
        shutil.rmtree(self._control / journal["staged"], ignore_errors=True)

    def finish_interrupted(self) -> None:
        """Finish a commit that a crash left half done and drop what never became one."""
        self._finish_journal()
        for leftover in self._control.glob("staged-*"):
            shutil.rmtree(leftover, ignore_errors=True)


class _RecoveringLock:
    """The repository's lock; whoever takes it first finishes what a crash left."""

    def __init__(self, repository: FolderRepository) -> None:
        self._repository = repository

    def __enter__(self) -> None:
        try:
            self._repository._lock.acquire()
        except Timeout as error:
            raise TransientError(
                "store_busy", f"The store was locked for {_LOCK_TIMEOUT_S:.0f} s.", "Try again."
            ) from error
        self._repository.finish_interrupted()

    def __exit__(self, *_: object) -> None:
        self._repository._lock.release()


def folder_store(root: Path) -> Store:
    """The store in `root/public`, `root/private` and `root/live`."""
    return Store(
        public=FolderRepository(root / "public"),
        private=FolderRepository(root / "private"),
        live=FolderLive(root / "live"),
    )


def replace_durably(path: Path, content: bytes) -> None:
    """Write a file so that readers and a crash see the old content or the new, never a part."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.draft")
    _write_durably(draft, content)
    draft.replace(path)


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
