"""Records of submissions, where a test needs one and does not care what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from leaderboard.records import Event, Status, Submission
from leaderboard.replay import fold
from leaderboard.states import State
from leaderboard.store.live.interface import Heartbeat

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SCORED = (
    State.RECEIVED,
    State.QUEUED,
    State.CLAIMED,
    State.SCORING,
    State.SCORED,
    State.JUDGING,
)
"""States of a submission until it is published, held or failed."""
PUBLISHED = (*SCORED, State.PUBLISHED)


def a_submission(name: str = "grey", **more: object) -> Submission:
    known = {
        "submission_id": f"{name}-0000000000",
        "kind": "metric",
        "name": name,
        "metrics": (name,),
        "benchmarks": ("toy",),
        "submitter": "ada",
        "content_sha256": "0" * 64,
        "archive": "uploads/0.zip",
        "received_at": T0,
    }
    return Submission.model_validate({**known, **more})


def an_event(state: State | str, by: str = "w1", at: datetime = T0, **more: object) -> Event:
    return Event.model_validate({"at": at, "state": state, "by": by, **more})


def a_pulse(worker: str = "w1", at: datetime = T0, **more: object) -> Heartbeat:
    """A heartbeat of a worker that is well."""
    return Heartbeat.model_validate(
        {"worker": worker, "at": at, "isolation_ok": True, "isolation": "x", **more}
    )


def a_status(states: Sequence[State], step: timedelta = timedelta(0), **more: object) -> Status:
    """The status of a submission by `hub:ada` that went through these states."""
    events = [an_event(state, at=T0 + n * step) for n, state in enumerate(states)]
    return fold(a_submission("grey", **{"account": "hub:ada", **more}), events)
