"""Spool on the worker's disk: finished runs, pending events, and uploads fetched in advance.

An entry of a finished run is a folder `<id>/` with what a judge needs (`handoff`) and `entry.json`,
which says for which request it was made. It is written beside its place, synced and renamed, so it
is there whole or not at all. What becomes of an entry when a worker starts on this disk:

| the submission now | the entry |
|---|---|
| in work, its worker is gone | used by whoever claims it: it is not scored again |
| in work, its worker lives | left: that worker publishes it, or what it makes itself |
| waits, for the same request (handed back, an attempt failed) | used by whoever claims it here |
| waits or is in work, for a later request (a rerun, new data) | dropped: its scores are of before |
| its scores were handed over by another | dropped |
| published, held, failed, rejected, withdrawn, hidden, superseded | dropped: it is settled |
| not known in this store | dropped |
| of another revision of a benchmark, or damaged | dropped, and scored from its shards |

Scores that were uploaded as a file have no entry: they are read again at no cost.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from benchmarks.errors import AssayError, PlatformError, TransientError
from evaluator.submission.runs import Scored
from evaluator.worker.handoff import handover_files, read_record, read_table
from evaluator.worker.tasks import Finished, Task, about
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import IN_WORK
from leaderboard.store.disk import replace_durably, write_durably
from leaderboard.store.interface import NotFoundError

log = logging.getLogger(__name__)


class PendingEvent(BaseModel):
    """An end that is to be recorded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    submission_id: str
    asked_at: AwareDatetime
    """When the run was asked for that ended so; a later request is another run."""
    handed_over: bool
    event: Event

    @classmethod
    def of(cls, task: Task, event: Event) -> PendingEvent:
        """The end of a task."""
        return cls(
            submission_id=task.submission_id,
            asked_at=task.asked_at,
            handed_over=task.scored_before,
            event=event,
        )


class EventSpool:
    """What one worker owes, and what workers before it on this disk left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: dict[str, PendingEvent] = {}

    def own(self) -> tuple[PendingEvent, ...]:
        """All that this worker owes, the oldest first."""
        return tuple(self._own.values())

    def get(self, submission_id: str) -> PendingEvent | None:
        """What this worker owes of a submission."""
        return self._own.get(submission_id)

    def left(self, submission_id: str) -> PendingEvent | None:
        """What is owed of a submission, by whoever was here before; None: nothing is known."""
        try:
            return PendingEvent.model_validate_json(self._file(submission_id).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("What is owed of %s cannot be read: %s", submission_id, error)
            return None

    def put(self, pending: PendingEvent) -> None:
        """Keep what is to be recorded; on a full disk in memory alone."""
        self._own[pending.submission_id] = pending
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_durably(self._file(pending.submission_id), pending.model_dump_json().encode())
        except OSError as error:
            log.warning("The end of %s is not on disk: %s", pending.submission_id, error)

    def drop(self, submission_id: str) -> None:
        """It is recorded, or nobody wants it any more."""
        self._own.pop(submission_id, None)
        with suppress(OSError):
            self._file(submission_id).unlink(missing_ok=True)

    def sweep(self, older_than_s: float) -> None:
        """Remove what nobody came back for."""
        for file in self._folder.glob("*.json"):
            with suppress(OSError):
                if file.stat().st_mtime < older_than_s:
                    file.unlink()

    def _file(self, submission_id: str) -> Path:
        return self._folder / f"{submission_id}.json"


DISK_FAILED = "disk_failed"
_ENTRY = "entry.json"
_DRAFT = ".draft-"


class Entry(BaseModel):
    """What is known of a finished run beside its scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_version: Literal[1] = 1
    submission_id: str
    benchmarks: tuple[str, ...]
    worker: str
    """Who finished it."""
    asked_at: AwareDatetime
    """When the run was asked for; a later request is another run."""
    begun_at: AwareDatetime | None
    at: AwareDatetime
    """When it was finished."""
    handed_over: bool
    """Whether the scores are from the store, where another worker left them to a judge."""
    output: str
    judged: bool = False
    """Whether its judging ended well once: until then, it may be what its workers die of."""

    def of_same_run(self, other: Entry) -> bool:
        """Whether both are of one finished run, whoever has it in hand."""
        own = {"worker", "begun_at", "judged"}
        return self.model_dump(exclude=own) == other.model_dump(exclude=own)


