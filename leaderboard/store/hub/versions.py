"""Files of a repository at given commits, which cannot change any more."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from leaderboard.store.disk import failing
from leaderboard.store.hub.client import HubClient
from leaderboard.store.hub.committing import Draft
from leaderboard.store.hub.downloads import Download
from leaderboard.store.hub.entries import Entry
from leaderboard.store.hub.hub_paths import is_ours
from leaderboard.store.hub.known import ABSENT, Known
from leaderboard.store.hub.shelf import Shelf
from leaderboard.store.interface import NotFoundError


class Versions:
    """Reads at commits, and remembers what it learned of them.

    Args:
        client: of the Hub.
        name: of the repository.
        shelf: contents that were read before.
    """

    def __init__(self, client: HubClient, name: str, shelf: Shelf) -> None:
        self._client = client
        self._name = name
        self._shelf = shelf
        self._known = Known()

    def read(self, path: str, sha: str) -> bytes:
        """The content of a file, control files included."""
        content = self._remembered(path, sha)
        if content is not None:
            return content
        taken: dict[str, bytes] = {}

        def known(oid: str) -> bool:
            content = self._shelf.get(oid)
            if content is not None:
                taken[oid] = content
            return content is not None

        sink = io.BytesIO()
        with self._noting_absence(path, sha):
            oid = Download(self._client, self._name, path, sha).into(sink, known)
        content = taken.get(oid)
        if content is None:
            content = sink.getvalue()
            self._shelf.put(oid, content)
        self._known.set(sha, path, oid)
        return content

    def fetch(self, path: str, sha: str, target: Path) -> None:
        """Copy a file to a new file of this machine, piece by piece."""
        with failing(f"write a copy of {path!r}"), target.open("x+b") as file:
            try:
                with self._noting_absence(path, sha):
                    Download(self._client, self._name, path, sha).into(file)
            except BaseException:
                target.unlink(missing_ok=True)
                raise

    def has(self, path: str, sha: str) -> bool:
        """Whether there is a file of that path."""
        if not is_ours(path):
            return False
        oid = self._known.get(sha, path)
        if oid is None:
            entry = self.entries([path], sha).get(path)
            oid = entry.oid if entry and entry.is_file else ABSENT
            self._known.set(sha, path, oid)
        return oid != ABSENT

    def list(self, prefix: str, sha: str) -> tuple[str, ...]:
        """Paths that begin with `prefix`, sorted."""
        found = self._known.listing(sha, prefix)
        if found is None:
            found = tuple(sorted(path for path in self._walked(prefix, sha) if is_ours(path)))
            self._known.listed(sha, prefix, found)
        return found

    def entries(self, paths: Iterable[str], sha: str) -> dict[str, Entry]:
        """The files and folders at these paths; one request for 500 of them."""
        return self._client.entries(self._name, sorted(set(paths)), sha)

    def keep(self, draft: Draft, parent: str, sha: str) -> None:
        """Remember what was just written, so that nobody has to ask for it."""
        written: dict[str, str] = {}
        for path, content in draft.changes.items():
            if content is None:
                written[path] = ABSENT
            elif isinstance(content, bytes) and len(content) <= self._shelf.largest:
                oid = hashlib.sha256(content).hexdigest()
                written[path] = oid
                self._shelf.put(oid, content)
        self._known.carry(parent, sha, {*draft.changes, *draft.restored}, written)

    def _walked(self, prefix: str, sha: str) -> Iterator[str]:
        """Only the part of the tree that can hold the prefix is asked for."""
        folder, _, beginning = prefix.rpartition("/")
        if not beginning:
            yield from (each.path for each in self._client.tree(self._name, folder, sha))
            return
        for each in self._client.tree(self._name, folder, sha, recursive=False):
            if not each.path.startswith(prefix):
                continue
            if each.is_file:
                yield each.path
            else:
                yield from (each.path for each in self._client.tree(self._name, each.path, sha))

    def _remembered(self, path: str, sha: str) -> bytes | None:
        oid = self._known.get(sha, path)
        if oid == ABSENT:
            raise NotFoundError(path)
        return None if oid is None else self._shelf.get(oid)

    @contextmanager
    def _noting_absence(self, path: str, sha: str) -> Iterator[None]:
        try:
            yield
        except NotFoundError:
            self._known.set(sha, path, ABSENT)
            raise
