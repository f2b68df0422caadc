"""A store in memory, for tests."""

from __future__ import annotations

import threading

from leaderboard.store.interface import Changes, ConflictError, NotFoundError, Store, check_path
from leaderboard.store.live import MemoryLive


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
        with self._lock:
            if path not in self._files:
                raise NotFoundError(path)
            return self._files[path]

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        with self._lock:
            return tuple(sorted(p for p in self._files if p.startswith(prefix)))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """See `Repository`."""
        del message
        for path in changes:
            check_path(path)
        with self._lock:
            if parent != str(self._version):
                raise ConflictError(parent, str(self._version))
            for path, content in changes.items():
                if content is None:
                    self._files.pop(path, None)
                else:
                    self._files[path] = content
            self._version += 1
            return str(self._version)


def memory_store() -> Store:
    """An empty store in memory."""
    return Store(public=MemoryRepository(), private=MemoryRepository(), live=MemoryLive())
