"""Commits what several threads want at the same time in one commit: group commit.

One of the threads that wait leads: it evaluates the change of each, in the order they came, over
what those before it are going to write, and commits all of it. Only the change itself ever sees
what is not committed yet, at a head that is no version of the store and never comes again.
"""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    Repository,
    check_path,
    entangled,
    rest_after,
    transact_alone,
)
from leaderboard.store.pending_changes import PendingChanges

FILES = 100  # As many files as the Hub wants in a commit at most
N_BYTES = 64 << 20
_here = threading.local()
"""Whether this thread evaluates a change of a group: then it waits for no other."""


class Budget(Protocol):
    """How many commits may be made. Whoever sends a commit counts it; here it is only awaited."""

    def delay(self, commits: int) -> float:
        """Seconds until so many commits could be made; 0 if at once."""

    def ready(self, commits: int) -> None:
        """Wait until so many commits could be made."""


@dataclass(eq=False)
class Member:
    """A transaction that waits, and how it ended."""

    change: Callable[[], Changes]
    message: str
    attempts: int
    sleep: Callable[[float], None]
    lost: int = 0  # races it lost so far
    # a commit with others was refused, so it goes by itself and gets its own answer
    alone: bool = False
    gone: bool = False  # its thread was interrupted and waits no more
    version: str | None = None  # the store's, once it is committed
    error: BaseException | None = None  # what ended it instead

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.gone or self.version is not None or self.error is not None


