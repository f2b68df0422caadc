"""The store's contract: versioned files, changed only by atomic compare-and-swap commits.

It is what a Hub dataset repository offers (`create_commit` with `parent_commit`), no more, so a
folder, the memory of a test and the Hub can all keep it. All take the same paths: one is refused
before anything is written, because a commit that was decided must be possible.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.live.interface import Live

Changes = Mapping[str, bytes | Path | None]
"""Path to new content, or to a file of this machine that holds it, which the store copies; None
deletes the file."""

NOT_LET_IN = frozenset({"token_refused", "access_lost"})
"""Codes of a store that answers, and takes nothing from this process until an operator acts."""


class NotFoundError(PlatformError):
    """There is no file of that path."""

    def __init__(self, path: str) -> None:
        super().__init__("not_found", f"The store has no file {path!r}.")


class ConflictError(TransientError):
    """Somebody else committed after the version this commit was based on. Re-read, try again."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(
            "conflict", f"The store moved on from version {expected!r} to {found!r} meanwhile."
        )


class Repository(Protocol):
    """Versioned files.

    All methods may raise TransientError where the medium can fail, and PlatformError `bad_path`
    for a path or prefix that is not inside the store.
    """

    def head(self) -> str:
        """The current version; changes with every commit."""

    def read(self, path: str) -> bytes:
        """The content of a file at the current version.

        Raises:
            NotFoundError: there is none.
        """

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file at the current version to a new file of this machine, piece by piece.

        Raises:
            NotFoundError: there is none; no target is left.
        """

    def has(self, path: str) -> bool:
        """Whether there is a file of that path."""

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """Paths that begin with `prefix`, sorted."""

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """Apply all changes or none, if the head is still `parent`; returns the new version.

        Raises:
            ConflictError: the head is not `parent` any more; nothing was changed.
            PlatformError: `path_clash` where a path would be both a file and a folder; nothing
                was changed.
        """


def utc_now() -> datetime:
    """The time of this machine, with its zone."""
    return datetime.now(UTC)


def _nothing_to_forget() -> None:
    """Of a store that is asked for its version each time."""


def _always() -> bool:
    """Of a store whose private repository is open to this process."""
    return True


def _no_waits() -> None:
    """Of a store that lets nobody wait."""


def _nothing_to_sweep() -> None:
    """Of a store in which the dead leave nothing."""


def _nowhere(_version: str) -> str:
    """Of a store that keeps no history."""
    return ""


@dataclass(frozen=True)
class Store:
    """The two repositories of an Assay, and the pulses of its workers.

    Attributes:
        public: boards, rows, events, per-pair scores of public benchmarks.
        private: what was uploaded.
        live: heartbeats and progress, which are never commits.
        clock: the medium's clock. Every time that is stored comes from it, and leases run out by
            it, so that a machine whose own clock is wrong takes nothing from another.
        jobs_per_commit: how many submissions a worker should claim, and how many finished ones
            publish, in one commit; more than one where commits are scarce.
        look_every_s: the least time between two looks of a worker at whether what it runs is
            still wanted; 0: at every batch.
        commits_left: how many commits this machine may still make within the hour; None where
            they are not counted.
        next_commit_s: seconds until the next commit may be made; None likewise.
        look_anew: somebody says that the store has changed: forget which version it had.
        cache: folder of this machine for copies of what is far away, whose files may be removed at
            any time; None where nothing is.
        wait_no_more: this process is to end: whoever waits for the medium is told so at once, and
            from now on only what needs no wait is done.
        sweep: drop what processes that died left in the store, and nothing of those that live.
        heartbeats_shared: whether workers of other machines see those of this one.
        private_readable: whether this process may read the private repository; without it, boards,
            results and the public queue can be read.
        permanent_address: where a version of the public side stays readable; empty where the store
            keeps no history.
    """

    public: Repository
    private: Repository
    live: Live
    clock: Callable[[], datetime] = utc_now
    jobs_per_commit: int = 1
    look_every_s: float = 0.0
    commits_left: Callable[[], int] | None = None
    next_commit_s: Callable[[], float] | None = None
    look_anew: Callable[[], None] = _nothing_to_forget
    cache: Path | None = None
    wait_no_more: Callable[[], None] = _no_waits
    sweep: Callable[[], None] = _nothing_to_sweep
    heartbeats_shared: bool = True
    private_readable: Callable[[], bool] = _always
    permanent_address: Callable[[str], str] = _nowhere

    def commit_wait_min(self) -> int:
        """Minutes until the next commit may be made; 0 where it is one at the most."""
        seconds = self.next_commit_s() if self.next_commit_s else 0.0
        return math.ceil(seconds / 60.0) if seconds > 60.0 else 0


@runtime_checkable
class Groups(Protocol):
    """A repository that commits what several want at the same time together."""

    def transact_together(
        self,
        change: Callable[[], Changes],
        message: str,
        *,
        attempts: int,
        sleep: Callable[[float], None],
    ) -> str:
        """As `transact`, in one commit with what others want meanwhile."""


def transact(
    repository: Repository,
    change: Callable[[], Changes],
    message: str,
    *,
    attempts: int = 20,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Commit what `change` computes from the current state, again on every lost race.

    Args:
        repository: what to read and change. One that groups commits may put this change and
            others into one, as if they had been made one after the other.
        change: reads the repository and returns the changes; called once per attempt, and by a
            repository that groups once more where a commit has to wait. An empty result commits
            nothing. What it raises ends the transaction, unless the store moved on since: it may
            have read files of two versions, so that is a lost race.
        message: for the history.
        attempts: how many lost races to bear.
        sleep: how to wait; passed in by tests.

    Returns:
        The version after the commit.

    Raises:
        ConflictError: the race was lost `attempts` times.
    """
    if isinstance(repository, Groups):
        return repository.transact_together(change, message, attempts=attempts, sleep=sleep)
    return transact_alone(repository, change, message, attempts=attempts, sleep=sleep)


