"""Contents that were read once, on this machine's disk, by their own hash, up to a bound."""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from contextlib import suppress
from pathlib import Path

from benchmarks.sources.pins import git_blob_digest


def git_blob_id(content: bytes) -> str:
    """Id of a content as git has it."""
    digest = git_blob_digest(len(content))
    digest.update(content)
    return digest.hexdigest()


def is_content_of(content: bytes, oid: str) -> bool:
    """Whether a content has this id: SHA-256 (64 digits), or that of a git blob (40)."""
    if len(oid) == 64:
        return hashlib.sha256(content).hexdigest() == oid
    return git_blob_id(content) == oid


class Shelf:
    """Files named by the hash of what they hold; safe among threads and processes.

    A content is checked whenever it is taken, so that a damaged file is as good as none. A disk
    that cannot be written costs speed and nothing else. The folder is for its owner alone: it holds
    what people upload, too.

    Args:
        folder: where; made when the first content comes.
        most_bytes: what all files may take; those not used for longest go first.
        largest: bytes of the largest content that is kept.
    """

    def __init__(self, folder: Path, *, most_bytes: int = 1 << 30, largest: int = 64 << 20) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self.largest = largest
        self._lock = threading.Lock()
        self._written = most_bytes  # counted at the first write

    def get(self, oid: str) -> bytes | None:
        """The content of this id, if it is here and whole."""
        file = self._folder / oid
        try:
            content = file.read_bytes()
        except OSError:
            return None
        if not is_content_of(content, oid):
            with suppress(OSError):
                file.unlink()
            return None
        with suppress(OSError):
            os.utime(file)
        return content

    def put(self, oid: str, content: bytes) -> None:
        """Keep a content, if there is room on the disk and it is not too large."""
        if len(content) > min(self.largest, self._most_bytes):
            return
        file = self._folder / oid
        draft = self._folder / f"{oid}.{uuid.uuid4().hex}"
        try:
            if file.exists():
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_bytes(content)
            draft.replace(file)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            return
        self._make_room(len(content))

    def _make_room(self, written: int) -> None:
        """Count, and remove what is over, after each tenth of the bound that was written."""
        with self._lock:
            self._written += written
            if self._written < self._most_bytes // 10:
                return
            self._written = 0
        found: list[tuple[float, int, Path]] = []
        with suppress(OSError):
            for file in self._folder.iterdir():
                with suppress(OSError):
                    told = file.stat()
                    found.append((told.st_mtime, told.st_size, file))
        over = sum(size for _, size, _ in found) - self._most_bytes
        for _, size, file in sorted(found):
            if over <= 0:
                return
            with suppress(OSError):
                file.unlink()
                over -= size
