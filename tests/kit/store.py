"""A store in memory, for tests, and repositories in which a test counts or steps in."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from leaderboard.store.interface import (
    Changes,
    ConflictError,
    NotFoundError,
    Repository,
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
        return str(self._version)

    def read(self, path: str) -> bytes:
        check_path(path)
        with self._lock:
            if path not in self._files:
                raise NotFoundError(path)
            return self._files[path]

    def fetch(self, path: str, target: Path) -> None:
        content = self.read(path)
        with target.open("xb") as file:
            file.write(content)

    def has(self, path: str) -> bool:
        check_path(path)
        with self._lock:
            return path in self._files

    def list(self, prefix: str = "") -> tuple[str, ...]:
        check_prefix(prefix)
        with self._lock:
            return self._below(prefix)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        del message
        for path in changes:
            check_path(path)
        contents = {
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
                    self._files[path] = contents[path]
            self._version += 1
            return str(self._version)

    def copy(self) -> MemoryRepository:
        """The same version of the same files, which goes its own way."""
        other = MemoryRepository()
        with self._lock:
            other._files, other._version = dict(self._files), self._version
        return other

    def _below(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted(path for path in self._files if path.startswith(prefix)))


def memory_store(clock: Callable[[], datetime] = utc_now) -> Store:
    """An empty store in memory."""
    return Store(MemoryRepository(), MemoryRepository(), MemoryLive(), clock)


def copy_of(store: Store) -> Store:
    """A store in memory with the same files, which goes its own way, and no heartbeats."""
    public: Any = store.public
    private: Any = store.private
    return replace(store, public=public.copy(), private=private.copy(), live=MemoryLive())


def put(repository: Repository, changes: Changes) -> str:
    """Commit to the newest version."""
    return repository.commit(changes, parent=repository.head(), message="m")


def contents(repository: Repository) -> dict[str, bytes]:
    return {path: repository.read(path) for path in repository.list()}


class Counting:
    """A repository that counts what it is asked, and notes paths read and messages of commits."""

    def __init__(self, under: Repository) -> None:
        self._under = under
        self.asked: Counter[str] = Counter()
        self.paths: list[str] = []
        self.messages: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._under, name)

        def counted(*words: Any, **more: Any) -> Any:
            self.asked[name] += 1
            if name == "read":
                self.paths.append(words[0])
            elif name == "commit":
                self.messages.append(more["message"])
            return method(*words, **more)

        return counted

    def forget(self) -> None:
        """Count from here."""
        self.asked.clear()
        self.paths.clear()
        self.messages.clear()

    def below(self, prefix: str) -> list[str]:
        """Files read whose paths begin so."""
        return [path for path in self.paths if path.startswith(prefix)]


def counted(store: Store) -> tuple[Store, Counting, Counting]:
    """The same store, counting; with its public and its private side."""
    public: Any = Counting(store.public)
    private: Any = Counting(store.private)
    return replace(store, public=public, private=private), public, private


class Meddled:
    """A repository in which somebody acts once, just before or after a commit of such a message."""

    def __init__(
        self,
        under: Repository,
        act: Callable[[], object] | None = None,
        message: str = "",  # how the message of the commit begins
        *,
        after: bool = False,
    ) -> None:
        self.under, self.act = under, act
        self._message, self._after = message, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        act, version = self.act, ""
        if act is None or not message.startswith(self._message):
            return self.under.commit(changes, parent=parent, message=message)
        self.act = None
        if self._after:
            version = self.under.commit(changes, parent=parent, message=message)
        act()
        return version or self.under.commit(changes, parent=parent, message=message)
