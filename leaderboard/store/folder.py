"""A store in a folder: the embedded default, for one machine and any number of processes.

A commit is made durable by one rename. All new contents are written below `.commits/`, then the
list of moves becomes `.commits/journal.json` (the rename that decides), then the moves are made
and the journal removed. Whoever opens the folder, reads it or takes the lock after a crash
finishes the journal first, so a commit is always either absent or whole.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from benchmarks.errors import PlatformError, TransientError
from benchmarks.sources.output import DRAFT, replace_durably, write_durably
from leaderboard.store.disk import failing, files_below, make_room, remove_file
from leaderboard.store.interface import (
    CONTROL,
    Changes,
    ConflictError,
    NotFoundError,
    Store,
    check_clashes,
    check_path,
    check_prefix,
)
from leaderboard.store.live.interface import FolderLive

REFRESHED_EVERY_S = 2.0
_SMOOTHED = timedelta(seconds=1)
"""A step back by less is not shown: file systems count time in ticks of milliseconds."""


class FolderClock:
    """The time by which a file system stamps its files.

    A file is touched and its stamp read; between two touches, and while the file system fails, the
    time goes on by the machine's steady clock, which nobody sets. So the machine's own idea of the
    time never matters.
    """

    def __init__(self, file: Path, steady: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._steady = steady
        self._lock = threading.Lock()
        self._touched = datetime.min.replace(tzinfo=UTC)
        self._touched_at = 0.0
        self._known = False
        self._asked_at = float("-inf")
        self._latest = self._touched

    def __call__(self) -> datetime:
        """The time now."""
        with self._lock:
            steady = self._steady()
            if steady - self._asked_at >= REFRESHED_EVERY_S or not self._known:
                self._ask(steady)
            now = self._touched + timedelta(seconds=steady - self._touched_at)
            if not timedelta(0) < self._latest - now < _SMOOTHED:
                self._latest = now
            return self._latest

    def _ask(self, steady: float) -> None:
        self._asked_at = steady
        try:
            with failing("tell the time"):
                self._touched, self._touched_at = self._touch(), steady
                self._known = True
        except TransientError:
            if not self._known:
                raise

    def _touch(self) -> datetime:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.utime(opened)  # Without a time, the file system itself says what time it is.
            stamp = os.fstat(opened).st_mtime_ns
        finally:
            os.close(opened)
        return datetime.fromtimestamp(stamp // 10**9, UTC) + timedelta(
            microseconds=stamp % 10**9 // 1000
        )


_LOCK_TIMEOUT_S = 30.0


class FolderRepository:
    """Versioned files below a folder; safe among processes of one machine."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._control = root / CONTROL
        try:
            self._control.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlatformError(
                "store_not_writable",
                f"The store {root} cannot be used: {error.strerror}.",
                "Give a folder this user may write to.",
            ) from error
        self._lock = FileLock(self._control / "lock", timeout=_LOCK_TIMEOUT_S)
        with failing("finish an interrupted commit"):
            self._settle()

    def head(self) -> str:
        """See `Repository`."""
        with failing("read its version"):
            self._settle()
            return self._version()

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        file = self._root / check_path(path)
        with failing(f"read {path!r}"):
            self._settle()
            try:
                return file.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
                raise NotFoundError(path) from error

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        file = self._root / check_path(path)
        with failing(f"read {path!r}"):
            self._settle()
            try:
                # Open, the file stays what it is, even if a commit replaces it meanwhile.
                with file.open("rb") as source, target.open("xb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
                raise NotFoundError(path) from error

    def has(self, path: str) -> bool:
        """See `Repository`."""
        check_path(path)
        with failing(f"look for {path!r}"):
            self._settle()
            return self._is_file(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        check_prefix(prefix)
        with failing(f"list {prefix!r}"):
            before = self.head()
            found = self._walk(prefix)
            if self.head() == before:
                return found
            # A commit was made meanwhile: of its files some may be found and others not.
            with self._locked():
                return self._walk(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`."""
        for path in changes:
            check_path(path)
        with failing(f"commit {message!r}"), self._locked():
            current = self._version()
            if parent != current:
                raise ConflictError(parent, current)
            check_clashes(changes, self._is_file, lambda path: self._walk(f"{path}/"))
            version = str(int(current) + 1)
            self._write_journal(changes, version, message)
            self.finish_interrupted()
            return version

    def sweep(self) -> None:
        """Finish or drop a commit whose process died; one that is being made is waited for."""
        with failing("drop what is left of a commit"):
            self._settle()
            with self._locked():
                pass

    @property
    def _journal(self) -> Path:
        return self._control / "journal.json"

    def _version(self) -> str:
        try:
            return (self._control / "version").read_text()
        except FileNotFoundError:
            return "0"

    def _is_file(self, path: str) -> bool:
        return (self._root / path).is_file()

    def _walk(self, prefix: str) -> tuple[str, ...]:
        # Only the part of the tree that can hold the prefix is walked.
        top = self._root / prefix.rpartition("/")[0]
        if top == self._control:
            return ()
        found = files_below(top, without=self._control)
        paths = (file.relative_to(self._root).as_posix() for file in found)
        return tuple(sorted(path for path in paths if path.startswith(prefix)))

    def _settle(self) -> None:
        """Wait for a commit that is being made, or finish it where a crash left it half done."""
        if not self._control.is_dir():  # It was there: an empty disk is not an empty store.
            raise TransientError(
                "store_gone",
                "The folder of the store is not there any more: it was removed, or its disk is "
                "not mounted.",
                "Mount the disk, or put the folder back; it goes on by itself then.",
            )
        if self._journal.exists():
            with self._locked():
                pass

    def _locked(self) -> _RecoveringLock:
        return _RecoveringLock(self)

    def _write_journal(self, changes: Changes, version: str, message: str) -> None:
        try:
            self._stage(changes, version, message)
        except BaseException:
            self._drop_leftovers()
            raise

    def _stage(self, changes: Changes, version: str, message: str) -> None:
        staged = self._control / f"staged-{uuid.uuid4().hex}"
        staged.mkdir()
        # Deletions come first: a file may give way to a folder, or a folder to a file.
        moves: list[tuple[str | None, str]] = [(None, p) for p, c in changes.items() if c is None]
        written = {path: content for path, content in changes.items() if content is not None}
        # The version is staged as well, so that a full disk is met before the commit is decided.
        for number, (path, content) in enumerate(
            {**written, f"{CONTROL}/version": version.encode()}.items()
        ):
            name = f"{staged.name}/{number}"
            write_durably(self._control / name, content)
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
                remove_file(target)
                continue
            source = self._control / name
            if source.exists():  # Absent when an earlier try had moved it.
                make_room(target)
                source.replace(target)
        self._journal.unlink()

    def finish_interrupted(self) -> None:
        """Finish a commit that is decided and drop what never became one."""
        self._finish_journal()
        self._drop_leftovers()

    def _drop_leftovers(self) -> None:
        """Drop what belongs to no commit; only whoever holds the lock may."""
        if self._journal.exists():
            return  # The commit was decided after all: its contents are still to be moved.
        for staged in self._control.glob("staged-*"):
            shutil.rmtree(staged, ignore_errors=True)
        for draft in self._control.glob(f"*{DRAFT}"):
            draft.unlink(missing_ok=True)


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
        try:
            self._repository.finish_interrupted()
        except BaseException:
            self._repository._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._repository._lock.release()


def folder_store(root: Path, clock: Callable[[], datetime] | None = None) -> Store:
    """The store in `root/public`, `root/private` and `root/live`; made, the second is for us alone."""
    with suppress(OSError):  # it is there already, or told of in words below
        (root / "private").mkdir(mode=0o700, parents=True)
    public, private = FolderRepository(root / "public"), FolderRepository(root / "private")

    def sweep() -> None:
        public.sweep()
        private.sweep()

    return Store(
        public=public,
        private=private,
        live=FolderLive(root / "live"),
        clock=clock or FolderClock(root / "live" / ".clock"),
        sweep=sweep,
    )
