"""Commits what several threads want at the same time in one commit: group commit.

One of the threads that wait leads: it asks each of them, in the order they came, to evaluate its
change over what those before it are going to write, and commits all of it. Each evaluates in its
own thread, so only that thread ever sees what is not committed yet, at a head that is no version
of the store and never comes again.
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
    rest_after,
    transact_alone,
)
from leaderboard.store.overlay import Overlay
from leaderboard.store.paths import check_path, entangled

Answer = Changes | Exception  # What a change came to


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
    view: Repository | None = None  # set while it is to evaluate its change over this
    busy: bool = False  # it is evaluating it
    answer: tuple[Repository, Answer] | None = None  # what it evaluated, and over which view
    gone: bool = False  # its thread was interrupted and waits no more
    version: str | None = None  # the store's, once it is committed
    error: Exception | None = None  # what ended it instead

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.gone or self.version is not None or self.error is not None

    def outcome(self) -> str:
        """The version after its commit."""
        if self.error is not None:
            raise self.error
        assert self.version is not None  # only a thread that still waits asks
        return self.version


class Turns:
    """Who waits, in the order they came; at most one of them leads."""

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

    def take(self, member: Member, evaluate: Callable[[Repository], Answer]) -> bool:
        """Wait for what a member has to do, and evaluate its change if it is that."""
        with self._changed:
            self._changed.wait_for(lambda: member.over or member.view or self._leader is None)
            if member.over:
                return False
            if member.view is None:
                self._leader = member
                return True
            view, member.view, member.busy = member.view, None, True
        answer = None
        try:
            answer = view, evaluate(view)
        finally:
            with self._changed:
                member.busy, member.answer = False, answer
                self._changed.notify_all()
        return False

    def step_down(self) -> None:
        """Leave the lead to another."""
        with self._changed:
            self._leader = None
            self._changed.notify_all()

    def ask(self, member: Member, view: Repository) -> Answer | None:
        """What another thread's change comes to; None if that thread waits no more."""
        with self._changed:
            # A leader that was interrupted may have left it at work.
            self._changed.wait_for(lambda: member.over or not member.busy)
            member.view = view
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: member.over or (member.answer is not None and member.answer[0] is view)
            )
            return None if member.over or member.answer is None else member.answer[1]

    def end(
        self,
        members: Iterable[Member],
        *,
        version: str | None = None,
        error: Exception | None = None,
    ) -> None:
        """Let members go, with a version or an error; those who went already are passed over."""
        with self._changed:
            for member in members:
                if not member.over:
                    member.version, member.error = version, error
                    self._waiting.remove(member)
            self._changed.notify_all()

    def leave(self, member: Member) -> None:
        """Wait no more, nor lead, whatever comes of it: its thread was interrupted."""
        with self._changed:
            member.gone = True
            if member in self._waiting:
                self._waiting.remove(member)
            if self._leader is member:
                self._leader = None
            self._changed.notify_all()


FILES = 100  # As many files as the Hub wants in a commit at most
N_BYTES = 64 << 20


class Gathered:
    """What transactions write, one after the other, as one set of changes."""

    def __init__(self, files: int = FILES, n_bytes: int = N_BYTES) -> None:
        self._files = files
        self._n_bytes = n_bytes
        self.changes: dict[str, bytes | Path | None] = {}

    def takes(self, changes: Changes) -> bool:
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
            len(merged) <= self._files
            and sum(_size(content) for content in merged.values()) <= self._n_bytes
            and not undone
            and not entangled(self.changes, changes)
        )

    def add(self, changes: Changes) -> None:
        """Put in further changes, which replace earlier ones of the same files."""
        self.changes |= changes


@dataclass
class Group:
    """Who was asked for one commit."""

    parent: str
    gathered: Gathered
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)
    asked: list[Member] = field(default_factory=list)
    writers: list[Member] = field(default_factory=list)
    others: list[tuple[Member, Exception | None]] = field(default_factory=list)
    """Who wants nothing written, or was refused, on the ground of what is not committed yet."""

    @property
    def head(self) -> str:
        """Of no version, and another after every step."""
        return f"{self.parent}+{self.nonce}.{len(self.asked)}"

    @property
    def message(self) -> str:
        """Names all that is written; the first line is short."""
        first, *more = [member.message for member in self.writers]
        return "\n".join((f"{first}, and {len(more)} more", "", first, *more)) if more else first


class View(Overlay):
    """What a member of a group sees: the repository with what those before it want written."""

    def __init__(self, under: Repository, group: Group) -> None:
        super().__init__(under, dict(group.gathered.changes), group.head)
        self.parent = group.parent


def _size(content: bytes | Path | None) -> float:
    if content is None:
        return 0.0
    if isinstance(content, bytes):
        return len(content)
    try:
        return content.stat().st_size
    except OSError:
        return math.inf  # The commit says what is wrong with it, and to nobody else.


_here = threading.local()
"""Whether this thread evaluates a change of a group: then it waits for no other."""


