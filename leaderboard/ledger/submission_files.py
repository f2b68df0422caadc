"""What the public repository keeps of a submission, below `submissions/<id>/`."""

from __future__ import annotations

from leaderboard.records import Submission


def events_path(submission_id: str) -> str:
    """Its events, one a line."""
    return f"submissions/{submission_id}/events.jsonl"


def submission_file(submission: Submission) -> dict[str, bytes]:
    """The file of a record that anyone may see."""
    return {f"submissions/{submission.submission_id}/submission.json": record_bytes(submission)}


def record_bytes(submission: Submission) -> bytes:
    """A record as it is stored, in public or below `held/`."""
    return submission.model_dump_json(indent=1).encode()
