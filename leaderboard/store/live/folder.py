"""Pulses and running logs as small files below a folder, for us alone."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from benchmarks.errors import TransientError
from leaderboard.store.disk import DRAFT, failing
from leaderboard.store.live.interface import (
    FORGOTTEN_AFTER,
    KEY,
    MOST_SAID,
    SAID_BYTES,
    Heartbeat,
    as_bytes,
    checked_key,
    end_of,
    long_gone,
    readable,
)

_LOCK_TIMEOUT_S = 2.0
_MOST_KEPT = 2 * SAID_BYTES  # A log is cut to its end when it has grown to this, not at every line
_PULSE_BYTES = 64 << 10


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
                    found.append(Heartbeat.model_validate_json(_end_of_file(file, _PULSE_BYTES)))
        return tuple(found)

    def say(self, submission_id: str, text: str) -> None:
        """See `Live`."""
        file = self._log(submission_id)
        added = end_of(as_bytes(text), SAID_BYTES)
        if not added:
            return
        with failing("keep a running log"):
            self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                size = file.stat().st_size if file.exists() else -1
                if size < 0:
                    self._make_room()
                if size + len(added) > _MOST_KEPT:
                    _replace(file, end_of(_end_of_file(file, SAID_BYTES + 1) + added, SAID_BYTES))
                else:
                    _append(file, added)

    def log_end(self, submission_id: str) -> str:
        """See `Live`."""
        file = self._log(submission_id)
        with failing("read a running log"):
            try:
                return readable(_end_of_file(file, SAID_BYTES + 1))
            except FileNotFoundError:
                return ""

    def forget(self, submission_id: str) -> None:
        """See `Live`."""
        file = self._log(submission_id)
        with failing("remove a running log"):
            if self._logs.is_dir():
                with self._locked():
                    file.unlink(missing_ok=True)

    def _log(self, submission_id: str) -> Path:
        return self._logs / f"{checked_key(submission_id)}.log"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = FileLock(self._logs / ".lock", timeout=_LOCK_TIMEOUT_S, mode=0o600)
        try:
            with lock:
                yield
        except Timeout as error:
            raise TransientError(
                "live_busy", f"The running logs were locked for {_LOCK_TIMEOUT_S:.0f} s."
            ) from error

    def _make_room(self) -> None:
        """Drop what is old, and the logs silent for longest where one more would be too many."""
        logs = [file for file in self._logs.glob("*.log") if KEY.fullmatch(file.stem)]
        latest_first = sorted(logs, key=lambda file: -file.stat().st_mtime)
        lock = self._logs / ".lock"
        os.utime(lock)  # Its moment is now by the clock that stamps the logs.
        oldest = lock.stat().st_mtime - FORGOTTEN_AFTER.total_seconds()
        for place, file in enumerate(latest_first, 1):
            if place >= MOST_SAID or file.stat().st_mtime < oldest:
                file.unlink(missing_ok=True)
        _drop_drafts(self._logs)

    def _sweep(self, newcomer: Heartbeat) -> None:
        """Drop the pulses of workers that are long gone, when a new one comes."""
        for gone in long_gone(self.pulses(), newcomer.at):
            if KEY.fullmatch(gone):
                (self._root / f"{gone}.json").unlink(missing_ok=True)
        _drop_drafts(self._root)


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
        _append(draft, content)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)  # Still there only where something failed.


def _append(file: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(file, flags, 0o600), "ab", buffering=0) as opened:
        view = memoryview(content)
        while view:
            view = view[opened.write(view) :]


def _end_of_file(file: Path, most: int) -> bytes:
    with file.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - most))
        return opened.read(most)
