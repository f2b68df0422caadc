"""Uploads of what is claimed and not begun: had in advance, so that an outage stops no work."""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import AssayError
from evaluator.worker.claims.tasks import Task, about
from leaderboard.records import Submission

_DRAFT = ".draft-"
FORGOTTEN_AFTER_S = 24 * 3600.0
"""What a worker that was killed had fetched."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class UploadShelf:
    """Uploads on this machine, one file for each submission; only this user may read them.

    Attributes:
        folder: where; made when it is needed, and may be lost at any time.
        fetch: copies an upload from the store to a new file.
    """

    folder: Path
    fetch: Callable[[Submission, Path], None]

    def have(self, task: Task) -> None:
        """Fetch the upload of a task; what cannot be had now is fetched when it is begun."""
        if task.handed_over or self._file(task.submission).exists():
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
        """Move an upload to where it is wanted, from here or from the store.

        Raises:
            TransientError: it is not here, and the store does not answer.
        """
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