def transact_alone(
    repository: Repository,
    change: Callable[[], Changes],
    message: str,
    *,
    attempts: int,
    sleep: Callable[[float], None],
) -> str:
    """As `transact`, in a commit of its own.

    Raises:
        ConflictError: the race was lost `attempts` times.
    """
    for attempt in range(attempts):
        parent = repository.head()
        last = attempt == attempts - 1
        try:
            changes = change()
        except Exception:
            # It may have read files of two versions; if so, it merely lost the race.
            if last or repository.head() == parent:
                raise
        else:
            if not changes:
                return parent
            try:
                return repository.commit(changes, parent=parent, message=message)
            except ConflictError:
                if last:
                    raise
        sleep(rest_after(attempt))
    raise ValueError("attempts must be at least 1")


def rest_after(lost: int) -> float:
    """Seconds to wait after so many lost races and one more."""
    return random.uniform(0.0, min(1.0, 0.02 * 2**lost))  # noqa: S311 (jitter)


CONTROL = ".commits"  # Folder of a store's own files; no path may lie in it

_PART_BYTES = 200
_PATH_BYTES = 1000


def check_path(path: str) -> str:
    """The path itself, if it is a plain relative one that every medium can keep."""
    parts = path.split("/")
    if not all(_plain(part) for part in parts) or len(path.encode()) > _PATH_BYTES:
        raise _bad(path)
    if parts[0].casefold() == CONTROL:  # Some file systems do not tell letter cases apart.
        raise PlatformError("bad_path", f"{path!r} is not a path inside the store: reserved.")
    return path


def check_prefix(prefix: str) -> str:
    """The prefix itself, if a plain relative path can begin with it."""
    *folders, beginning = prefix.split("/")
    if not all(_plain(part) for part in folders) or not _nameable(beginning) or beginning == "..":
        raise _bad(prefix)
    return prefix


def check_clashes(
    changes: Mapping[str, bytes | Path | None],
    is_file: Callable[[str], bool],
    below: Callable[[str], Iterable[str]],
) -> None:
    """Refuse changes after which one path would be a file and a folder."""
    written = {path for path, content in changes.items() if content is not None}
    deleted = changes.keys() - written
    for path in written:
        for folder in folders_of(path):
            if folder in written or (folder not in deleted and is_file(folder)):
                raise _clash(folder, path)
        for file in below(path):
            if file not in deleted:
                raise _clash(path, file)


def entangled(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a path of one lies in what, as a path of the other, is a file."""
    first, second = set(some), set(others)
    return any(
        folder in files
        for files, paths in ((first, second), (second, first))
        for path in paths
        for folder in folders_of(path)
    )


def folders_of(path: str) -> Iterable[str]:
    """`a` and `a/b` for `a/b/c`."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def _plain(part: str) -> bool:
    return part not in {"", ".", ".."} and _nameable(part)


def _nameable(part: str) -> bool:
    """Whether a file system can keep it as a name, or as the beginning of one."""
    if "\\" in part or "\0" in part:
        return False
    try:
        return len(part.encode()) <= _PART_BYTES
    except UnicodeEncodeError:
        return False


def _bad(path: str) -> PlatformError:
    return PlatformError("bad_path", f"{path!r} is not a path inside the store.")


def _clash(file: str, inside: str) -> PlatformError:
    return PlatformError(
        "path_clash", f"{file!r} cannot be a file and, with {inside!r} in it, a folder."
    )