class Budget(Protocol):
    """How many commits may be made. Whoever sends a commit counts it; here it is only awaited."""

    def delay(self, commits: int) -> float:
        """Seconds until so many commits could be made; 0 if at once."""

    def ready(self, commits: int) -> None:
        """Wait until so many commits could be made."""


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
        commits: int = 1,
        files: int = FILES,  # the most files of several transactions in one commit
        n_bytes: int = N_BYTES,  # the most bytes of them
    ) -> None:
        self._under = repository
        self._budget = budget
        self._commits = commits
        self._limits = files, n_bytes
        self._turns = Turns()
        self._seen = threading.local()

    def head(self) -> str:
        """See `Repository`; while a change is evaluated, of what it sees."""
        return self._shown.head()

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        return self._shown.read(path)

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        self._shown.fetch(path, target)

    def has(self, path: str) -> bool:
        """See `Repository`."""
        return self._shown.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        return self._shown.list(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`; at once, and by itself."""
        if isinstance(self._shown, View) and parent == self._shown.head():
            parent = self._shown.parent  # From within a change, which then loses the race.
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
        self._turns.join(member)
        try:
            while not member.over:
                if self._turns.take(member, lambda view: self._evaluated(member, view)):
                    self._lead(member)
        except BaseException:
            self._turns.leave(member)
            raise
        return member.outcome()

    # What each thread does for itself

    @property
    def _shown(self) -> Repository:
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

    def _evaluated(self, member: Member, view: Repository) -> Answer:
        with self._showing(view):
            try:
                changes = dict(member.change())
                for path in changes:
                    check_path(path)
            except Exception as error:  # noqa: BLE001 (its thread raises it, if it counts)
                return error
            return changes

    # What the leader does

    def _lead(self, own: Member) -> None:
        try:
            while not own.over:
                if self._budget is not None:
                    self._budget.ready(self._commits)
                self._commit_once(own)
        finally:
            self._turns.step_down()

    def _commit_once(self, own: Member) -> None:
        """Make one commit for as many as go together, or learn that it cannot be made."""
        try:
            group = Group(self._under.head(), Gathered(*self._limits))
        except Exception as error:  # noqa: BLE001 (raised by each of them, who had met it alone)
            self._turns.end(self._turns.waiting(), error=error)
            return
        try:
            while (member := self._next(group)) and self._joined(group, member, own):
                pass
            if group.writers:
                self._commit(group)
        except ConflictError as error:
            self._lose(group, error)
            own.sleep(rest_after(max(member.lost for member in group.asked)))
        except Exception as error:  # noqa: BLE001 (likewise)
            self._turns.end(group.asked, error=error)

    def _next(self, group: Group) -> Member | None:
        """Who is to be asked next for this commit."""
        fresh = next((m for m in self._turns.waiting() if m not in group.asked), None)
        if fresh is None or len(group.asked) >= self._limits[0]:
            return None
        kept_apart = group.asked and (fresh.alone or group.asked[0].alone)
        return None if kept_apart else fresh

    def _joined(self, group: Group, member: Member, own: Member) -> bool:
        """Ask a member; False if what it wants does not go with the rest."""
        view = View(self._under, group)
        if member is own:
            answer: Answer | None = self._evaluated(member, view)
        else:
            answer = self._turns.ask(member, view)
        if answer is None:
            return True
        refusal = answer if isinstance(answer, Exception) else None
        changes = {} if isinstance(answer, Exception) else answer
        if not group.gathered.takes(changes):
            return False  # It is asked again for the next commit.
        group.asked.append(member)
        if refusal is not None:
            self._check_that_it_counts(group, member)
        if changes:
            group.gathered.add(changes)
            group.writers.append(member)
        elif group.writers:
            group.others.append((member, refusal))
        else:
            self._turns.end(
                [member], version=group.parent if refusal is None else None, error=refusal
            )
        return True

    def _check_that_it_counts(self, group: Group, member: Member) -> None:
        """A refusal over files of two versions is a lost race, but for the last attempt's."""
        if not group.writers and member.lost >= member.attempts - 1:
            return
        found = self._under.head()
        if found != group.parent:
            raise ConflictError(group.parent, found)

    def _commit(self, group: Group) -> None:
        changes, writers = group.gathered.changes, group.writers
        try:
            version = self._under.commit(changes, parent=group.parent, message=group.message)
        except ConflictError:
            raise
        except PlatformError as error:
            # Nothing was changed, and only those who made it impossible are to be told so.
            if len(writers) == 1:
                self._turns.end(writers, error=error)
            for member in writers:
                member.alone = True
        except Exception as error:  # noqa: BLE001 (raised by each of them)
            # Those who only waited on what others wrote ask anew.
            self._turns.end(writers, error=error)
        except BaseException:
            self._turns.end(writers, error=_stopped(group))
            raise
        else:
            self._turns.end(writers, version=version)
            for member, refusal in group.others:
                self._turns.end([member], version=None if refusal else version, error=refusal)

    def _lose(self, group: Group, error: ConflictError) -> None:
        for member in group.asked:
            member.lost += 1
        self._turns.end([m for m in group.asked if m.lost >= m.attempts], error=error)


def _stopped(group: Group) -> TransientError:
    return TransientError(
        "commit_stopped",
        f"{group.message.splitlines()[0]!r} was stopped: whether it was committed is not known.",
        "Look before trying again.",
    )
