"""Submissions in the store: receiving them, and moving them from state to state.

Each call is one atomic commit. `queue.json` is a projection of all events, written in the same
commit as the event, so a page reads one file and nothing can be in no list; the chronicle has its
lines in that commit too. Of private submissions the public repository has the bare states, and the
private one the rest: it is written first, and read only where a public event calls for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.folding import fold
from leaderboard.governance.versions import Further
from leaderboard.ledger.batch import Batch, event_deed, event_line, no_files, nothing_further
from leaderboard.ledger.chronicle_writing import appended
from leaderboard.ledger.held import HeldRecords
from leaderboard.ledger.redaction import PRIVATE_ID, public_events, public_record, whole_events
from leaderboard.ledger.submission_files import events_path, submission_file
from leaderboard.records import Event, Status, Submission
from leaderboard.store.interface import Changes, NotFoundError, Store, transact

QUEUE = "queue.json"
_QUEUE = TypeAdapter(tuple[Status, ...])


class Ledger:
    """All submissions of a store.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at: tuple[str, dict[str, Status]] | None = None
        self._held = HeldRecords(store.private)
        self._told: dict[str, tuple[Status, Status]] = {}

    # Reading what is public

    def statuses(self) -> tuple[Status, ...]:
        """Every submission with its state, oldest first, as anyone may see it."""
        return tuple(self._by_id().values())

    def status(self, submission_id: str) -> Status:
        """One submission with its state, as anyone may see it.

        Raises:
            SubmitterError: `unknown_submission`.
        """
        found = self._by_id().get(submission_id)
        if found is None:
            raise SubmitterError(
                "unknown_submission",
                f"There is no submission {submission_id!r} in this store.",
                "List them with: python -m evaluator status",
            )
        return found

    def events(self, submission_id: str) -> tuple[Event, ...]:
        """The events of a submission, oldest first, as anyone may see them; none: it is unknown."""
        lines = self._event_bytes(submission_id).splitlines()
        return tuple(Event.model_validate_json(line) for line in lines)

    # Reading what only the author, operators and workers may see

    def whole(self, submission_id: str) -> Submission:
        """The record of a submission with everything its author sent.

        Raises:
            SubmitterError: `unknown_submission`.
        """
        return self._held.record(self.status(submission_id).submission)

    def whole_status(self, submission_id: str) -> Status:
        """One submission with its whole record and reason.

        Raises:
            SubmitterError: `unknown_submission`.
        """
        return self._with_all(self.status(submission_id))

    def whole_statuses(
        self, wanted: Callable[[Status], object] = lambda _: True
    ) -> tuple[Status, ...]:
        """Submissions with their whole record and reason, oldest first.

        Args:
            wanted: says which, from the whole record; the default is all.
        """
        public, every = self.statuses(), self.statuses_with_records()
        return tuple(self._with_all(s) for s, w in zip(public, every, strict=True) if wanted(w))

    def statuses_with_records(self) -> tuple[Status, ...]:
        """Every submission with its whole record, oldest first; private ones without reasons.

        A record never changes and is read once; reasons cost two more files for each.
        """
        return tuple(
            status.model_copy(update={"submission": self._held.record(status.submission)})
            for status in self.statuses()
        )

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
        self._store.private.fetch(submission.archive, target)

    # Writing

    def receive(
        self,
        submission: Submission,
        upload: bytes | Path,
        events: Sequence[Event],
        *,
        check: Callable[[], None] = lambda: None,
    ) -> Status:
        """Keep an upload privately, then record the submission with its first events.

        Args:
            submission: its whole record.
            upload: its content.
            events: its first.
            check: raises what forbids it, in the state the commit is based on; asked once before
                anything is kept.

        Returns:
            Its status with the whole record.

        Raises:
            SubmitterError: `duplicate_submission` if that id exists already.
            PlatformError: `telling_id` where the id of a private submission is not of the form
                that `leaderboard.ledger.redaction.private_id` makes.
        """
        submission_id = submission.submission_id
        if submission.private and not PRIVATE_ID.fullmatch(submission_id):
            raise PlatformError("telling_id", f"{submission_id!r} is no id for a private one.")

        def batch() -> Batch:
            check()
            if submission_id in self._by_id():
                raise SubmitterError(
                    "duplicate_submission", f"The submission {submission_id} exists already."
                )
            record = submission_file(public_record(submission))
            return Batch(
                events={submission_id: events},
                records={submission_id: submission},
                files=lambda _: record,
            )

        batch()  # Refused before anything is kept.
        self._held.keep(submission, upload)
        self.write(batch, f"receive {submission_id}")
        return self.whole_status(submission_id)

    def append(
        self,
        submission_id: str,
        events: Sequence[Event],
        *,
        still: Callable[[Status], bool] = lambda _: True,
        also: Callable[[Sequence[Status]], Changes] = no_files,
        others: Further = nothing_further,
    ) -> Status:
        """Append events in one commit, with other changes that must not be apart from them.

        Args:
            submission_id: whose events.
            events: the transitions, in order, with all that is to be kept of them; of a private
                submission the public repository gets the bare states.
            still: checked against the state the commit is based on, with the whole record; False
                means that somebody else moved the submission, and nothing is written.
            also: from all submissions as they are afterwards (in public form), computes further
                public files for the same commit: results, the snapshot.
            others: from the same, computes events of further submissions for the same commit
                (`leaderboard.governance.versions.superseding`).

        Returns:
            Its status with the whole record.

        Raises:
            TransientError: `lost_race` where `still` says no.
            PlatformError: `illegal_transition`.
        """

        def batch() -> Batch:
            status = self.whole_status(submission_id)
            if not still(status):
                raise TransientError(
                    "lost_race", f"{submission_id} was moved to {status.state} by {status.by}."
                )
            return Batch(events={submission_id: events}, further=others, files=also)

        states = "+".join(event.state for event in events)
        self.write(batch, f"{states} {submission_id}")
        return self.whole_status(submission_id)

    def write(self, batch: Callable[[], Batch], message: str) -> None:
        """Commit a batch, computed anew from the current state after every lost race.

        Args:
            batch: what to write; what it raises ends the attempt.
            message: for the public history: names states and ids, and nothing else.

        Raises:
            PlatformError: `illegal_transition`.
        """
        transact(self._store.public, lambda: self._changes(batch()), message)

    def _changes(self, batch: Batch) -> Changes:
        added = {name: list(events) for name, events in batch.events.items()}
        for name, events in batch.further(self._after(batch, added)).items():
            added.setdefault(name, []).extend(events)
        afterwards = self._after(batch, added)
        changes: dict[str, bytes | Path | None] = {**batch.files(afterwards)}
        deeds = list(batch.deeds)
        for name, new in added.items():
            shown = self._shown(batch, name, new)[len(self.events(name)) :]
            lines = b"".join(event_line(event) + b"\n" for event in shown)
            # What is there is kept byte by byte: the chronicle has its hashes.
            changes[events_path(name)] = self._event_bytes(name) + lines
            deeds += [event_deed(name, event) for event in shown]
            self._held.keep_details(self._record_in(batch, name), self.events(name), new)
        changes |= appended(self._store.public, deeds)
        if added:
            changes[QUEUE] = _QUEUE.dump_json(tuple(afterwards), indent=1)
        return changes

    def _after(self, batch: Batch, added: Mapping[str, Sequence[Event]]) -> tuple[Status, ...]:
        """All submissions in public form, with events that are not written yet."""
        found = dict(self._by_id())
        for name, new in added.items():
            record = public_record(self._record_in(batch, name))
            found[name] = fold(record, self._shown(batch, name, new))
        return tuple(sorted(found.values(), key=lambda s: s.submission.received_at))

    def _shown(self, batch: Batch, name: str, new: Sequence[Event]) -> tuple[Event, ...]:
        """All public events of a submission, with those that are not written yet."""
        return public_events(self._record_in(batch, name), (*self.events(name), *new))

    def _record_in(self, batch: Batch, name: str) -> Submission:
        return batch.records.get(name) or self.whole(name)

    def _by_id(self) -> dict[str, Status]:
        """All submissions in public form; read once for each version of the store."""
        # The head is read first: what is read after it can only be newer, and is read again then.
        head = self._store.public.head()
        if self._read_at is None or self._read_at[0] != head:
            try:
                found = _QUEUE.validate_json(self._store.public.read(QUEUE))
            except NotFoundError:
                found = ()
            self._read_at = head, {s.submission.submission_id: s for s in found}
        return self._read_at[1]

    def _with_all(self, public: Status) -> Status:
        if not public.submission.private:
            return public
        name = public.submission.submission_id
        seen, whole = self._told.get(name, (None, public))
        if seen != public:
            whole = fold(self._held.record(public.submission), self.whole_events(name))
            self._told[name] = public, whole
        return whole

    def _event_bytes(self, submission_id: str) -> bytes:
        try:
            return self._store.public.read(events_path(submission_id))
        except NotFoundError:
            return b""