def still_wanted(entry: Entry, status: Status | None, asked_at: object) -> bool:
    """Whether an entry may still be used, by whoever holds or claims its submission."""
    if status is None or not (status.state in IN_WORK or status.unfinished):
        return False
    if asked_at != entry.asked_at:
        return False
    return entry.handed_over or not status.to_judge


@dataclass(frozen=True)
class RunSpool:
    """Finished runs on a disk."""

    folder: Path  # where; may be shared by workers of one machine
    worker: str  # who writes here

    def put(self, finished: Finished, revisions: Sequence[str]) -> None:
        """Keep a finished run; when this returns, it survives a loss of power."""
        if finished.task.submission.kind is Kind.SCORES:
            return
        entry, known = _entry_of(finished, self.worker), self.entry(finished.submission_id)
        if known is not None and known.of_same_run(entry):
            return  # It was taken from there.
        files = {_ENTRY: _bytes_of(entry)}
        for one, revision in zip(finished.scored, revisions, strict=True):
            made = handover_files(
                finished.task.submission, one, revision, self.worker, finished.output
            )
            files |= {path.rpartition("/")[2]: content for path, content in made.items()}
        with _writing():
            self._write(finished.submission_id, files)

    def judged(self, submission_id: str) -> None:
        """Note that it was judged; harmless where there is no entry.

        What cannot be noted is merely given fewer attempts.
        """
        entry = self.entry(submission_id)
        if entry is None or entry.judged:
            return
        after = entry.model_copy(update={"judged": True})
        try:
            replace_durably(self.folder / submission_id / _ENTRY, _bytes_of(after))
        except OSError as error:
            log.warning("Not noted as judged: %s: %s", submission_id, error)

    def ids(self) -> tuple[str, ...]:
        """Of all entries, oldest name first."""
        with suppress(FileNotFoundError):
            return tuple(sorted(p.name for p in self.folder.iterdir() if p.name[0] != "."))
        return ()

    def entry(self, submission_id: str) -> Entry | None:
        """An entry; None: there is none, or none that can be read."""
        try:
            content = (self.folder / submission_id / _ENTRY).read_bytes()
            found = Entry.model_validate_json(content)
        except FileNotFoundError:
            return None
        except (OSError, ValidationError, json.JSONDecodeError) as error:
            log.warning("The entry %s of the outbox cannot be read: %s", submission_id, error)
            return None
        return found if found.submission_id == submission_id else None

    def take(self, task: Task, revisions: Sequence[str]) -> Finished | None:
        """The run of a task, if it was finished before; what cannot be used is dropped."""
        name = task.submission_id
        entry = self.entry(name)
        if entry is None or not still_wanted(entry, task.status, task.asked_at):
            self.drop(name)
            return None
        try:
            return self._finished(task, entry, revisions)
        except PlatformError as error:
            log.warning("What was finished of %s is not used: %s", name, error)
            self.drop(name)
            return None

    def drop(self, submission_id: str) -> None:
        """Remove an entry; harmless where there is none."""
        place = self.folder / submission_id
        gone = self.folder / f"{_DRAFT}{uuid.uuid4().hex}"
        with suppress(OSError):  # Renamed first, so that no half of it is ever taken for whole.
            place.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def sweep(self, older_than_s: float) -> None:
        """Remove drafts that a crash left."""
        for draft in self.folder.glob(f"{_DRAFT}*"):
            with suppress(OSError):
                if draft.stat().st_mtime < older_than_s:
                    shutil.rmtree(draft, ignore_errors=True)

    def _finished(self, task: Task, entry: Entry, revisions: Sequence[str]) -> Finished:
        files, submission = _Files(self.folder / task.submission_id), task.submission
        if entry.benchmarks != submission.benchmarks:
            raise PlatformError("other_benchmarks", "It was run on other benchmarks.")
        scored: list[Scored] = []
        for name, revision in zip(submission.benchmarks, revisions, strict=True):
            record = read_record(files, task.submission_id, name)
            if record.revision != revision:
                raise PlatformError(
                    "other_revision",
                    f"It is of revision {record.revision} of {name}, not {revision}.",
                )
            table = read_table(files, submission, record)
            scored.append(record.scored(table))
        return Finished(task, scored, entry.output, entry.at)

    def _write(self, submission_id: str, files: dict[str, bytes]) -> None:
        # Scores of submissions that may be private.
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.folder / f"{_DRAFT}{uuid.uuid4().hex}"
        try:
            draft.mkdir(mode=0o700)
            for name, content in files.items():
                write_durably(draft / name, content)
            _sync(draft)
            self.drop(submission_id)
            draft.rename(self.folder / submission_id)
            _sync(self.folder)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise


