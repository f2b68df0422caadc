"""What a submission's events add up to."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.errors import PlatformError
from leaderboard.records import Event, Status, Submission
from leaderboard.states import IN_WORK, SHOWN_OR_NOT, State, allowed


def fold(submission: Submission, events: Sequence[Event]) -> Status:
    """The status a submission's events add up to.

    Raises:
        PlatformError: `illegal_transition` where the events contradict the transition table, or
            `no_events` where there are none.
    """
    if not events:
        raise PlatformError("no_events", f"{submission.submission_id} has no events.")
    state: State | None = None
    for event in events:
        if not allowed(state, event.state):
            raise PlatformError(
                "illegal_transition",
                f"{submission.submission_id} cannot go from {state} to {event.state}.",
            )
        state = event.state
    last = events[-1]
    leases = [e.lease_until for e in events if e.lease_until is not None]
    return Status(
        submission=submission,
        state=last.state,
        since=last.at,
        by=last.by,
        reason=last.reason,
        hint=last.hint,
        code=last.code,
        fault=last.fault,
        attempts=_attempts(events),
        lease_until=leases[-1] if leases and _leased(last) else None,
        on_boards=_on_boards(events),
        scored_at=next((e.at for e in events if e.state in (State.PUBLISHED, State.HELD)), None),
    )


def _attempts(events: Sequence[Event]) -> int:
    count = 0
    for event in events:
        # A worker that plays both roles judges what it has claimed, under the same lease.
        if event.state is State.CLAIMED or _claimed_by_a_judge(event):
            count += 1
        elif _waits(event) and event.fault != "world":
            count = 0
    return count


def _claimed_by_a_judge(event: Event) -> bool:
    return event.state is State.JUDGING and event.lease_until is not None


def _waits(event: Event) -> bool:
    return event.state is State.QUEUED or event.to_judge


def _leased(last: Event) -> bool:
    return last.state in IN_WORK and not last.to_judge


def _on_boards(events: Sequence[Event]) -> bool:
    decisive = [e.state for e in events if e.state in SHOWN_OR_NOT]
    return bool(decisive) and decisive[-1] is State.PUBLISHED
