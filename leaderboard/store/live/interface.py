"""Heartbeats, progress and running logs: frequent, allowed to be lost, so never a commit.

They are kept in memory, or as small files below a folder for us alone.
"""

from __future__ import annotations

import os
import re
import threading
import time
import unicodedata
import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from benchmarks.sources.output import DRAFT
from leaderboard.store.disk import failing

SAID_BYTES = 64 << 10  # Of a running log, its end is kept

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours and cursor moves
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links
    r"|\x1b[ -/]*[0-~]?"  # the rest, character sets among it
)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})


def _end_of(content: bytes) -> bytes:
    """The end of a log, from the start of a line on; of one line too long for it, its end."""
    if len(content) <= SAID_BYTES:
        return content
    cut = content[-SAID_BYTES:]
    if content[-SAID_BYTES - 1 : -SAID_BYTES] == b"\n":
        return cut
    _, broken, lines = cut.partition(b"\n")
    return lines if broken and lines else cut


def readable(content: bytes) -> str:
    """A log as plain text.

    Escape sequences go as wholes, and a line that was written over shows what was written last,
    as on a terminal; then every character is dropped that is unseen or turns the reading order.
    """
    text = _end_of(content).decode("utf-8", errors="replace").replace("\r\n", "\n")
    return "\n".join(_line(line) for line in _ESCAPES.sub("", text).split("\n"))


def readable_text(text: str) -> str:
    """As `readable`, of what is text already."""
    return readable(text.encode("utf-8", errors="replace"))


def last_line(text: str, most: int = 200) -> str:
    """The last line that says anything, cut to a length."""
    lines = (line.strip() for line in reversed(text.split("\n")))
    return next((line for line in lines if line), "")[:most]


_KNOWN_BY = 200  # So many characters at the end of what was read say where to go on


def new_lines(before: str, now: str) -> tuple[str, str]:
    """What came to a log since it was last read, in whole lines.

    Of a long log, the start or the middle may have gone meanwhile.
    """
    whole = now[: now.rfind("\n") + 1]
    if whole.startswith(before):
        return whole[len(before) :], whole
    first = whole[: whole.find("\n") + 1]
    start = before.find(first) if first else -1
    while start >= 0:
        if whole.startswith(before[start:]):
            return whole[len(before) - start :], whole
        start = before.find(first, start + 1)
    end = before[-_KNOWN_BY:]
    return whole[whole.rfind(end) + len(end) if end in whole else 0 :], whole


def _line(line: str) -> str:
    shown = line.rstrip("\r").rpartition("\r")[2]
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join(c for c in shown if c == "\t" or unicodedata.category(c) not in _UNSEEN)


FORGOTTEN_AFTER = timedelta(days=1)
"""After that, what a worker last told, and what a scorer said, is dropped."""
MOST_SAID = 256
"""Submissions whose running logs are kept at once; the one silent for longest goes first."""
KEY = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
"""Names of workers and of submissions: they become names of files."""


class Heartbeat(BaseModel):
    """What a worker is doing right now.

    Fields that a newer worker adds are passed over, so that it is not taken for dead.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    worker: str
    at: AwareDatetime
    """By the medium's clock, never the worker's own machine's."""
    isolation_ok: bool
    isolation: str
    """Layers in force, or the reason why strangers' code cannot be run, with the remedy."""
    submission_id: str = ""
    """What it works on; empty while it waits."""
    stage: str = ""
    done: int = 0
    total: int = 0
    rate_per_s: float = 0.0
    eta_s: float | None = None
    last_line: str = ""
    """The last line the scorer printed: for its author and operators alone."""
    attempt: int = 0
    """Which of the attempts allowed this is; 0 where nothing is worked on."""
    claimed: tuple[str, ...] = ()
    """Public ids of all submissions it holds, the one it works on included."""

    @property
    def for_everybody(self) -> Heartbeat:
        """As anyone may see it: without the scorer's words."""
        return self.model_copy(update={"last_line": ""})


class Live(Protocol):
    """What the workers tell while they work.

    All methods may raise OSError or TransientError where the medium can fail: what was to be told
    is lost then, and nothing else.
    """

    def beat(self, pulse: Heartbeat) -> None:
        """Replace the worker's pulse."""

    def pulses(self) -> tuple[Heartbeat, ...]:
        """The latest pulse of every worker that beat within a day, live or not."""

    def set_log(self, submission_id: str, text: str) -> None:
        """Replace the running log of a submission by the end of what its scorer printed so far.

        Only what its author may see is told.
        """

    def log_end(self, submission_id: str) -> str:
        """The end of a submission's running log; empty where there is none.

        At most 64 KiB of whole lines, the last of which may be unfinished, without anything that
        moves a cursor or turns the reading direction. Markup is left as it is.
        """

    def forget(self, submission_id: str) -> None:
        """Remove the running log of a submission; harmless where there is none."""


