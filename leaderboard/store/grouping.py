"""Commits what several threads want at the same time in one commit: group commit.

One of the threads that wait leads: it asks each of them, in the order they came, to evaluate its
change over what those before it are going to write, and commits all of it. Each evaluates in its
own thread, so only that thread ever sees what is not committed yet, at a head that is no version
of the store and never comes again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from benchmarks.errors import PlatformError, TransientError
from leaderboard.store.gathered import FILES, N_BYTES, Gathered, Group, View
from leaderboard.store.interface import (
    Changes,
    ConflictError,
    Repository,
    rest_after,
    transact_alone,
)
from leaderboard.store.paths import check_path
from leaderboard.store.turns import Answer, Member, Turns

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

    Args:
        repository: what is written to; its commits count themselves in the budget.
        budget: of its commits; whatever arrives while it lets none through joins the next one.
        commits: how many of the budget one may take: one that waits half made is overtaken.
        files: the most files of several transactions in one commit.
        n_bytes: the most bytes of them.
    """

    def __init__(
        self,
        repository: Repository,
        budget: Budget | None = None,
        *,
        commits: int = 1,
        files: int = FILES,
        n_bytes: int = N_BYTES,
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
        """A refusal over files of two versions is a lost race, but for the last attempt's.

        Raises:
            ConflictError: it is.
        """
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
