"""Heartbeats and progress: small, frequent, and allowed to be lost, so never a commit."""

from __future__ import annotations

import re
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

FORGOTTEN_AFTER = timedelta(days=1)
_KEY = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")


class Pulse(BaseModel):
    """What a worker is doing right now."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    worker: str
    at: AwareDatetime
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


class Live(Protocol):
    """Latest pulse of every worker."""

    def beat(self, pulse: Pulse) -> None:
        """Replace the worker's pulse."""

    def pulses(self) -> tuple[Pulse, ...]:
        """The latest pulse of every worker that ever beat, live or not."""


class MemoryLive:
    """Pulses in memory, for tests."""

    def __init__(self) -> None:
        self._pulses: dict[str, Pulse] = {}
        self._lock = threading.Lock()

    def beat(self, pulse: Pulse) -> None:
        """See `Live`."""
        with self._lock:
            self._pulses[pulse.worker] = pulse

    def pulses(self) -> tuple[Pulse, ...]:
        """See `Live`."""
        with self._lock:
            return tuple(self._pulses.values())


class FolderLive:
    """One small file per worker."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def beat(self, pulse: Pulse) -> None:
        """See `Live`."""
        if not _KEY.fullmatch(pulse.worker):
            raise ValueError(f"{pulse.worker!r} cannot name a worker")
        self._root.mkdir(parents=True, exist_ok=True)
        if not (self._root / f"{pulse.worker}.json").exists():
            self._forget(pulse.at - FORGOTTEN_AFTER)
        draft = self._root / f"{pulse.worker}.draft"
        draft.write_text(pulse.model_dump_json())
        draft.replace(self._root / f"{pulse.worker}.json")

    def pulses(self) -> tuple[Pulse, ...]:
        """See `Live`; a file that is not a pulse is passed over, since pulses may be lost."""
        found: list[Pulse] = []
        for file in sorted(self._root.glob("*.json")):
            try:
                found.append(Pulse.model_validate_json(file.read_bytes()))
            except (ValidationError, FileNotFoundError):
                continue
        return tuple(found)

    def _forget(self, before: datetime) -> None:
        """Drop the pulses of workers that are long gone, when a new one comes."""
        for pulse in self.pulses():
            if pulse.at < before:
                (self._root / f"{pulse.worker}.json").unlink(missing_ok=True)
