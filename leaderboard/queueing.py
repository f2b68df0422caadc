"""Order of the queue, fair among accounts, and its expected waiting times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from heapq import heapify, heapreplace
from statistics import median

from leaderboard.records import Kind, Status, Submission
from leaderboard.states import IN_WORK, State

_ENDED = frozenset({State.PUBLISHED, State.HELD, State.FAILED, State.SUPERSEDED})
"""States in which a run has had its turn."""


def waits(status: Status) -> bool:
    """Whether it waits for a worker, one that rests after a fault of the world included."""
    return status.state is State.QUEUED or status.to_judge


def fair_order(
    statuses: Iterable[Status],
    now: datetime,
    *,
    waiting: Callable[[Status], bool] = waits,
    worth: Callable[[Status], float] = lambda _: 0.0,
) -> tuple[Status, ...]:
    """What waits, in the order in which it is to be taken.

    The second submission of an account comes after the first of every other, the third after all
    second ones, and so on; what an account has in work counts as taken. Among equals, whoever has
    waited longer comes first, counted from when the account was last served, so that sending many
    at once gains nothing; and else whoever stands first here. What is run again comes after an
    account's own new ones. Generations that further metrics are to score wait for everything that
    is new, since nobody asked for it; among them, what is worth most by the second comes first.
    What rests after a fault of the world comes after all the rest.
    """
    every = tuple(statuses)
    served = _served(every)

    def since(status: Status) -> tuple[datetime, datetime]:
        waited = _since(status)
        return max(waited, served.get(_account_key(status.submission), waited)), waited

    lined_up = sorted((status for status in every if waiting(status)), key=since)
    turns = Counter(
        _account_key(status.submission)
        for status in every
        if status.state in IN_WORK and not waiting(status)
    )
    turn_of: dict[str, int] = {}
    for status in sorted(lined_up, key=lambda status: (_rests(status, now), _again(status))):
        whose = _account_key(status.submission)
        turn_of[status.submission.submission_id] = turns[whose]
        turns[whose] += 1

    def place(status: Status) -> tuple[bool, bool, float, int]:
        fills = status.submission.kind is Kind.GENERATIONS and _again(status)
        turn = turn_of[status.submission.submission_id]
        return _rests(status, now), fills, -worth(status) if fills else 0.0, turn

    return tuple(sorted(lined_up, key=place))


def typical_s(measured: Iterable[float]) -> float | None:
    """What one run takes as a rule, from measured runs; None where none was measured.

    The median, since a few runs may take a hundred times as long as the others.
    """
    known = [seconds for seconds in measured if seconds > 0.0]
    return median(known) if known else None


def expected_wait(place: int, free_in_s: Sequence[float], each_s: float | None) -> float | None:
    """Seconds until the submission at a place of the queue is begun; None: nobody can say."""
    if place < 1:
        raise ValueError("places are counted from 1")
    if not free_in_s or (each_s is None and place > len(free_in_s)):
        return None
    free = [max(0.0, seconds) for seconds in free_in_s]
    heapify(free)
    for _ in range(place - 1):
        heapreplace(free, free[0] + (each_s if each_s is not None else float("inf")))
    return free[0]


def fair_share(waiting: int, workers: int, most: int) -> int:
    """How many of those that wait one worker may take at once, so that all have work."""
    return min(most, -(-waiting // max(1, workers)))


def _served(statuses: Iterable[Status]) -> dict[str, datetime]:
    """When a run of each account last ended."""
    found: dict[str, datetime] = {}
    for status in statuses:
        if status.state in _ENDED:
            whose = _account_key(status.submission)
            found[whose] = max(status.since, found.get(whose, status.since))
    return found


def _rests(status: Status, now: datetime) -> bool:
    return waits(status) and not status.due(now)


def _again(status: Status) -> bool:
    """Whether it had results before, so that its author waits for nothing new."""
    return status.scored_at is not None


def _since(status: Status) -> datetime:
    """Since when it waits for its turn: a repeated try keeps the time of the first."""
    return status.since if _again(status) else status.submission.received_at


def _account_key(submission: Submission) -> str:
    """The account; what is older than accounts, or private and seen from outside, is nobody's."""
    return submission.account or f"nobody:{submission.submission_id}"
