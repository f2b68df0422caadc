"""Logs of a worker: text for people, or one JSON object a line for programs.

Whatever the form, no secret is written, and each submission has a bounded file of its own.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from benchmarks.errors import AssayError
from evaluator.isolation.supervising.text import plain_text
from evaluator.worker.running.secrets_kept import SecretsKept
from evaluator.worker.upkeep.log_files import LogLimits, SubmissionFiles

_MESSAGE_CHARS = 8_000
_EXCEPTION_CHARS = 16_000
_TELL_EVERY_REQUEST = ("httpx", "httpx2", "httpcore", "httpcore2")
"""Libraries that log each request, with the signed address of each file."""


class LogFormat(StrEnum):
    """How a worker logs."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class Doing:
    """What a worker is at.

    Attributes:
        submission: its id; empty while it waits.
        attempt: the how manieth.
    """

    submission: str = ""
    attempt: int = 0


@dataclass(frozen=True)
class Logged:
    """What log lines say beside their message.

    Attributes:
        worker: its name.
        clock: the store's time; asks nobody for it (`RememberedClock.last`).
        doing: what the worker is at.
        kept: takes secrets out of a text.
    """

    worker: str
    clock: Callable[[], datetime]
    doing: Callable[[], Doing]
    kept: SecretsKept

    def about(self, record: logging.LogRecord) -> Doing:
        """What a line is about: what it says itself, else what the worker is at."""
        submission = getattr(record, "submission", None)
        if isinstance(submission, str) and submission:
            attempt = getattr(record, "attempt", 0)
            return Doing(submission, attempt if isinstance(attempt, int) else 0)
        return self.doing()


class RememberedClock:
    """A store's clock, and what it said last, for lines that must not wait for the store.

    To ask a store for its time can take a request, which can fail, which is logged.

    Args:
        clock: of the store.
        steady: seconds that only go forward.
    """

    def __init__(
        self, clock: Callable[[], datetime], steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._steady = steady
        self._said: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """The store's time.

        Raises:
            TransientError: it cannot be asked.
        """
        now = self._clock()
        self._said = now, self._steady()
        return now

    def last(self) -> datetime:
        """What it said last and what went by since; this machine's time before it said any."""
        if self._said is None:
            return datetime.now(UTC)
        now, at = self._said
        return now + timedelta(seconds=self._steady() - at)


class TextLines(logging.Formatter):
    """Lines for people, without secrets and without what steers a terminal.

    Args:
        kept: takes secrets out of a text.
    """

    def __init__(self, kept: SecretsKept) -> None:
        super().__init__("%(asctime)s %(levelname)s %(about)s%(message)s")
        self._kept = kept

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        submission = getattr(record, "submission", "")
        record.about = f"{submission}: " if submission else ""
        return self._kept(plain_text(super().format(record).encode(errors="replace")))


class JsonLines(logging.Formatter):
    """One JSON object a line; pure ASCII, so no terminal is steered by it.

    Args:
        logged: what lines say beside their message.
    """

    def __init__(self, logged: Logged) -> None:
        super().__init__()
        self._logged = logged

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        doing, kept = self._logged.about(record), self._logged.kept
        said: dict[str, object] = {
            "time": self._logged.clock().isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "worker": self._logged.worker,
            "submission": doing.submission,
            "attempt": doing.attempt,
            "code": _code(record),
            "message": _short(kept(record.getMessage()), _MESSAGE_CHARS),
        }
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            said["exception"] = _short(kept(trace), _EXCEPTION_CHARS)
        return json.dumps(said)


@contextmanager
def logging_to(
    form: LogFormat, logged: Logged, folder: Path, limits: LogLimits | None = None
) -> Iterator[None]:
    """Log to the error output, and to the files of submissions, while this is entered.

    Args:
        form: of the error output.
        logged: what lines say beside their message.
        folder: for the files of submissions.
        limits: of those.
    """
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(JsonLines(logged) if form is LogFormat.JSON else TextLines(logged.kept))
    files = SubmissionFiles(
        folder, lambda record: logged.about(record).submission, JsonLines(logged), limits
    )
    handlers = (output, files)
    root, before = logging.getLogger(), _levels()
    root.setLevel(logging.INFO)
    for name in _TELL_EVERY_REQUEST:
        logging.getLogger(name).setLevel(logging.WARNING)
    for handler in handlers:
        root.addHandler(handler)
    try:
        yield
    finally:
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _levels() -> Mapping[str, int]:
    return {name: logging.getLogger(name).level for name in ("root", *_TELL_EVERY_REQUEST)}


def _code(record: logging.LogRecord) -> str:
    """Of the error a line is about."""
    raised = record.exc_info[1] if record.exc_info else None
    args = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
    errors = (error for error in (raised, *args) if isinstance(error, AssayError))
    return next((error.code for error in errors), "")


def _short(text: str, most: int) -> str:
    """The beginning and the end of a long text: a trace says at its end what happened."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"