class MemoryLive:
    """Pulses and running logs in memory: of one process, safe among its threads."""

    def __init__(self) -> None:
        self._pulses: dict[str, Heartbeat] = {}
        self._said: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def beat(self, pulse: Heartbeat) -> None:
        """See `Live`."""
        checked_key(pulse.worker)
        with self._lock:
            if pulse.worker not in self._pulses:
                for gone in long_gone(tuple(self._pulses.values()), pulse.at):
                    del self._pulses[gone]
            self._pulses[pulse.worker] = pulse

    def pulses(self) -> tuple[Heartbeat, ...]:
        """See `Live`."""
        with self._lock:
            return tuple(self._pulses.values())

    def set_log(self, submission_id: str, text: str) -> None:
        """See `Live`."""
        checked_key(submission_id)
        with self._lock:
            self._said.pop(submission_id, None)
            # Put back last, so that the first is the one silent for longest.
            self._said[submission_id] = log_bytes(text)
            while len(self._said) > MOST_SAID:
                del self._said[next(iter(self._said))]

    def log_end(self, submission_id: str) -> str:
        """See `Live`."""
        with self._lock:
            found = self._said.get(submission_id, b"")
        return readable(found)

    def forget(self, submission_id: str) -> None:
        """See `Live`."""
        with self._lock:
            self._said.pop(submission_id, None)


def log_bytes(text: str) -> bytes:
    """The end of a log as it is kept; what cannot be written becomes question marks."""
    return _end_of(text.encode("utf-8", errors="replace"))


def checked_key(name: str) -> str:
    """The name, if it can name a file."""
    if not KEY.fullmatch(name):
        raise ValueError(f"{name[:120]!r} cannot name a worker or a submission")
    return name


def long_gone(pulses: tuple[Heartbeat, ...], now: datetime) -> tuple[str, ...]:
    """Workers not heard of for so long that their pulses may be dropped."""
    return tuple(pulse.worker for pulse in pulses if pulse.at < now - FORGOTTEN_AFTER)


class FolderLive:
    """One small file per worker, and one per submission that says something.

    Safe among threads and processes. Files are readable by their owner alone, since a scorer's
    words are its author's.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._logs = root / "said"

    def beat(self, pulse: Heartbeat) -> None:
        """See `Live`."""
        checked_key(pulse.worker)
        with failing("keep a heartbeat"):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._root / f"{pulse.worker}.json"
            if not file.exists():
                self._sweep(pulse)
            _replace(file, pulse.model_dump_json().encode())

    def pulses(self) -> tuple[Heartbeat, ...]:
        """See `Live`; a file that is not a pulse is passed over, since pulses may be lost."""
        found: list[Heartbeat] = []
        with failing("read the heartbeats"):
            for file in sorted(self._root.glob("*.json")):
                with suppress(ValidationError, FileNotFoundError):
                    found.append(Heartbeat.model_validate_json(file.read_bytes()))
        return tuple(found)

    def set_log(self, submission_id: str, text: str) -> None:
        """See `Live`."""
        file, content = self._log(submission_id), log_bytes(text)
        with failing("keep a running log"):
            self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = not file.exists()
            _replace(file, content)
            if new:
                self._make_room(file.stat().st_mtime - FORGOTTEN_AFTER.total_seconds())

    def log_end(self, submission_id: str) -> str:
        """See `Live`."""
        file = self._log(submission_id)
        with failing("read a running log"):
            try:
                return readable(file.read_bytes())
            except FileNotFoundError:
                return ""

    def forget(self, submission_id: str) -> None:
        """See `Live`."""
        file = self._log(submission_id)
        with failing("remove a running log"):
            file.unlink(missing_ok=True)

    def _log(self, submission_id: str) -> Path:
        return self._logs / f"{checked_key(submission_id)}.log"

    def _make_room(self, oldest: float) -> None:
        """Drop what is old, and the logs silent for longest where they are too many."""
        changed = {}
        for file in self._logs.glob("*.log"):
            with suppress(FileNotFoundError):
                changed[file] = file.stat().st_mtime
        latest_first = sorted(changed, key=changed.__getitem__, reverse=True)
        for place, file in enumerate(latest_first):
            if place >= MOST_SAID or changed[file] < oldest:
                file.unlink(missing_ok=True)
        _drop_drafts(self._logs)

    def _sweep(self, newcomer: Heartbeat) -> None:
        """Drop the pulses of workers that are long gone, when a new one comes."""
        for gone in long_gone(self.pulses(), newcomer.at):
            if KEY.fullmatch(gone):
                (self._root / f"{gone}.json").unlink(missing_ok=True)
        _drop_drafts(self._root)
        _drop_drafts(self._logs)


def _drop_drafts(folder: Path) -> None:
    """Drop what a process that died left unfinished; nobody needs a day for one."""
    oldest = time.time() - FORGOTTEN_AFTER.total_seconds()
    for draft in folder.glob(f"*{DRAFT}"):
        with suppress(FileNotFoundError):
            if draft.stat().st_mtime < oldest:
                draft.unlink()


def _replace(file: Path, content: bytes) -> None:
    """Replace a file at once, without waiting for the disk: a crash may lose it."""
    draft = file.with_name(f"{file.name}.{uuid.uuid4().hex}{DRAFT}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(content)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)  # Still there only where something failed.
