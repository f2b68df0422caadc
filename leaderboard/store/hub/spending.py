"""Commits paid for before they are made, so that no commit waits halfway through.

A commit of the public side is up to three: were each to wait for its own place in the budget,
others would commit meanwhile and the first two would be for nothing.
"""

from __future__ import annotations

import threading
from typing import Protocol


class Budget(Protocol):
    """How many commits may still be made."""

    def wait(self) -> None:
        """Wait until one more may be made, and count it."""

    def ready(self, commits: int = 1) -> None:
        """Wait until so many could be made, without counting any."""

    def delay(self, commits: int = 1) -> float:
        """Seconds until so many could be made; 0 if at once."""

    def penalise(self, seconds: float) -> None:
        """The Hub refused one, and wants to be left alone for so long."""


class Spending:
    """A budget, and what was taken from it but not used yet; shared by threads.

    Args:
        budget: None for no bound of ours.
    """

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget
        self._lock, self._waiting = threading.Lock(), threading.Lock()
        self._paid = 0

    def ahead(self, commits: int) -> None:
        """Pay for so many commits; what an earlier one paid for and did not make counts."""
        while self._budget is not None and self._paid_for() < commits:
            self._budget.wait()
            with self._lock:
                self._paid += 1

    def one(self) -> None:
        """A commit is made now: it was paid for, or is."""
        with self._lock:
            if self._paid:
                self._paid -= 1
                return
        if self._budget is not None:
            self._budget.wait()

    def ready(self, commits: int = 1) -> None:
        """Wait until so many commits could be made, without counting any.

        One after the other: else whoever needs one would always come before who needs three.
        """
        if self._budget is None:
            return
        with self._waiting:
            missing = commits - self._paid_for()
            if missing > 0:
                self._budget.ready(missing)

    def delay(self, commits: int = 1) -> float:
        """Seconds until so many commits could be made; 0 if at once."""
        missing = commits - self._paid_for()
        return 0.0 if self._budget is None or missing <= 0 else self._budget.delay(missing)

    def penalise(self, seconds: float) -> None:
        """The Hub refused a commit: what was paid for is worth nothing before the pause is over."""
        if self._budget is not None:
            with self._lock:
                self._paid = 0
            self._budget.penalise(seconds)

    def _paid_for(self) -> int:
        with self._lock:
            return self._paid
