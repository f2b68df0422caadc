"""Uploads: files as the client takes them, so that large ones travel by plain HTTP."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete

from leaderboard.store.interface import Changes

Operation = CommitOperationAdd | CommitOperationCopy | CommitOperationDelete


class FileOnDemand(io.BufferedIOBase):
    """A file that is open only while it is read, so that a commit may hold thousands of them.

    The client sends file objects by HTTP in one piece of the commit; paths and bytes it would hand
    to another service, outside the commit.

    Args:
        path: of the file.
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
    """The operations of a commit: deletions first, since a file may give way to a folder.

    Args:
        changes: path to new content, or None to delete what is there.
        restored: path to the commit whose version of it is put back.

    Raises:
        OSError: a file that is to be sent cannot be read.
    """
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
