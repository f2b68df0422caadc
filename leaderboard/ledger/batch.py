"""Batch of changes for the store: events of submissions, files, lines of the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from leaderboard.ledger.chronicle_writing import Deed
from leaderboard.ledger.versions import Further
from leaderboard.records import Event, Status, Submission
from leaderboard.store.interface import Changes


def nothing_further(_: Sequence[Status]) -> Mapping[str, Sequence[Event]]:
    """No events beside the given ones."""
    return {}


def no_files(_: Sequence[Status]) -> Changes:
    """No files beside those of the events."""
    return {}


@dataclass(frozen=True)
class Batch:
    """One commit to the public repository.

    Attributes:
        events: what happens to which submissions, with all that is to be kept of it.
        records: whole records of the submissions that are received or published with it.
        further: events that follow from these, such as an older version giving way.
        files: from all submissions as they are afterwards, in public form, further public files;
            None deletes one.
        deeds: acts that are no events of submissions.
    """

    events: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    records: Mapping[str, Submission] = field(default_factory=dict)
    further: Further = nothing_further
    files: Callable[[Sequence[Status]], Changes] = no_files
    deeds: Sequence[Deed] = ()


def event_line(event: Event) -> bytes:
    """An event as it is stored."""
    return event.model_dump_json().encode()


def event_deed(submission_id: str, event: Event) -> Deed:
    """An event as the chronicle tells of it."""
    return Deed(
        at=event.at,
        by=event.by,
        action=str(event.state),
        subject=submission_id,
        record=event_line(event),
        reason=event.reason,
    )
