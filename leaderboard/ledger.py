"""Submissions in the store: receiving them, and moving them from state to state.

Each call is one atomic commit. `queue.json` is a projection of all events, written in the same
commit as the event, so a page reads one file and nothing can be in no list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.errors import SubmitterError, TransientError
from leaderboard.records import Event, Status, Submission, fold
from leaderboard.store.interface import Changes, NotFoundError, Store, exists, transact

QUEUE = "queue.json"


class Ledger:
    """All submissions of a store.

    Args:
        store: where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def statuses(self) -> tuple[Status, ...]:
        """Every submission with its state, oldest first."""
        try:
            lines = json.loads(self._store.public.read(QUEUE))
        except NotFoundError:
            return ()
        return tuple(Status.model_validate(line) for line in lines)

    def status(self, submission_id: str) -> Status:
        """One submission with its state.

        Raises:
            SubmitterError: `unknown_submission`.
        """
        for status in self.statuses():
            if status.submission.submission_id == submission_id:
                return status
        raise SubmitterError(
            "unknown_submission",
            f"There is no submission {submission_id!r} in this store.",
            "List them with: python -m evaluator status",
        )

    def events(self, submission_id: str) -> tuple[Event, ...]:
        """The events of a submission, oldest first (none: it does not exist)."""
        try:
            lines = self._store.public.read(_events_path(submission_id)).splitlines()
        except NotFoundError:
            return ()
        return tuple(Event.model_validate_json(line) for line in lines)

    def receive(
        self, submission: Submission, upload: bytes | Path, events: Sequence[Event]
    ) -> Status:
        """Keep an upload privately, then record the submission with its first events.

        Raises:
            SubmitterError: `duplicate_submission` if that id exists already.
        """
        _put_once(self._store, submission.archive, upload)

        def change() -> Changes:
            if self.events(submission.submission_id):
                raise SubmitterError(
                    "duplicate_submission",
                    f"The submission {submission.submission_id} exists already.",
                )
            return {
                _submission_path(submission.submission_id): _pretty(
                    submission.model_dump(mode="json")
                ),
                **self._appended(submission, events),
            }

        transact(self._store.public, change, f"receive {submission.submission_id}")
        return self.status(submission.submission_id)

    def append(
        self,
        submission_id: str,
        events: Sequence[Event],
        *,
        still: Callable[[Status], bool] = lambda _: True,
        also: Callable[[], Mapping[str, bytes]] = dict,
    ) -> Status:
        """Append events in one commit, with other changes that must not be apart from them.

        Args:
            submission_id: whose events.
            events: the transitions, in order.
            still: checked against the state the commit is based on; False means that somebody
                else moved the submission, and nothing is written.
            also: computes further public files for the same commit (results, the snapshot).

        Raises:
            TransientError: `lost_race` where `still` says no.
            PlatformError: `illegal_transition`.
        """

        def change() -> Changes:
            status = self.status(submission_id)
            if not still(status):
                raise TransientError(
                    "lost_race", f"{submission_id} was moved to {status.state} by {status.by}."
                )
            return {**also(), **self._appended(status.submission, events)}

        states = "+".join(event.state for event in events)
        transact(self._store.public, change, f"{states} {submission_id}")
        return self.status(submission_id)

    def upload(self, submission: Submission) -> bytes:
        """What the submitter uploaded."""
        return self._store.private.read(submission.archive)

    def fetch_upload(self, submission: Submission, target: Path) -> None:
        """Copy what the submitter uploaded to a new file, piece by piece."""
        self._store.private.fetch(submission.archive, target)

    def _appended(self, submission: Submission, events: Sequence[Event]) -> dict[str, bytes]:
        every = (*self.events(submission.submission_id), *events)
        status = fold(submission, every)
        others = [
            s for s in self.statuses() if s.submission.submission_id != submission.submission_id
        ]
        queue = sorted([*others, status], key=lambda s: s.submission.received_at)
        return {
            _events_path(submission.submission_id): b"".join(
                event.model_dump_json().encode() + b"\n" for event in every
            ),
            QUEUE: _pretty([s.model_dump(mode="json") for s in queue]),
        }


def _put_once(store: Store, path: str, content: bytes | Path) -> None:
    """Keep a content-addressed upload; a second identical one costs nothing."""

    def change() -> Changes:
        return {} if exists(store.private, path) else {path: content}

    transact(store.private, change, f"keep {path}")


def _events_path(submission_id: str) -> str:
    return f"submissions/{submission_id}/events.jsonl"


def _submission_path(submission_id: str) -> str:
    return f"submissions/{submission_id}/submission.json"


def _pretty(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode()