@dataclass(frozen=True)
class _Files:
    """The files of an entry, under the paths they have in a hand-over."""

    folder: Path

    def read(self, path: str) -> bytes:
        """See `Readable`."""
        try:
            return (self.folder / path.rpartition("/")[2]).read_bytes()
        except OSError as error:
            raise NotFoundError(path) from error


def _entry_of(finished: Finished, worker: str) -> Entry:
    task = finished.task
    return Entry(
        submission_id=task.submission_id,
        benchmarks=task.submission.benchmarks,
        worker=worker,
        asked_at=task.asked_at,
        begun_at=task.begun_at,
        at=finished.at,
        handed_over=task.scored_before,
        output=finished.output,
    )


def _bytes_of(entry: Entry) -> bytes:
    return entry.model_dump_json(indent=1).encode()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransientError(
            DISK_FAILED,
            f"A finished run cannot be kept on the worker's disk: {error.strerror or error}.",
            "Make room for the folder `scratch` of the store.",
        ) from error


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


FORGOTTEN_AFTER_S = 24 * 3600.0
"""What a worker that was killed had fetched."""


@dataclass(frozen=True)
class UploadCache:
    """Uploads on this machine, one file for each submission; only this user may read them."""

    folder: Path  # where; made when it is needed, and may be lost at any time
    fetch: Callable[[Submission, Path], None]  # copies an upload from the store to a new file

    def have(self, task: Task) -> None:
        """Fetch the upload of a task; what cannot be had now is fetched when it is begun."""
        if task.scored_before or self._file(task.submission).exists():
            return
        draft = self.folder / f"{_DRAFT}{uuid.uuid4().hex}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.fetch(task.submission, draft)
            draft.replace(self._file(task.submission))
        except (AssayError, OSError) as error:
            log.info("Not fetched in advance: %s", error, extra=about(task.submission_id))
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def take(self, submission: Submission, target: Path) -> None:
        """Move an upload to where it is wanted, from here or from the store."""
        try:
            shutil.move(self._file(submission), target)
        except OSError:
            with suppress(OSError):
                target.unlink(missing_ok=True)
            self.fetch(submission, target)

    def drop(self, submission_id: str) -> None:
        """It is not needed here any more."""
        with suppress(OSError):
            (self.folder / submission_id).unlink(missing_ok=True)

    def sweep(self, now_s: float) -> None:
        """Remove what is older than any claim."""
        for file in self.folder.glob("*"):
            with suppress(OSError):
                if file.stat().st_mtime < now_s - FORGOTTEN_AFTER_S:
                    file.unlink()

    def _file(self, submission: Submission) -> Path:
        return self.folder / submission.submission_id
