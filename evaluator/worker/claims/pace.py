"""Runtime estimates: for how long a claim is to hold, and how much is claimed at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from leaderboard.records import Kind, Submission

LONGEST_LEASE = timedelta(hours=8)
"""Longer than a run may take. Of one whose pace nobody knows yet."""
SHORTEST_LEASE = timedelta(hours=1)
LONGEST_LINE = timedelta(hours=24)
"""Of several that wait for one another, no lease is longer."""
MARGIN = 6.0
"""A run may take so many times as long as the slowest that was measured."""
AHEAD = timedelta(minutes=15)
"""What is claimed at once is to be done within this. A worker that joins meanwhile finds the rest
in the queue, and nobody waits for longer behind what is before it. Runs of which eight fit take less
than two minutes each: only with those are commits scarce."""
UNTIMED_AT_ONCE = 2
"""Of code that nobody timed, any may run for hours: no more than one is held behind another. It is
not one alone, since a worker whose first two runs are short then claims by what they took."""


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

    def timed(self, submission: Submission, *, runs_code: bool) -> float | None:
        """The same, of what may be claimed ahead: a file that is only read is quick.

        Args:
            submission: whose turn it is.
            runs_code: whether its code is to be run; else scores that are there are read.
        """
        if runs_code:
            return self.expects(submission)
        return 0.0 if submission.kind is Kind.METRIC else self.expects(submission) or 0.0

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


def done_soon(expected: Iterable[float | None]) -> int:
    """How many of those in line, from the first on, are claimed at once; one in any case.

    Args:
        expected: seconds each takes, in their order; None: nobody knows.
    """
    seconds, untimed, taken = 0.0, 0, 0
    for one in expected:
        untimed += one is None
        seconds += one or 0.0
        if taken and (seconds > AHEAD.total_seconds() or untimed > UNTIMED_AT_ONCE):
            break
        taken += 1
    return taken


def _kind(submission: Submission) -> tuple[str, ...]:
    return (submission.kind, *sorted(submission.benchmarks))
