"""Public files of a submission, below `submissions/<id>/`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from benchmarks.errors import PlatformError
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


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Say of which file it is that what is parsed here cannot be read.

    Raises:
        PlatformError: `record_damaged`; the submission it is of cannot go on, and others can.
    """
    try:
        yield
    except (ValidationError, UnicodeDecodeError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.reason
        raise PlatformError(
            "record_damaged",
            f"{path} cannot be read: {why[:200]}",
            "Put back an earlier version of the file, or use the version of Assay that wrote it.",
        ) from error
