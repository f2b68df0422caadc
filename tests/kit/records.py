"""Records of submissions, where a test needs one and does not care what is in it."""

from __future__ import annotations

from datetime import UTC, datetime

from leaderboard.records import Event, Submission
from leaderboard.states import State

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def a_submission(name: str = "grey", **more: object) -> Submission:
    known = {
        "submission_id": f"{name}-0000000000", "kind": "metric", "name": name, "metrics": (name,),
        "benchmarks": ("toy",), "submitter": "ada", "content_sha256": "0" * 64,
        "archive": "uploads/0.zip", "received_at": T0,
    }  # fmt: skip
    return Submission.model_validate({**known, **more})


def an_event(state: State | str, by: str = "w1", at: datetime = T0, **more: object) -> Event:
    return Event.model_validate({"at": at, "state": state, "by": by, **more})
