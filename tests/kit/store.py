"""A store in memory, for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    Store,
    check_clashes,
    check_path,
    check_prefix,
    utc_now,
)
from leaderboard.store.live.interface import MemoryLive


class MemoryRepository:
    """Versioned files in a dictionary; safe among threads."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._version = 0
        self._lock = threading.Lock()

    def head(self) -> str:
        """See `Repository`."""
        return str(self._version)

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        check_path(path)
        with self._lock:
            if path not in self._files:
                raise NotFoundError(path)
            return self._files[path]

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        content = self.read(path)
        with target.open("xb") as file:
            file.write(content)

    def has(self, path: str) -> bool:
        """See `Repository`."""
        check_path(path)
        with self._lock:
            return path in self._files

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        check_prefix(prefix)
        with self._lock:
            return self._below(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`."""
        del message
        for path in changes:
            check_path(path)
        found = {
            path: content.read_bytes() if isinstance(content, Path) else content
            for path, content in changes.items()
            if content is not None
        }
        with self._lock:
            if parent != str(self._version):
                raise ConflictError(parent, str(self._version))
            check_clashes(changes, self._files.__contains__, lambda path: self._below(f"{path}/"))
            for path, content in changes.items():
                if content is None:
                    self._files.pop(path, None)
                else:
                    self._files[path] = found[path]
            self._version += 1
            return str(self._version)

    def _below(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted(path for path in self._files if path.startswith(prefix)))


def memory_store(clock: Callable[[], datetime] = utc_now) -> Store:
    """An empty store in memory."""
    return Store(MemoryRepository(), MemoryRepository(), MemoryLive(), clock)
