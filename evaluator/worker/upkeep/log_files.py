"""The log of each submission in a file of its own, and how much of all of them is kept."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from benchmarks.settings.sources import value_of

LOGS = "logs"
"""Folder of the scratch."""
_DAY_S = 24 * 3600.0
_ID = re.compile(r"[a-z0-9][a-z0-9-]{7,63}")


@dataclass(frozen=True)
class LogLimits:
    """How much is kept. In all, at most twice `n_bytes` for each of `most` submissions.

    Attributes:
        n_bytes: of one file of a submission; an older one is kept beside it.
        most: submissions of which files are kept, the newest.
        seconds: after which a file that nothing was added to is removed.
    """

    n_bytes: int = 1 << 20
    most: int = 200
    seconds: float = 30 * _DAY_S


def limits_of(environment: Mapping[str, str]) -> LogLimits:
    """As the settings say.

    Raises:
        SubmitterError: `bad_setting`.
    """
    return LogLimits(
        round(value_of("log_mib", environment) * 2**20),
        value_of("logs_kept", environment),
        value_of("log_days", environment) * _DAY_S,
    )


class SubmissionFiles(logging.Handler):
    """Writes what is logged while a worker is at a submission to `FOLDER/<id>.jsonl`.

    Args:
        folder: made when it is needed, for its user alone.
        about: the submission that a line is about; empty for none.
        formatter: of the lines.
        limits: of the files; None: the usual ones.
        clock: seconds since 1970 by this machine, as its file system has them.
    """

    def __init__(
        self,
        folder: Path,
        about: Callable[[logging.LogRecord], str],
        formatter: logging.Formatter,
        limits: LogLimits | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._folder = folder
        self._about = about
        self._limits = limits or LogLimits()
        self._clock = clock
        self._open: tuple[str, logging.Handler] | None = None
        self.setFormatter(formatter)
        # Also where nothing is ever logged: what is old was kept by workers before.
        self._prune()

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`. A line that the disk does not take is on the error output."""
        submission = self._about(record)
        if not _ID.fullmatch(submission):
            return
        with suppress(OSError):
            self._file(submission).emit(record)

    def close(self) -> None:
        """See `logging.Handler`."""
        self._leave()
        super().close()

    def _file(self, submission: str) -> logging.Handler:
        if self._open is None or self._open[0] != submission:
            self._leave()
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / f"{submission}.jsonl"
            file = _Bounded(path, maxBytes=self._limits.n_bytes, backupCount=1, encoding="ascii")
            file.setFormatter(self.formatter)
            self._open = submission, file
            self._prune()
        return self._open[1]

    def _leave(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _prune(self) -> None:
        """Drop the files of the submissions that were worked on longest ago, and what is old."""
        files = sorted(self._folder.glob("*.jsonl"), key=_changed_at, reverse=True)
        oldest = self._clock() - self._limits.seconds
        for place, path in enumerate(files):
            in_use = self._open is not None and path.stem == self._open[0]
            if not in_use and (place >= self._limits.most or _changed_at(path) < oldest):
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                    path.with_name(f"{path.name}.1").unlink(missing_ok=True)


class _Bounded(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """The line is on the error output; a full disk does not fill that as well."""


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
