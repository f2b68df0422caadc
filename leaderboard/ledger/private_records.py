"""Redaction of private submissions: the public repository has their ids and states only.

The whole record lies in the private repository below `held/<id>/`, with what its events say beyond
their state. Nothing here is derived from content, name or author.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from benchmarks.errors import PlatformError
from leaderboard.accounts import is_key
from leaderboard.records import Event, Submission
from leaderboard.states import IN_WORK
from leaderboard.store.interface import Changes, NotFoundError, Repository, transact


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
    """Say of which file it is that what is parsed here cannot be read."""
    try:
        yield
    except (ValidationError, UnicodeDecodeError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.reason
        raise PlatformError(
            "record_damaged",
            f"{path} cannot be read: {why[:200]}",
            "Put back an earlier version of the file, or use the version of Assay that wrote it.",
        ) from error


PRIVATE_NAME = "private submission"
AUTHOR = "its author"  # Stands for whoever sent a private submission
BANNED = "banned"
"""Code of a submission that was not run because its account was banned. Bans are public, so that
code would tell whose a private submission is; and so would the state `rejected`."""
PRIVATE_ID = re.compile(r"private-[0-9a-f]{10}")
_ID_BYTES = 5
_UNKNOWN_HASH = "0" * 64


def private_id(token: Callable[[int], str] = secrets.token_hex) -> str:
    """A fresh id for a private submission, which it keeps when it is published."""
    return f"private-{token(_ID_BYTES)}"


def public_record(submission: Submission) -> Submission:
    """The record of a submission as anyone may see it."""
    if not submission.private:
        return submission
    return Submission(
        submission_id=submission.submission_id,
        kind=submission.kind,
        name=PRIVATE_NAME,
        metrics=(PRIVATE_NAME,),
        benchmarks=submission.benchmarks,
        submitter="",
        private=True,
        content_sha256=_UNKNOWN_HASH,
        archive="",
        received_at=submission.received_at,
    )


def public_events(submission: Submission, events: Sequence[Event]) -> tuple[Event, ...]:
    """A submission's events as anyone may see them."""
    if not submission.private:
        return tuple(events)
    workers: set[str] = set()
    shown: list[Event] = []
    for event in events:
        if event.state in IN_WORK:
            workers.add(event.by)
        shown.append(_public_event(event, workers, submission.account))
    return tuple(shown)


def _public_event(event: Event, workers: set[str], owner: str) -> Event:
    known = event.by in workers or (is_key(event.by) and event.by != owner)
    return Event(
        at=event.at,
        state=event.state,
        by=event.by if known else AUTHOR,
        # How its author's work failed is for the author; and a failure for a ban looks as any.
        code="" if event.fault == "submitter" else event.code,
        fault=event.fault,
        lease_until=event.lease_until,
        nonce=event.nonce,
        benchmarks=event.benchmarks,
    )


def whole_events(
    submission: Submission, public: Sequence[Event], details: Sequence[Event]
) -> tuple[Event, ...]:
    """A private submission's events with everything they say.

    The public ones decide what happened. Details that fit none of them were written for a commit
    that lost its race, and are passed over.
    """
    return matched(submission, public, details)[0]


def matched(
    submission: Submission, public: Sequence[Event], details: Sequence[Event]
) -> tuple[tuple[Event, ...], list[Event]]:
    """Whole events as `whole_events`, and the details that are left over."""
    left = list(details)
    found: list[Event] = []
    for event in public:
        fits = (d for d in left if _fits(submission, event, d))
        detail = next(fits, None)
        if detail is not None:
            left.remove(detail)
        found.append(detail or event)
    return tuple(found), left


def _fits(submission: Submission, public: Event, detail: Event) -> bool:
    """Whether a public event is what may be seen of a detailed one.

    Codes are left out: of faults of the submitter they were public once.
    """
    shown = _public_event(detail, {public.by}, submission.account)
    return public.model_copy(update={"code": ""}) == shown.model_copy(update={"code": ""})


FOLDER = "held/"
UPLOADS = "uploads/"
HASHES = "hashes/"  # What images are known again by: a file for each submission of generations
SCORED = "scored/"  # Scores that wait for a judge, or are being judged
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


class PrivateRecords:
    """Whole records of private submissions, and what their events say."""

    def __init__(self, private: Repository) -> None:
        self._private = private
        self._records: dict[str, Submission] = {}

    def record(self, public: Submission) -> Submission:
        """The whole record behind a public one; it never changes, so it is read once."""
        if not public.private:
            return public
        name = public.submission_id
        if name not in self._records:
            content = self._private.read(record_path(name))
            with readable(record_path(name)):
                self._records[name] = Submission.model_validate_json(content)
        return self._records[name]

    def files(
        self,
        submission: Submission,
        events: Sequence[Event],
        upload: bytes | Path,
        beside: Mapping[str, bytes],
    ) -> dict[str, bytes | Path | None]:
        """An upload, which is addressed by its content; of a private one, what is not public too."""
        files: dict[str, bytes | Path | None] = {**beside}
        if not self._private.has(submission.archive):
            files[submission.archive] = upload
        marked = read_marks(self._private)
        needed = marked.keys() & {submission.archive, *beside}
        if needed:
            left = {path: since for path, since in marked.items() if path not in needed}
            files[MARKS] = marks_file(left)
        if submission.private:
            files[record_path(submission.submission_id)] = record_bytes(submission)
            if telling := _telling(events):
                files[details_path(submission.submission_id)] = _lines(telling)
        return files

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
        """
        telling = _telling(new)
        if not submission.private or not telling:
            return
        name = submission.submission_id

        def change() -> Changes:
            details = self.details(name)
            _, left = matched(submission, public, details)
            missing = [event for event in telling if event not in left]
            return {details_path(name): _lines((*details, *missing))} if missing else {}

        transact(self._private, change, f"details of {name}")


def _telling(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.reason or event.hint or event.log]


def _lines(events: Sequence[Event]) -> bytes:
    return b"".join(event.model_dump_json().encode() + b"\n" for event in events)
