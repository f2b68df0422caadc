"""Cache of versions that cannot change any more: ids of files and listings by commit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

ABSENT = ""
"""In place of an id: there is no file at that path."""
_VERSIONS = 16
_PATHS = 50_000
_LISTINGS = 64


class Known:
    """Ids of contents by commit and path, and listings; bounded, safe among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._listings: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()

    def get(self, sha: str, path: str) -> str | None:
        """The id of the content at a path, or ABSENT; None where it is not known."""
        with self._lock:
            if sha not in self._versions:
                return None
            self._versions.move_to_end(sha)
            return self._versions[sha].get(path)

    def set(self, sha: str, path: str, oid: str) -> None:
        """Remember the id of the content at a path, or ABSENT."""
        with self._lock:
            known = self._versions.setdefault(sha, {})
            self._versions.move_to_end(sha)
            if len(known) >= _PATHS:
                known.clear()
            known[path] = oid
            self._drop()

    def carry(
        self, parent: str, sha: str, changed: Iterable[str], written: Mapping[str, str]
    ) -> None:
        """Take over what a commit left as it was.

        Args:
            parent: what it was based on.
            sha: its own id.
            changed: every path it touched.
            written: of these, the ones of which it is known what is there now.
        """
        touched = set(changed)
        with self._lock:
            before = self._versions.get(parent, {})
            kept = {path: oid for path, oid in before.items() if path not in touched}
            self._versions[sha] = {**self._versions.get(sha, {}), **kept, **written}
            self._versions.move_to_end(sha)
            self._drop()

    def listing(self, sha: str, folder: str) -> tuple[str, ...] | None:
        """The files below a folder, if they were listed."""
        with self._lock:
            return self._listings.get((sha, folder))

    def listed(self, sha: str, folder: str, paths: tuple[str, ...]) -> None:
        """Remember the files below a folder."""
        with self._lock:
            self._listings[sha, folder] = paths
            while len(self._listings) > _LISTINGS:
                self._listings.popitem(last=False)

    def _drop(self) -> None:
        while len(self._versions) > _VERSIONS:
            self._versions.popitem(last=False)
