"""Operations of a commit, and the description that names it."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete

from leaderboard.store.interface import Changes

_LONGEST = 8000
_NONCE = re.compile(r"[0-9a-f]{32}")


def new_nonce() -> str:
    """A name for one commit that no other has."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class PendingCommit:
    """A commit that is to be made."""

    changes: Changes  # path to content, control files included; what is deleted must be there
    title: str  # first line of its message
    # path to the commit whose version of it is put back
    restored: Mapping[str, str] = field(default_factory=dict)
    nonce: str = field(default_factory=new_nonce)  # its name; no other commit has it
    message: str = ""  # all of it, where the title is not


@dataclass(frozen=True, slots=True)
class Described:
    """One commit of a history."""

    sha: str  # its id
    nonces: frozenset[str] = frozenset()  # of the commits that it is, or that were squashed into it
    # all that it changed; None where it does not say, or not all
    paths: tuple[str, ...] | None = None


def describe(nonce: str, paths: Iterable[str], message: str = "") -> str:
    """The description of a commit."""
    said = f"{message}\n\n" if message else ""
    text = json.dumps({"nonce": nonce, "paths": sorted(paths)}, ensure_ascii=True)
    return said + (text if len(text) <= _LONGEST else json.dumps({"nonce": nonce}))


def describe_squashed(nonces: Sequence[str]) -> str:
    """What a squashed history says: whose answers may still be under way finds itself here."""
    return "History squashed\n\n" + json.dumps({"nonces": list(nonces)})


def described(sha: str, title: str, message: str) -> Described:
    """A commit as its title and message tell it; anybody's may hold anything."""
    for text in (message, title):
        at = text.rfind('{"nonce')
        try:
            told = json.loads(text[at:]) if at >= 0 else None
        except ValueError:
            continue
        if isinstance(told, dict):
            return Described(sha, _nonces(told), _paths(told))
    return Described(sha)


def _nonces(told: dict[str, object]) -> frozenset[str]:
    listed = told.get("nonces")
    found = [told.get("nonce"), *(listed if isinstance(listed, list) else [])]
    return frozenset(each for each in found if isinstance(each, str) and _NONCE.fullmatch(each))


def _paths(told: dict[str, object]) -> tuple[str, ...] | None:
    listed = told.get("paths")
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        return None
    return tuple(listed)


Operation = CommitOperationAdd | CommitOperationCopy | CommitOperationDelete


class FileOnDemand(io.BufferedIOBase):
    """A file that is open only while it is read, so that a commit may hold thousands of them.

    The client sends file objects by HTTP in one piece of the commit; paths and bytes it would hand
    to another service, outside the commit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = path.stat().st_size
        self._at = 0
        self._file: BinaryIO | None = None

    def readable(self) -> bool:
        """See `io.IOBase`."""
        return True

    def seekable(self) -> bool:
        """See `io.IOBase`."""
        return True

    def tell(self) -> int:
        """See `io.IOBase`."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """See `io.IOBase`."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._shut()
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """See `io.BufferedIOBase`."""
        if self._file is None:
            self._file = self._path.open("rb")
            self._file.seek(self._at)
        wanted = -1 if size is None else size
        found = self._file.read(wanted)
        self._at += len(found)
        if wanted < 0 or len(found) < wanted:
            self._shut()
        return found

    def close(self) -> None:
        """See `io.IOBase`."""
        self._shut()
        super().close()

    def _shut(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def operations(changes: Changes, restored: Mapping[str, str]) -> list[Operation]:
    """The operations of a commit: deletions first, since a file may give way to a folder."""
    gone = [CommitOperationDelete(path, is_folder=False) for path in _deleted(changes)]
    copied = [
        CommitOperationCopy(path, path, src_revision=commit) for path, commit in restored.items()
    ]
    added = [
        CommitOperationAdd(path, _opened(content))
        for path, content in changes.items()
        if content is not None
    ]
    return [*gone, *copied, *added]


def in_rounds(additions: Sequence[CommitOperationAdd]) -> list[list[CommitOperationAdd]]:
    """The first of each content, and then the others: their contents are there already by then.

    Of equal contents the client would send one and the same file object in two threads at once.
    """
    firsts = {each.upload_info.sha256: each for each in reversed(additions)}
    others = [each for each in additions if firsts[each.upload_info.sha256] is not each]
    return [part for part in (list(firsts.values()), others) if part]


@lru_cache(maxsize=1)
def hush() -> None:
    """Drop the client's note that a file object goes by HTTP: that is what it is meant to do."""
    logger = logging.getLogger("huggingface_hub._commit_api")
    logger.addFilter(lambda record: "binary IO buffer" not in record.getMessage())


def _deleted(changes: Changes) -> list[str]:
    return [path for path, content in changes.items() if content is None]


def _opened(content: bytes | Path) -> BinaryIO:
    if isinstance(content, Path):
        return cast(BinaryIO, FileOnDemand(content))
    return io.BytesIO(content)
