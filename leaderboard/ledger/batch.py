"""Computes the files of one commit from a batch: events, queue, lines of the chronicle.

What is read does not grow with the store: the queue, the last segment of the chronicle, and the
events of the submissions that are touched, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from leaderboard.ledger.audit_log import LogDraft, appended, segment_number
from leaderboard.ledger.private_records import (
    PrivateRecords,
    events_path,
    public_events,
    public_record,
    readable,
    submission_file,
)
from leaderboard.ledger.queue_file import OLD_QUEUE, QUEUE, Queue, in_order, queue_bytes
from leaderboard.ledger.versions import Further
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import fold
from leaderboard.store.interface import Changes, NotFoundError, Repository

_TAKEN_OVER = 20
"""As many that were just received are written along with a commit of events, at most."""


def nothing_further(_: Sequence[Status]) -> Mapping[str, Sequence[Event]]:
    """No events beside the given ones."""
    return {}


def no_files(_: Sequence[Status]) -> Changes:
    """No files beside those of the events."""
    return {}


@dataclass(frozen=True)
class Batch:
    """One commit to the public repository."""

    # what happens to which submissions, with all that is to be kept of it
    events: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    # whole records of the submissions that are published with it
    records: Mapping[str, Submission] = field(default_factory=dict)
    # events that follow from these, such as an older version giving way
    further: Further = nothing_further
    # from all submissions as they are afterwards, in public form, further public files; None
    # deletes one
    files: Callable[[Sequence[Status]], Changes] = no_files
    deeds: Sequence[LogDraft] = ()  # acts that are no events of submissions


def event_line(event: Event) -> bytes:
    """An event as it is stored."""
    return event.model_dump_json().encode()


def event_deed(submission_id: str, event: Event) -> LogDraft:
    """An event as the chronicle tells of it."""
    return LogDraft(
        at=event.at,
        by=event.by,
        action=str(event.state),
        subject=submission_id,
        record=event_line(event),
        reason=event.reason,
    )


class Drafting:
    """One batch over one version of the store."""

    def __init__(
        self, public: Repository, held: PrivateRecords, queue: Queue, batch: Batch
    ) -> None:
        self._public = public
        self._held = held
        self._queue = queue
        self._batch = batch
        self._raw: dict[str, bytes] = {}

    def draft(self) -> tuple[Changes, Mapping[str, Status]]:
        """All files, and the submissions with further events as they are then, in public form."""
        added = {name: self._new(name, events) for name, events in self._batch.events.items()}
        for name in islice(self._queue.received, _TAKEN_OVER if added else 0):
            added.setdefault(name, self._new(name, ()))
        touched = self._folded(added)
        afterwards = self._with(touched)
        further = self._batch.further(afterwards)
        if further:
            for name, events in further.items():
                added.setdefault(name, self._new(name, ())).extend(events)
            touched = self._folded(added)
            afterwards = self._with(touched)
        changes: dict[str, bytes | Path | None] = {**self._batch.files(afterwards)}
        deeds = [*self._batch.deeds]
        for name, new in added.items():
            if name in self._queue.received:
                changes |= submission_file(public_record(self._record(name)))
            file, told = self._event_file(name, new)
            changes |= file
            deeds += told
        lines = appended(self._public, deeds, known=self._queue.segments)
        changes |= lines
        if added:
            segments = max((*map(segment_number, lines), self._queue.segments))
            changes[QUEUE] = queue_bytes(Queue(afterwards, segments))
            if self._queue.old:
                changes[OLD_QUEUE] = None
        return changes, touched

    def _new(self, name: str, events: Sequence[Event]) -> list[Event]:
        """What is added to the events of a submission; of one just received, all it has."""
        line = self._queue.received.get(name)
        return [*(line.events if line else ()), *events]

    def _event_file(
        self, name: str, new: Sequence[Event]
    ) -> tuple[dict[str, bytes], list[LogDraft]]:
        before = self._before(name)
        shown = self._public_events(name, new)[len(before) :]
        lines = b"".join(event_line(event) + b"\n" for event in shown)
        self._held.keep_details(self._record(name), before, new)
        # What is there is kept byte by byte: the chronicle has its hashes.
        file = {events_path(name): self._raw_events(name) + lines}
        return file, [event_deed(name, event) for event in shown]

    def _folded(self, added: Mapping[str, Sequence[Event]]) -> dict[str, Status]:
        return {
            name: fold(public_record(self._record(name)), self._public_events(name, new))
            for name, new in added.items()
        }

    def _with(self, touched: Mapping[str, Status]) -> tuple[Status, ...]:
        before = {status.submission.submission_id: status for status in self._queue.statuses}
        return in_order({**before, **touched}.values())

    def _public_events(self, name: str, new: Sequence[Event]) -> tuple[Event, ...]:
        """All public events of a submission, with those that are not written yet."""
        return public_events(self._record(name), (*self._before(name), *new))

    def _record(self, name: str) -> Submission:
        line = self._queue.received.get(name)
        given = self._batch.records.get(name) or (line.submission if line else None)
        return given or self._held.record(self._queue.by_id[name].submission)

    def _before(self, name: str) -> tuple[Event, ...]:
        lines = self._raw_events(name).splitlines()
        with readable(events_path(name)):
            return tuple(Event.model_validate_json(line) for line in lines)

    def _raw_events(self, name: str) -> bytes:
        if name not in self._raw:
            try:
                known = name in self._queue.by_id and name not in self._queue.received
                self._raw[name] = self._public.read(events_path(name)) if known else b""
            except NotFoundError:
                self._raw[name] = b""
        return self._raw[name]
