"""Submissions in the store: receiving them, and moving them from state to state.

Each call is one atomic commit. What is received goes to the private repository, where its upload is;
all that happens to it then, to the public one, with what was received before. The queue is a
projection of all events, written in the same commit as the event, so a page reads one file and
nothing can be in no list; the chronicle has its lines in that commit too. Of private submissions the
public repository has the bare states, and the private one the rest: it is written first, and read
only where a public event calls for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.ledger.batch import Batch, Drafting, no_files, nothing_further
from leaderboard.ledger.inbox import INBOX, InboxReader, Received
from leaderboard.ledger.private_records import (
    PRIVATE_ID,
    PrivateRecords,
    events_path,
    public_events,
    readable,
    whole_events,
)
from leaderboard.ledger.queue_file import Queue, read_queue
from leaderboard.ledger.versions import Further
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import fold
from leaderboard.states import State
from leaderboard.store.interface import Changes, NotFoundError, Store, transact


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
