"""Private results: uploads, and all of private submissions below `held/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, TypeAdapter

from leaderboard.ledger.redaction import matched
from leaderboard.ledger.submission_files import readable, record_bytes
from leaderboard.records import Event, Submission
from leaderboard.store.interface import Changes, NotFoundError, Repository, transact

FOLDER = "held/"
UPLOADS = "uploads/"
HASHES = "hashes/"
"""What images are known again by: a file for each submission of generations."""
SCORED = "scored/"
"""Scores that wait for a judge, or are being judged."""
MARKS = "unneeded.json"
"""What no submission was found to need, with the time it was first found (`orphans`)."""
_MARKS = TypeAdapter(dict[str, AwareDatetime])


def held_folder(submission_id: str) -> str:
    """All that is kept of one of them, but for the upload."""
    return f"{FOLDER}{submission_id}/"


def record_path(submission_id: str) -> str:
    """Its whole record."""
    return f"{held_folder(submission_id)}submission.json"


def details_path(submission_id: str) -> str:
    """What its events say beyond the public ones."""
    return f"{held_folder(submission_id)}events.jsonl"


def results_folder(submission_id: str) -> str:
    """Its results until it is published, named as below the public `results/`."""
    return f"{held_folder(submission_id)}results/"


def scored_folder(submission_id: str) -> str:
    """Its scores, from when they are handed over until they are judged."""
    return f"{SCORED}{submission_id}/"


def read_marks(private: Repository) -> dict[str, datetime]:
    """What is marked as unneeded, and since when."""
    try:
        return _MARKS.validate_json(private.read(MARKS))
    except NotFoundError:
        return {}


def marks_file(marks: Mapping[str, datetime]) -> bytes | None:
    """The file of marks; None where there are none."""
    return _MARKS.dump_json(dict(marks), indent=1) if marks else None


class HeldRecords:
    """Whole records of private submissions, and what their events say.

    Args:
        private: the private repository.
    """

    def __init__(self, private: Repository) -> None:
        self._private = private
        self._records: dict[str, Submission] = {}

    def record(self, public: Submission) -> Submission:
        """The whole record behind a public one; it never changes, so it is read once.

        Raises:
            PlatformError: `record_damaged`.
        """
        if not public.private:
            return public
        name = public.submission_id
        if name not in self._records:
            content = self._private.read(record_path(name))
            with readable(record_path(name)):
                self._records[name] = Submission.model_validate_json(content)
        return self._records[name]

    def keep(
        self,
        submission: Submission,
        upload: bytes | Path,
        beside: Mapping[str, bytes] | None = None,
    ) -> None:
        """Keep an upload, which is addressed by its content, and the record if it is private.

        Args:
            submission: its whole record.
            upload: its content.
            beside: path to content of further files that are kept with it.
        """

        def change() -> Changes:
            files: dict[str, bytes | Path | None] = {**(beside or {})}
            if not self._private.has(submission.archive):
                files[submission.archive] = upload
            marked = read_marks(self._private)
            needed = marked.keys() & {submission.archive, *(beside or {})}
            if needed:
                left = {path: since for path, since in marked.items() if path not in needed}
                files[MARKS] = marks_file(left)
            if submission.private:
                files[record_path(submission.submission_id)] = record_bytes(submission)
            return files

        transact(self._private, change, f"keep {submission.archive}")

    def details(self, submission_id: str) -> tuple[Event, ...]:
        """Events as they were before their public copies were made; not all have any."""
        try:
            lines = self._private.read(details_path(submission_id)).splitlines()
        except NotFoundError:
            return ()
        with readable(details_path(submission_id)):
            return tuple(Event.model_validate_json(line) for line in lines)

    def keep_details(
        self, submission: Submission, public: Sequence[Event], new: Sequence[Event]
    ) -> None:
        """Keep what the public repository will not say of further events.

        This comes before the public commit. If that loses its race for good, the details fit no
        public event and are never shown.

        Args:
            submission: the whole record.
            public: its public events so far.
            new: the further ones, whole.
        """
        telling = [event for event in new if event.reason or event.hint or event.log]
        if not submission.private or not telling:
            return
        name = submission.submission_id

        def change() -> Changes:
            details = self.details(name)
            _, left = matched(submission, public, details)
            missing = [event for event in telling if event not in left]
            lines = (event.model_dump_json().encode() for event in (*details, *missing))
            return {details_path(name): b"".join(x + b"\n" for x in lines)} if missing else {}

        transact(self._private, change, f"details of {name}")
