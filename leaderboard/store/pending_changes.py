"""A repository as it will be after a commit, for computing what goes into that commit."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.errors import PlatformError
from leaderboard.store.interface import Changes, NotFoundError, Repository


class PendingChanges:
    """Files that are not written yet, over those of a repository; takes no commits."""

    def __init__(self, under: Repository, over: Changes, head: str | None = None) -> None:
        self._under = under
        self._over = over
        self._head = head

    def head(self) -> str:
        """See `Repository`."""
        return self._under.head() if self._head is None else self._head

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        if path not in self._over:
            return self._under.read(path)
        content = self._content(path)
        return content.read_bytes() if isinstance(content, Path) else content

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        if path not in self._over:
            self._under.fetch(path, target)
            return
        content = self._content(path)
        with target.open("xb") as copy:
            if isinstance(content, Path):
                with content.open("rb") as source:
                    shutil.copyfileobj(source, copy, 1 << 20)
            else:
                copy.write(content)

    def has(self, path: str) -> bool:
        """See `Repository`."""
        return self._over[path] is not None if path in self._over else self._under.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        under = (path for path in self._under.list(prefix) if path not in self._over)
        over = (path for path, content in self._over.items() if content is not None)
        return tuple(sorted((*under, *(path for path in over if path.startswith(prefix)))))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """Refused: commit to the repository itself."""
        raise PlatformError(
            "read_only",
            f"{message!r} ({len(changes)} files) was to be based on {parent}, in a view.",
        )

    def _content(self, path: str) -> bytes | Path:
        content = self._over[path]
        if content is None:
            raise NotFoundError(path)
        return content
