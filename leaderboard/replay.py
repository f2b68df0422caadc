"""Replay of a submission's events into its status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from benchmarks.errors import PlatformError
from leaderboard.records import Event, Status, Submission
from leaderboard.states import (
    CLEARED,
    FINISHED,
    IN_WORK,
    NOT_BEGUN,
    RENEWED,
    SHOWN_OR_NOT,
    State,
    allowed,
)


@dataclass(frozen=True)
class Attempt:
    """One try of a worker at a run."""

    number: int  # from 1
    by: str  # the worker
    at: datetime  # when it claimed the submission
    ended_at: datetime | None  # when it ended; None while it is under way
    why: str  # it ended, as far as that is told; empty for a good end


def fold(submission: Submission, events: Sequence[Event]) -> Status:
    """The status a submission's events add up to."""
    if not events:
        raise PlatformError("no_events", f"{submission.submission_id} has no events.")
    leases = [e.lease_until for e in events if e.lease_until is not None]
    events = without_renewals(events)
    state: State | None = None
    for event in events:
        if not allowed(state, event.state):
            raise PlatformError(
                "illegal_transition",
                f"{submission.submission_id} cannot go from {state} to {event.state}.",
            )
        state = event.state
    last = events[-1]
    return Status(
        submission=submission,
        state=last.state,
        since=last.at,
        by=last.by,
        reason=last.reason,
        hint=last.hint,
        code=last.code,
        fault=last.fault,
        attempts=len(attempts_of(events)),
        lease_until=leases[-1] if leases and _leased(last) else None,
        on_boards=_on_boards(events),
        scored_at=next((e.at for e in events if e.state in (State.PUBLISHED, State.HELD)), None),
        again_on=_again_on(events),
        cleared=next((e.reason for e in reversed(events) if e.code == CLEARED), ""),
    )


def without_renewals(events: Sequence[Event]) -> tuple[Event, ...]:
    """Events that moved a submission; those that only renewed a lease left out."""
    return tuple(event for event in events if event.code != RENEWED)


def _again_on(events: Sequence[Event]) -> tuple[str, ...]:
    """What a submission that waits or is in work was queued again for; a repeated try keeps it."""
    found: tuple[str, ...] = ()
    before: State | None = None
    for event in events:
        if event.state in FINISHED:
            found = ()
        elif _waits(event) and before in FINISHED:
            found = event.benchmarks
        before = event.state
    return found


def attempts_of(events: Sequence[Event]) -> tuple[Attempt, ...]:
    """The attempts at the run that was asked for last, the one under way included, oldest first.

    What a worker handed back, or never began before it died, was none.
    """
    ended: list[Attempt] = []
    claim: Event | None = None
    for before, event in pairwise(without_renewals(events)):
        if claim is not None and event.code == NOT_BEGUN and _claims(event):
            claim = event
            continue
        over = claim is not None and (_claims(event) or event.state in FINISHED or _waits(event))
        if claim is not None and over and not _handed_back(before, event):
            ended.append(Attempt(len(ended) + 1, claim.by, claim.at, event.at, event.reason))
        claim = None if over else claim
        if _claims(event):
            claim = event
        elif _asks_anew(before, event):
            ended.clear()
    if claim is not None:
        ended.append(Attempt(len(ended) + 1, claim.by, claim.at, None, ""))
    return tuple(ended)


def asked_at(events: Sequence[Event]) -> datetime:
    """When the run was asked for that the last of these events belongs to."""
    return asked_by(events).at


def asked_by(events: Sequence[Event]) -> Event:
    """The event that asked for the run that the last of these belongs to."""
    if not events:
        raise PlatformError("no_events", "Nothing was ever asked for.")
    asked = [after for before, after in pairwise(events) if _asks_for_run(before, after)]
    return asked[-1] if asked else events[0]


def _asks_for_run(before: Event, event: Event) -> bool:
    """Whether somebody wants a run, rather than a worker giving one back or passing it on."""
    return _waits(event) and not (before.state in IN_WORK and event.by == before.by)


def _asks_anew(before: Event, event: Event) -> bool:
    """Whether attempts are counted from here: a run is asked for, or its scores are passed on."""
    return _asks_for_run(before, event) or (
        event.to_judge and before.state is not State.JUDGING and event.fault != "world"
    )


def _handed_back(before: Event, event: Event) -> bool:
    """Whether a worker lets it wait again though nothing failed."""
    return _waits(event) and event.fault != "world" and not _asks_anew(before, event)


def _claims(event: Event) -> bool:
    # A worker that plays both roles judges what it has claimed, under the same lease.
    return event.state is State.CLAIMED or (
        event.state is State.JUDGING and event.lease_until is not None
    )


def _waits(event: Event) -> bool:
    return event.state is State.QUEUED or event.to_judge


def _leased(last: Event) -> bool:
    return last.state in IN_WORK and not last.to_judge


def _on_boards(events: Sequence[Event]) -> bool:
    decisive = [e.state for e in events if e.state in SHOWN_OR_NOT]
    return bool(decisive) and decisive[-1] is State.PUBLISHED
