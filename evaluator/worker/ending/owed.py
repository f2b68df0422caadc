"""Ends of submissions that the store could not take yet, in memory and on disk."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from evaluator.worker.claims.tasks import Task
from leaderboard.records import Event
from leaderboard.store.disk import replace_durably

log = logging.getLogger(__name__)


class Owed(BaseModel):
    """An end that is to be recorded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    submission_id: str
    asked_at: AwareDatetime
    """When the run was asked for that ended so; a later request is another run."""
    handed_over: bool
    event: Event

    @classmethod
    def of(cls, task: Task, event: Event) -> Owed:
        """The end of a task."""
        return cls(
            submission_id=task.submission_id,
            asked_at=task.asked_at,
            handed_over=task.handed_over,
            event=event,
        )


class OwedEvents:
    """What one worker owes, and what workers before it on this disk left.

    Args:
        folder: one file for each submission; may be shared by workers of a machine.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mine: dict[str, Owed] = {}

    def mine(self) -> tuple[Owed, ...]:
        """All that this worker owes, the oldest first."""
        return tuple(self._mine.values())

    def get(self, submission_id: str) -> Owed | None:
        """What this worker owes of a submission."""
        return self._mine.get(submission_id)

    def left(self, submission_id: str) -> Owed | None:
        """What is owed of a submission, by whoever was here before; None: nothing is known."""
        try:
            return Owed.model_validate_json(self._file(submission_id).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("What is owed of %s cannot be read: %s", submission_id, error)
            return None

    def put(self, owed: Owed) -> None:
        """Keep what is to be recorded; on a full disk in memory alone."""
        self._mine[owed.submission_id] = owed
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_durably(self._file(owed.submission_id), owed.model_dump_json().encode())
        except OSError as error:
            log.warning("The end of %s is not on disk: %s", owed.submission_id, error)

    def drop(self, submission_id: str) -> None:
        """It is recorded, or nobody wants it any more."""
        self._mine.pop(submission_id, None)
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