class CommitQueue:
    """Transactions that wait, in the order they came; the thread of one of them leads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[Member] = []
        self._leader: Member | None = None

    def join(self, member: Member) -> None:
        """Wait with the others."""
        with self._changed:
            self._waiting.append(member)

    def waiting(self) -> tuple[Member, ...]:
        """All who wait, those who were asked already too."""
        with self._changed:
            # A leader that was interrupted may have left one behind that has ended.
            return tuple(member for member in self._waiting if not member.over)

    def lead(self, member: Member) -> bool:
        """Wait until a member has ended, or leads: then it must `leave`."""
        with self._changed:
            self._changed.wait_for(lambda: member.over or self._leader is None)
            if not member.over:
                self._leader = member
            return not member.over

    def end(
        self,
        members: Iterable[Member],
        *,
        version: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        """Let members go, with a version or an error; those who went already are passed over."""
        with self._changed:
            for member in members:
                if not member.over:
                    member.version, member.error = version, error
                    self._waiting.remove(member)
            self._changed.notify_all()

    def leave(self, member: Member) -> None:
        """Wait no more, nor lead; one that has not ended was interrupted, whatever comes of it."""
        with self._changed:
            member.gone = not member.over
            if member in self._waiting:
                self._waiting.remove(member)
            if self._leader is member:
                self._leader = None
            self._changed.notify_all()


@dataclass
class Group:
    """What goes into one commit, and who was asked for it."""

    parent: str
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)
    changes: dict[str, bytes | Path | None] = field(default_factory=dict)
    asked: list[Member] = field(default_factory=list)
    writers: list[Member] = field(default_factory=list)
    # who wants nothing written, or was refused, on the ground of what is not committed yet
    others: list[tuple[Member, BaseException | None]] = field(default_factory=list)

    @property
    def head(self) -> str:
        """Of no version, and another after every step."""
        return f"{self.parent}+{self.nonce}.{len(self.asked)}"

    @property
    def message(self) -> str:
        """Names all that is written; the first line is short."""
        first, *more = [member.message for member in self.writers]
        return "\n".join((f"{first}, and {len(more)} more", "", first, *more)) if more else first

    def takes(self, changes: Changes, files: int, n_bytes: int) -> bool:
        """Whether further changes can go into the same commit; the first always can.

        Those that a commit could not tell from one that never happened go into the next: where a
        file is taken away that is not there yet, or one becomes a folder.
        """
        if not self.changes or not changes:
            return True
        merged = {**self.changes, **changes}
        undone = any(
            content is None and self.changes.get(path) is not None
            for path, content in changes.items()
        )
        return (
            len(merged) <= files
            and sum(_size(content) for content in merged.values()) <= n_bytes
            and not undone
            and not entangled(self.changes, changes)
        )


class Grouping:
    """A repository whose transactions are committed together where they come together.

    Several threads share it. A change may run transactions of other repositories: those are made
    by themselves, so no group ever waits for another.
    """

    def __init__(
        self,
        repository: Repository,  # what is written to; its commits count themselves in the budget
        budget: Budget | None = None,
        *,
        commits: int = 1,  # of the budget, that one commit here may take
        files: int = FILES,  # the most files of several transactions in one commit
        n_bytes: int = N_BYTES,  # the most bytes of them
    ) -> None:
        self._under = repository
        self._budget = budget
        self._commits = commits
        self._limits = files, n_bytes
        self._queue = CommitQueue()
        self._seen = threading.local()

    def head(self) -> str:
        """See `Repository`; while a change is evaluated, of what it sees."""
        return self._view.head()

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        return self._view.read(path)

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        self._view.fetch(path, target)

    def has(self, path: str) -> bool:
        """See `Repository`."""
        return self._view.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        return self._view.list(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`; at once, and by itself."""
        if self._view is not self._under and parent == self._view.head():
            parent = parent.partition("+")[0]  # From within a change, which then loses the race.
        return self._under.commit(changes, parent=parent, message=message)

    def transact_together(
        self,
        change: Callable[[], Changes],
        message: str,
        *,
        attempts: int = 20,
        sleep: Callable[[float], None] = time.sleep,
    ) -> str:
        """See `transact`."""
        if attempts < 1:
            raise ValueError("attempts must be at least 1")
        if getattr(_here, "evaluating", False):
            with self._showing(None):
                return transact_alone(self, change, message, attempts=attempts, sleep=sleep)
        if (nothing_to_do := self._answered_before_the_wait(change)) is not None:
            return nothing_to_do
        member = Member(change, message, attempts, sleep)
        self._queue.join(member)
        try:
            while not member.over:
                if self._queue.lead(member):
                    self._lead(member)
        finally:
            self._queue.leave(member)
        if member.error is not None:
            raise member.error
        assert member.version is not None  # only a thread that still waits comes here
        return member.version

    @property
    def _view(self) -> Repository:
        view: Repository | None = getattr(self._seen, "view", None)
        return self._under if view is None else view

    @contextmanager
    def _showing(self, view: Repository | None) -> Iterator[None]:
        before = getattr(self._seen, "view", None), getattr(_here, "evaluating", False)
        self._seen.view, _here.evaluating = view, True
        try:
            yield
        finally:
            self._seen.view, _here.evaluating = before

    def _answered_before_the_wait(self, change: Callable[[], Changes]) -> str | None:
        """The version if nothing is to be written: nobody waits for a budget to be told so."""
        if self._budget is None or self._budget.delay(self._commits) == 0.0:
            return None
        parent = self._under.head()
        try:
            return None if change() else parent
        except Exception:
            if self._under.head() == parent:
                raise
            return None

    def _lead(self, own: Member) -> None:
        while not own.over:
            if self._budget is not None:
                self._budget.ready(self._commits)
            self._commit_once(own)

    def _commit_once(self, own: Member) -> None:
        """Make one commit for as many as go together, or learn that it cannot be made."""
        try:
            group = Group(self._under.head())
        except Exception as error:  # noqa: BLE001 (raised by each of them, who had met it alone)
            self._queue.end(self._queue.waiting(), error=error)
            return
        try:
            while (member := self._next(group)) and self._takes_in(group, member):
                pass
            if group.writers:
                self._commit(group)
        except ConflictError as error:
            for member in group.asked:
                member.lost += 1
            self._queue.end([m for m in group.asked if m.lost >= m.attempts], error=error)
            own.sleep(rest_after(max(member.lost for member in group.asked)))
        except Exception as error:  # noqa: BLE001 (likewise)
            self._queue.end(group.asked, error=error)

    def _next(self, group: Group) -> Member | None:
        """Who is to be asked next for this commit."""
        fresh = next((m for m in self._queue.waiting() if m not in group.asked), None)
        if fresh is None or len(group.asked) >= self._limits[0]:
            return None
        kept_apart = group.asked and (fresh.alone or group.asked[0].alone)
        return None if kept_apart else fresh

    def _takes_in(self, group: Group, member: Member) -> bool:
        """Evaluate the change of a member; False if what it wants does not go with the rest."""
        changes, refusal = self._evaluated(group, member)
        if not group.takes(changes, *self._limits):
            return False  # It is asked again for the next commit.
        group.asked.append(member)
        # A refusal over files of two versions is a lost race, but for the last attempt's.
        last_of_all = not group.writers and member.lost >= member.attempts - 1
        if isinstance(refusal, Exception) and not last_of_all:
            found = self._under.head()
            if found != group.parent:
                raise ConflictError(group.parent, found)
        if changes:
            group.changes |= changes
            group.writers.append(member)
        elif group.writers and not _interrupts(refusal):
            group.others.append((member, refusal))
        else:
            self._queue.end(
                [member], version=group.parent if refusal is None else None, error=refusal
            )
        return True

    def _evaluated(self, group: Group, member: Member) -> tuple[Changes, BaseException | None]:
        """What a change comes to over what is gathered so far, or what it raises."""
        with self._showing(PendingChanges(self._under, dict(group.changes), group.head)):
            try:
                changes = dict(member.change())
                for path in changes:
                    check_path(path)
            except KeyboardInterrupt:
                raise  # of this thread, whoever's change it evaluates
            except BaseException as error:  # noqa: BLE001 (its thread raises it, if it counts)
                return {}, error
            return changes, None

    def _commit(self, group: Group) -> None:
        writers = group.writers
        try:
            version = self._under.commit(group.changes, parent=group.parent, message=group.message)
        except ConflictError:
            raise
        except PlatformError as error:
            # Nothing was changed, and only those who made it impossible are to be told so.
            if len(writers) == 1:
                self._queue.end(writers, error=error)
            for member in writers:
                member.alone = True
        except Exception as error:  # noqa: BLE001 (raised by each of them)
            # Those who only waited on what others wrote ask anew.
            self._queue.end(writers, error=error)
        except BaseException:
            self._queue.end(writers, error=_stopped(group))
            raise
        else:
            self._queue.end(writers, version=version)
            for member, refusal in group.others:
                self._queue.end([member], version=None if refusal else version, error=refusal)


def _interrupts(error: BaseException | None) -> bool:
    return error is not None and not isinstance(error, Exception)


def _size(content: bytes | Path | None) -> float:
    if content is None:
        return 0.0
    if isinstance(content, bytes):
        return len(content)
    try:
        return content.stat().st_size
    except OSError:
        return math.inf  # The commit says what is wrong with it, and to nobody else.


def _stopped(group: Group) -> TransientError:
    return TransientError(
        "commit_stopped",
        f"{group.message.splitlines()[0]!r} was stopped: whether it was committed is not known.",
        "Look before trying again.",
    )
