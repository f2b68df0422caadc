"""Logs of a worker: text for people, or one JSON object a line for programs.

Whatever the form, no secret is written, and each submission has a bounded file of its own.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Self

from benchmarks.errors import AssayError
from benchmarks.settings.model import value_of
from evaluator.isolation.session import plain_text

HIDDEN = "[secret]"
_SHORTEST = 8
"""What is shorter would hide ordinary words."""
_NAMES = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL", re.IGNORECASE)
_NOT_SECRET = re.compile(r"_(PATH|FILE|DIR|URL|ENDPOINT)$|^HF_HUB_DISABLE_", re.IGNORECASE)
_FORMS = (
    re.compile(r"\bhf_[A-Za-z0-9_]{16,}"),
    re.compile(r"(?<=bearer )\s*[^\s\"',]+", re.IGNORECASE),
    re.compile(r"(?<=x-webhook-secret)[\"']?\s*[:=]\s*[\"']?[^\s\"',]+", re.IGNORECASE),
    # The signature of a link to a file is as good as a token while it lasts.
    re.compile(r"(?<=[?&])((?:X-Amz-\w+|Signature|Policy|Key-Pair-Id|token)=)[^&\s\"']+", re.I),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)


class SecretRedaction:
    """Puts `[secret]` where a text has a secret."""

    def __init__(
        self, secrets: Iterable[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._known: re.Pattern[str] | None = None
        self._environment = environment if environment is not None else {}
        self._learn(secrets)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Knows what an environment calls token, secret, password or key."""
        return cls((), environment)

    def _learn(self, secrets: Iterable[str]) -> None:
        """What was once a secret stays one."""
        found = self._secrets | {s for s in secrets if len(s) >= _SHORTEST}
        if found != self._secrets:
            self._secrets = found
            longest_first = sorted(found, key=len, reverse=True)
            self._known = re.compile("|".join(map(re.escape, longest_first)))

    def _of_environment(self) -> Iterable[str]:
        named = ((name, value) for name, value in list(self._environment.items()))
        return (v for name, v in named if _NAMES.search(name) and not _NOT_SECRET.search(name))

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        self._learn(self._of_environment())
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for form in _FORMS:
            text = form.sub(HIDDEN, text)
        return text


LOGS = "logs"
"""Folder of the scratch."""
_DAY_S = 24 * 3600.0
_ID = re.compile(r"[a-z0-9][a-z0-9-]{7,63}")


@dataclass(frozen=True)
class LogLimits:
    """How much is kept. In all, at most twice `n_bytes` for each of `most` submissions."""

    n_bytes: int = 1 << 20  # of one file of a submission; an older one is kept beside it
    most: int = 200  # submissions of which files are kept, the newest
    seconds: float = 30 * _DAY_S  # after which a file that nothing was added to is removed


def limits_of(environment: Mapping[str, str]) -> LogLimits:
    """As the settings say."""
    return LogLimits(
        round(value_of("log_mib", environment) * 2**20),
        value_of("logs_kept", environment),
        value_of("log_days", environment) * _DAY_S,
    )


class SubmissionFiles(logging.Handler):
    """Writes what is logged while a worker is at a submission to `FOLDER/<id>.jsonl`."""

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


_MESSAGE_CHARS = 8_000
_EXCEPTION_CHARS = 16_000
_TELL_EVERY_REQUEST = ("httpx", "httpx2", "httpcore", "httpcore2")
"""Libraries that log each request, with the signed address of each file."""


class LogFormat(StrEnum):
    """How a worker logs."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class Activity:
    """What a worker is at."""

    submission: str = ""  # its id; empty while it waits
    attempt: int = 0  # the how manieth


@dataclass(frozen=True)
class Logged:
    """What log lines say beside their message."""

    worker: str  # its name
    clock: Callable[[], datetime]  # the store's time; asks nobody for it (`RememberedClock.last`)
    doing: Callable[[], Activity]  # what the worker is at
    kept: SecretRedaction  # takes secrets out of a text

    def about(self, record: logging.LogRecord) -> Activity:
        """What a line is about: what it says itself, else what the worker is at."""
        submission = getattr(record, "submission", None)
        if isinstance(submission, str) and submission:
            attempt = getattr(record, "attempt", 0)
            return Activity(submission, attempt if isinstance(attempt, int) else 0)
        return self.doing()


class RememberedClock:
    """A store's clock, and what it said last, for lines that must not wait for the store.

    To ask a store for its time can take a request, which can fail, which is logged.
    """

    def __init__(
        self, clock: Callable[[], datetime], steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._steady = steady
        self._said: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """The store's time."""
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
    """Lines for people, without secrets and without what steers a terminal."""

    def __init__(self, kept: SecretRedaction) -> None:
        super().__init__("%(asctime)s %(levelname)s %(about)s%(message)s")
        self._kept = kept

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        submission = getattr(record, "submission", "")
        record.about = f"{submission}: " if submission else ""
        return self._kept(plain_text(super().format(record).encode(errors="replace")))


class JsonLines(logging.Formatter):
    """One JSON object a line; pure ASCII, so no terminal is steered by it."""

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
    """Log to the error output, and to the files of submissions, while this is entered."""
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
