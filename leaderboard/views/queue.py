"""Queue of submissions: places, workers and estimated times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leaderboard.publication.entries import Entry
from leaderboard.queueing import expected_wait, fair_order, typical_s
from leaderboard.records import Status
from leaderboard.states import IN_WORK, WAITING
from leaderboard.store.live.interface import Heartbeat

ALIVE = timedelta(seconds=60)
"""A worker that has not beaten for longer is taken for gone: others take over what it held."""
MOST_ATTEMPTS = 3  # A run that ended so often without a result is given up


@dataclass(frozen=True)
class QueueEstimate:
    """Of one submission that waits."""

    place: int  # from 1
    of: int  # how many wait
    wait_s: float | None  # seconds until it is begun, as far as can be told; None: nobody can say


def alive(pulses: Sequence[Heartbeat], now: datetime) -> tuple[Heartbeat, ...]:
    """The pulses of workers that are there."""
    return tuple(pulse for pulse in pulses if now - pulse.at <= ALIVE)


def worker_of(status: Status, pulses: Sequence[Heartbeat], now: datetime) -> Heartbeat | None:
    """The pulse of the worker that holds a submission, if it is there."""
    if status.state not in IN_WORK or status.to_judge:
        return None
    return next((pulse for pulse in alive(pulses, now) if pulse.worker == status.by), None)


def outlooks(
    statuses: Sequence[Status], pulses: Sequence[Heartbeat], now: datetime, each_s: float | None
) -> dict[str, QueueEstimate]:
    """Submission id to its outlook, of all that wait for their first worker, next first."""
    order = fair_order(statuses, now, waiting=lambda status: status.state in WAITING)
    living = alive(pulses, now)
    free_in = {
        boxed: [_free_in(pulse, each_s) for pulse in living if pulse.isolation_ok or not boxed]
        for boxed in (True, False)
    }
    return {
        status.submission.submission_id: QueueEstimate(
            place, len(order), _finite(place, free_in[status.submission.boxed], each_s)
        )
        for place, status in enumerate(order, 1)
    }


def in_turn(
    statuses: Sequence[Status], found: Mapping[str, QueueEstimate]
) -> tuple[list[Status], list[Status], list[Status]]:
    """Submissions in work, those that wait, next first, and those done, newest first."""

    def place(status: Status) -> float:
        outlook = found.get(status.submission.submission_id)
        return math.inf if outlook is None else outlook.place

    return (
        [status for status in statuses if status.state in IN_WORK],
        sorted((status for status in statuses if status.state in WAITING), key=place),
        [status for status in reversed(statuses) if status.state not in IN_WORK | WAITING],
    )


def measured_s(entries: Iterable[Entry]) -> float | None:
    """What scoring took as a rule of what is published; None where nothing was measured."""
    seconds: Mapping[str, float] = {
        entry.submission_id: sum(cost.seconds for cost in entry.cost.values()) for entry in entries
    }
    return typical_s(seconds.values())


def _free_in(pulse: Heartbeat, each_s: float | None) -> float:
    """Seconds until a worker is done with all it holds, as far as can be told."""
    if not pulse.submission_id:
        return 0.0
    unknown = math.inf if each_s is None else each_s
    left = pulse.eta_s if pulse.eta_s is not None else unknown
    further = max(0, len(pulse.claimed) - 1)
    return max(0.0, left) + (further * unknown if further else 0.0)


def _finite(place: int, free_in_s: Sequence[float], each_s: float | None) -> float | None:
    found = expected_wait(place, free_in_s, each_s)
    return found if found is not None and math.isfinite(found) else None
