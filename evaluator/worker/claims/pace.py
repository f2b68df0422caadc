"""How long runs take here, and for how long a claim is therefore to hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from leaderboard.records import Submission

LONGEST_LEASE = timedelta(hours=8)
"""Longer than a run may take. Of one whose pace nobody knows yet."""
SHORTEST_LEASE = timedelta(hours=1)
LONGEST_LINE = timedelta(hours=24)
"""Of several that wait for one another, no lease is longer."""
MARGIN = 6.0
"""A run may take so many times as long as the slowest that was measured."""


class Pace:
    """The slowest run of each kind of this worker so far."""

    def __init__(self) -> None:
        self._slowest: dict[tuple[str, ...], float] = {}

    def took(self, submission: Submission, seconds: float) -> None:
        """A run took so long, from its claim to its scores."""
        kind = _kind(submission)
        self._slowest[kind] = max(seconds, self._slowest.get(kind, 0.0))

    def expects(self, submission: Submission) -> float | None:
        """Seconds a run may take at worst by what is known; None: nothing is known."""
        return self._slowest.get(_kind(submission))

    def lease(self, line: Sequence[Submission]) -> timedelta:
        """How long a claim of the last of those in line is to hold, which come one after another.

        A pulse holds a claim for as long as its worker beats, without a commit. The lease counts
        only where no pulse is seen, and must then outlast the work: it is many times what was
        measured, and within bounds.
        """
        return min(sum(map(self._one, line), timedelta(0)), LONGEST_LINE)

    def _one(self, submission: Submission) -> timedelta:
        seconds = self.expects(submission)
        if seconds is None:
            return LONGEST_LEASE
        return min(max(MARGIN * timedelta(seconds=seconds), SHORTEST_LEASE), LONGEST_LEASE)


def _kind(submission: Submission) -> tuple[str, ...]:
    return (submission.kind, *sorted(submission.benchmarks))
