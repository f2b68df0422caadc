"""Files of a repository at given commits, which cannot change any more."""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from benchmarks.errors import TransientError
from benchmarks.sources.client import hf_raise_for_status, httpx
from benchmarks.sources.pins import git_blob_digest
from leaderboard.cache import DiskCache
from leaderboard.store.disk import failing
from leaderboard.store.hub.client import Entry, HubClient
from leaderboard.store.hub.faults import HubRequest
from leaderboard.store.hub.layout import is_ours
from leaderboard.store.hub.uploads import PendingCommit
from leaderboard.store.interface import NotFoundError


def is_content_of(content: bytes, oid: str) -> bool:
    """Whether a content has this id: SHA-256 (64 digits), or that of a git blob (40)."""
    digest = hashlib.sha256() if len(oid) == 64 else git_blob_digest(len(content))
    digest.update(content)
    return digest.hexdigest() == oid


ABSENT = ""  # In place of an id: there is no file at that path
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
        """Take over what a commit left as it was."""
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


_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PIECE = 1 << 20


class Download:
    """One file at one commit."""

    def __init__(self, client: HubClient, repo: str, path: str, sha: str) -> None:
        self._client = client
        self._where = repo, path, sha
        self._asked = HubRequest(f"read {path!r}", repo, path)
        self._oid = ""

    def into(self, file: BinaryIO, known: Callable[[str], bool] = lambda _: False) -> str:
        """Write the content to an empty file, unless what has this id is at hand."""
        self._client.tried(self._asked, lambda: self._stream(file, known))
        return self._oid

    def _stream(self, file: BinaryIO, known: Callable[[str], bool]) -> None:
        at, before, self._oid = file.seek(0, 2), self._oid, ""
        asked = {"Range": f"bytes={at}-"} if at else {}

        def enough(reply: httpx.Response) -> bool:
            self._oid = self._oid or _id_of(reply)
            return bool(self._oid) and known(self._oid)

        with self._client.stream(*self._where, asked, enough) as reply:
            if at and reply.status_code == 416:
                _empty(file)
                raise TransientError("cut_short", "The file is shorter than what came of it.")
            if not reply.is_redirect:
                hf_raise_for_status(reply)
            if not self._oid:
                raise TransientError("store_unreachable", "The Hub named no id.", "Try again.")
            if known(self._oid):
                return
            if at and (reply.status_code != 206 or self._oid != before):
                _empty(file)
                if reply.status_code == 206:
                    raise TransientError("cut_short", "The rest that came is of another file.")
            for piece in reply.iter_bytes():  # as it comes: a cut loses nothing held back
                file.write(piece)
        if not _is(file, self._oid):
            _empty(file)
            raise TransientError(
                "store_damaged", f"{self._asked.path!r} came damaged from {self._asked.repo}."
            )


def _id_of(reply: httpx.Response) -> str:
    """The id of the content: what the Hub itself tells comes before what its network tells."""
    told = reply.headers.get("X-Linked-Etag", "")
    if not told and not reply.is_redirect and reply.status_code in {200, 206}:
        told = reply.headers.get("ETag", "")
    found = told.removeprefix("W/").strip('"')
    return found if _OID.fullmatch(found) else ""


def _is(file: BinaryIO, oid: str) -> bool:
    size = file.seek(0, 2)
    digest = hashlib.sha256() if len(oid) == 64 else git_blob_digest(size)
    file.seek(0)
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest() == oid


def _empty(file: BinaryIO) -> None:
    file.seek(0)
    file.truncate()


class FilesAtCommits:
    """Reads at commits, and remembers what it learned of them."""

    def __init__(self, client: HubClient, name: str, cache: DiskCache) -> None:
        self.client = client
        self.name = name
        self._cache = cache
        self._known = Known()

    def read_at(self, path: str, sha: str) -> bytes:
        """The content of a file, control files included."""
        content = self._from_cache(path, sha)
        if content is not None:
            return content
        taken: dict[str, bytes] = {}

        def known(oid: str) -> bool:
            content = self._kept(oid)
            if content is not None:
                taken[oid] = content
            return content is not None

        sink = io.BytesIO()
        with self._noting_absence(path, sha):
            oid = Download(self.client, self.name, path, sha).into(sink, known)
        content = taken.get(oid)
        if content is None:
            content = sink.getvalue()
            self._cache.put(oid, content)
        self._known.set(sha, path, oid)
        return content

    def fetch_at(self, path: str, sha: str, target: Path) -> None:
        """Copy a file to a new file of this machine, piece by piece."""
        with failing(f"write a copy of {path!r}"), target.open("x+b") as file:
            try:
                with self._noting_absence(path, sha):
                    Download(self.client, self.name, path, sha).into(file)
            except BaseException:
                target.unlink(missing_ok=True)
                raise

    def has_at(self, path: str, sha: str) -> bool:
        """Whether there is a file of that path."""
        if not is_ours(path):
            return False
        oid = self._known.get(sha, path)
        if oid is None:
            entry = self.entries_at([path], sha).get(path)
            oid = entry.oid if entry and entry.is_file else ABSENT
            self._known.set(sha, path, oid)
        return oid != ABSENT

    def list_at(self, prefix: str, sha: str) -> tuple[str, ...]:
        """Paths that begin with `prefix`, sorted."""
        found = self._known.listing(sha, prefix)
        if found is None:
            found = tuple(sorted(path for path in self._walked(prefix, sha) if is_ours(path)))
            self._known.listed(sha, prefix, found)
        return found

    def entries_at(self, paths: Iterable[str], sha: str) -> dict[str, Entry]:
        """The files and folders at these paths; one request for 500 of them."""
        return self.client.entries(self.name, sorted(set(paths)), sha)

    def keep(self, draft: PendingCommit, parent: str, sha: str) -> None:
        """Remember what was just written, so that nobody has to ask for it."""
        written: dict[str, str] = {}
        for path, content in draft.changes.items():
            if content is None:
                written[path] = ABSENT
            elif isinstance(content, bytes) and len(content) <= self._cache.largest:
                oid = hashlib.sha256(content).hexdigest()
                written[path] = oid
                self._cache.put(oid, content)
        self._known.carry(parent, sha, {*draft.changes, *draft.restored}, written)

    def _walked(self, prefix: str, sha: str) -> Iterator[str]:
        """Only the part of the tree that can hold the prefix is asked for."""
        folder, _, beginning = prefix.rpartition("/")
        if not beginning:
            yield from (each.path for each in self.client.tree(self.name, folder, sha))
            return
        for each in self.client.tree(self.name, folder, sha, recursive=False):
            if not each.path.startswith(prefix):
                continue
            if each.is_file:
                yield each.path
            else:
                yield from (each.path for each in self.client.tree(self.name, each.path, sha))

    def _from_cache(self, path: str, sha: str) -> bytes | None:
        oid = self._known.get(sha, path)
        if oid == ABSENT:
            raise NotFoundError(path)
        return None if oid is None else self._kept(oid)

    def _kept(self, oid: str) -> bytes | None:
        """The content of this id, if it is here and whole: a damaged file is as good as none."""
        content = self._cache.get(oid)
        if content is not None and not is_content_of(content, oid):
            self._cache.drop(oid)
            return None
        return content

    @contextmanager
    def _noting_absence(self, path: str, sha: str) -> Iterator[None]:
        try:
            yield
        except NotFoundError:
            self._known.set(sha, path, ABSENT)
            raise
