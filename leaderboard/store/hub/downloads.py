"""Download of one file of a repository: streamed, continued after a cut, and checked by its id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import BinaryIO

from benchmarks.errors import TransientError
from benchmarks.sources.client import hf_raise_for_status, httpx
from benchmarks.sources.pins import git_blob_digest
from leaderboard.store.hub.client import HubClient
from leaderboard.store.hub.faults import Asked

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PIECE = 1 << 20


class Download:
    """One file at one commit.

    Args:
        client: of the Hub.
        repo: the repository.
        path: of the file.
        sha: the commit.
    """

    def __init__(self, client: HubClient, repo: str, path: str, sha: str) -> None:
        self._client = client
        self._where = repo, path, sha
        self._asked = Asked(f"read {path!r}", repo, path)
        self._oid = ""

    def into(self, file: BinaryIO, known: Callable[[str], bool] = lambda _: False) -> str:
        """Write the content to an empty file, unless what has this id is at hand.

        Args:
            file: open for reading and writing.
            known: whether a content need not be sent.

        Returns:
            The id of the content; where it was known, the file is left empty.

        Raises:
            NotFoundError: there is no such file.
            TransientError: the Hub or the network; what came is left in the file.
        """
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
