"""A repository as it will be after a commit, for computing what goes into that commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.errors import PlatformError
from leaderboard.store.interface import Changes, Repository


class Overlay:
    """Files that are not written yet, over those of a repository; takes no commits.

    Args:
        under: the repository.
        over: path to content that replaces what is there.
    """

    def __init__(self, under: Repository, over: Mapping[str, bytes]) -> None:
        self._under = under
        self._over = over

    def head(self) -> str:
        """See `Repository`; that of the repository below."""
        return self._under.head()

    def read(self, path: str) -> bytes:
        """See `Repository`."""
        return self._over[path] if path in self._over else self._under.read(path)

    def fetch(self, path: str, target: Path) -> None:
        """See `Repository`."""
        if path in self._over:
            target.write_bytes(self._over[path])
        else:
            self._under.fetch(path, target)

    def has(self, path: str) -> bool:
        """See `Repository`."""
        return path in self._over or self._under.has(path)

    def list(self, prefix: str = "") -> tuple[str, ...]:
        """See `Repository`."""
        over = {path for path in self._over if path.startswith(prefix)}
        return tuple(sorted(over.union(self._under.list(prefix))))

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        """Refused: commit to the repository itself.

        Raises:
            PlatformError: `read_only`.
        """
        raise PlatformError(
            "read_only",
            f"{message!r} ({len(changes)} files) was to be based on {parent}, in a view.",
        )
