"""Threads that wait for a common commit: who leads, whose turn it is, and how each ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from leaderboard.store.interface import Changes, Repository

Answer = Changes | Exception
"""What a change came to."""


@dataclass(eq=False)
class Member:
    """A transaction that waits, and how it ended.

    Attributes:
        change: see `transact`.
        message: likewise.
        attempts: likewise.
        sleep: likewise.
        lost: races it lost so far.
        alone: a commit with others was refused, so it goes by itself and gets its own answer.
        view: set while it is to evaluate its change over this.
        busy: it is evaluating it.
        answer: what it evaluated, and over which view.
        gone: its thread was interrupted and waits no more.
        version: the store's, once it is committed.
        error: what ended it instead.
    """

    change: Callable[[], Changes]
    message: str
    attempts: int
    sleep: Callable[[float], None]
    lost: int = 0
    alone: bool = False
    view: Repository | None = None
    busy: bool = False
    answer: tuple[Repository, Answer] | None = None
    gone: bool = False
    version: str | None = None
    error: Exception | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.gone or self.version is not None or self.error is not None

    def outcome(self) -> str:
        """The version after its commit.

        Raises:
            Exception: what ended it instead.
        """
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
        """Wait for what a member has to do, and evaluate its change if it is that.

        Returns:
            Whether it leads now; it must `step_down`.
        """
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
