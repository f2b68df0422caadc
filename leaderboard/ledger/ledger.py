"""Submissions in the store: receiving them, and moving them from state to state.

Each call is one atomic commit. What is received goes to the private repository, where its upload is;
all that happens to it then, to the public one, with what was received before. The queue is a
projection of all events, written in the same commit as the event, so a page reads one file and
nothing can be in no list; the chronicle has its lines in that commit too. Of private submissions the
public repository has the bare states, and the private one the rest: it is written first, and read
only where a public event calls for it.

What a commit reads does not grow with the store: the queue, the last segment of the audit log, and
the events of the submissions that are touched, each once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.ledger.audit_log import LogDraft, appended, segment_number
from leaderboard.ledger.private_records import (
    PRIVATE_ID,
    PrivateRecords,
    events_path,
    public_events,
    public_record,
    readable,
    submission_file,
    whole_events,
)
from leaderboard.ledger.queue_file import (
    INBOX,
    OLD_QUEUE,
    QUEUE,
    InboxReader,
    Queue,
    Received,
    in_order,
    queue_bytes,
    read_queue,
)
from leaderboard.ledger.versions import Further
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import fold
from leaderboard.states import State
from leaderboard.store.interface import Changes, NotFoundError, Repository, Store, transact

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


class Ledger:
    """All submissions of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at: tuple[str, Queue] | None = None
        self._inbox = InboxReader(store)
        self._held = PrivateRecords(store.private)
        self._told: dict[str, tuple[Status, Status]] = {}

    # Reading what is public

    def statuses(self) -> tuple[Status, ...]:
        """Every submission with its state, oldest first, as anyone may see it."""
        return self._queue().every

    def version(self) -> tuple[str, str]:
        """Of what is read here: the public head, and what tells one inbox from another."""
        inbox = hashlib.sha256(self._inbox.read().content).hexdigest()
        return self._store.public.head(), inbox

    def status(self, submission_id: str) -> Status:
        """One submission with its state, as anyone may see it."""
        found = self._queue().by_id.get(submission_id)
        if found is None:
            raise SubmitterError(
                "unknown_submission",
                f"There is no submission {submission_id!r} in this store.",
                "List them with: python -m evaluator status",
            )
        return found

    def events(self, submission_id: str) -> tuple[Event, ...]:
        """The events of a submission, oldest first, as anyone may see them; none: it is unknown."""
        line = self._queue().received.get(submission_id)
        if line is not None:
            return public_events(line.submission, line.events)
        try:
            lines = self._store.public.read(events_path(submission_id)).splitlines()
        except NotFoundError:
            return ()
        with readable(events_path(submission_id)):
            return tuple(Event.model_validate_json(line) for line in lines)

    # Reading what only the author, operators and workers may see

    def whole(self, submission_id: str) -> Submission:
        """The record of a submission with everything its author sent."""
        return self._held.record(self.status(submission_id).submission)

    def whole_status(self, submission_id: str) -> Status:
        """One submission with its whole record and reason."""
        return self._with_all(self.status(submission_id))

    def whole_statuses(
        self, wanted: Callable[[Status], object] = lambda _: True
    ) -> tuple[Status, ...]:
        """Submissions with their whole record and reason, oldest first."""
        public, every = self.statuses(), self.statuses_with_records()
        return tuple(self._with_all(s) for s, w in zip(public, every, strict=True) if wanted(w))

    def statuses_with_records(self) -> tuple[Status, ...]:
        """Every submission with its whole record, oldest first; private ones without reasons.

        A record never changes and is read once; reasons cost two more files for each.
        """
        return tuple(map(self.with_record, self.statuses()))

    def with_record(self, status: Status) -> Status:
        """A public status with the whole record, without its reason where it is private."""
        return status.model_copy(update={"submission": self._held.record(status.submission)})

    def whole_events(self, submission_id: str) -> tuple[Event, ...]:
        """The events of a submission with everything they say, oldest first."""
        public = self.events(submission_id)
        if not public or not PRIVATE_ID.fullmatch(submission_id):
            return public
        return whole_events(self.whole(submission_id), public, self._held.details(submission_id))

    def upload(self, submission: Submission) -> bytes:
        """What the submitter uploaded; takes the whole record."""
        return self._store.private.read(submission.archive)

    def fetch_upload(self, submission: Submission, target: Path) -> None:
        """Copy what the submitter uploaded to a new file, piece by piece."""
        try:
            self._store.private.fetch(submission.archive, target)
        except NotFoundError as error:
            message = f"What was uploaded is not there: {error.message}"
            raise TransientError("upload_missing", message) from error

    # Writing

    def receive(
        self,
        submission: Submission,
        upload: bytes | Path,
        events: Sequence[Event],
        *,
        check: Callable[[], None] = lambda: None,
        beside: Mapping[str, bytes] | None = None,
    ) -> Status:
        """Keep an upload and receive its submission with its first events, in one private commit."""
        submission_id = submission.submission_id
        if submission.private and not PRIVATE_ID.fullmatch(submission_id):
            raise PlatformError("telling_id", f"{submission_id!r} is no id for a private one.")

        def change() -> Changes:
            check()
            queue = self._queue()
            if submission_id in queue.by_id:
                raise SubmitterError(
                    "duplicate_submission", f"The submission {submission_id} exists already."
                )
            known = queue.by_id.keys() - queue.received.keys()
            line = Received(submission=submission, events=tuple(events))
            return {
                **self._held.files(submission, events, upload, beside or {}),
                INBOX: self._inbox.read().with_line(line, known),
            }

        transact(self._store.private, change, f"receive {submission_id}")
        if self._store.jobs_per_commit == 1:
            with suppress(TransientError):  # It is received: the next commit takes it over.
                self.take_over()
        return fold(submission, events)

    def take_over(self, before: datetime | None = None) -> None:
        """Write what the inbox has into the queue, where something was received before a time."""

        def batch() -> Batch:
            lines = self._queue().received
            due = [n for n, x in lines.items() if before is None or x.status.since < before]
            return Batch(events=dict.fromkeys(due[:1], ()))

        if batch().events:
            self.write(batch, "what was received")

    def append(
        self,
        submission_id: str,
        events: Sequence[Event],
        *,
        still: Callable[[Status], bool] = lambda _: True,
        also: Callable[[Sequence[Status]], Changes] = no_files,
        others: Further = nothing_further,
    ) -> Status:
        """Append events in one commit, with other changes that must not be apart from them."""

        def batch() -> Batch:
            status = self.whole_status(submission_id)
            if not still(status):
                raise TransientError(
                    "lost_race", f"{submission_id} was moved to {status.state} by {status.by}."
                )
            return Batch(events={submission_id: events}, further=others, files=also)

        states = "+".join(event.state for event in events)
        written = self.write(batch, f"{states} {submission_id}")
        return self._with_all(written[submission_id])

    def write(self, batch: Callable[[], Batch], message: str) -> Mapping[str, Status]:
        """Commit a batch, computed anew from the current state after every lost race."""
        touched: Mapping[str, Status] = {}

        def change() -> Changes:
            nonlocal touched
            wanted = batch()
            drafting = Drafting(self._store.public, self._held, self._queue(), wanted)
            changes, touched = drafting.draft()
            return changes

        transact(self._store.public, change, message)
        return touched

    def _queue(self) -> Queue:
        """All submissions in public form; read once for each version of the store."""
        # The inbox is read first: what is not in it any more, the queue has.
        inbox = self._inbox.read()
        # The head is read first: what is read after it can only be newer, and is read again then.
        head, kept = self._store.public.head(), self._read_at
        if kept is None or kept[0] != head:
            kept = self._read_at = head, read_queue(self._store.public, head).with_inbox(inbox)
        elif kept[1].inbox is not inbox:
            kept = self._read_at = head, kept[1].with_inbox(inbox)
        return kept[1]

    def _with_all(self, public: Status) -> Status:
        if not public.submission.private:
            return public
        name = public.submission.submission_id
        seen, whole = self._told.get(name, (None, public))
        if seen != public:
            whole = fold(self._held.record(public.submission), self.whole_events(name))
            self._told[name] = public, whole
        return whole


def fault_of(ledger: Ledger, status: Status, further: Sequence[Event] = ()) -> PlatformError | None:
    """Why a submission cannot be moved on by this program; None: it can, or was moved meanwhile.

    Its record and its events are read: what is written next is added to them.
    """
    name = status.submission.submission_id
    try:
        ledger.with_record(status)
        events = ledger.whole_events(name)
        _check_state(name, fold(status.submission, events).state, status.state)
        fold(status.submission, (*events, *further))
    except PlatformError as error:
        now = ledger.status(name)
        moved = (now.state, now.since, now.by) != (status.state, status.since, status.by)
        return None if moved else error
    return None


def faults(ledger: Ledger) -> Iterator[tuple[str, PlatformError]]:
    """The submissions that wait or are in work and cannot be moved on, with the reason."""
    for status in ledger.statuses():
        error = fault_of(ledger, status) if status.unfinished else None
        if error is not None:
            yield status.submission.submission_id, error


def _check_state(submission_id: str, by_events: State, in_queue: State) -> None:
    if by_events is not in_queue:
        raise PlatformError(
            "record_damaged",
            f"{submission_id} is {by_events} by its events and {in_queue} in the queue.",
            "Build the queue anew: python -m evaluator doctor --repair",
        )
