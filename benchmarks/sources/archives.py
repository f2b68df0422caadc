"""Images inside archives, read where they lie: no second copy of what has tens of gigabytes."""

from __future__ import annotations

import errno
import io
import struct
import threading
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from lzma import LZMAError
from pathlib import Path
from typing import BinaryIO, Self

from benchmarks.errors import SubmitterError

DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    struct.error,
    EOFError,
    OSError,
    LookupError,  # not there, or an offset out of the directory
    ValueError,  # also a name that is no text, or a size that is no size
    NotImplementedError,  # an unknown compression
    RuntimeError,  # an encrypted file
    OverflowError,
    MemoryError,  # a size of exabytes
)
"""What the standard library raises for zip archives that are damaged, wherever the damage is."""


class JoinedFiles(io.RawIOBase):
    """Several files read as one, as if they were concatenated in order.

    Args:
        paths: the parts, in order, e.g. `images.zip.part-aa`, `images.zip.part-ab`, ...
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self._files: list[BinaryIO] = [path.open("rb") for path in paths]
        self._ends = list(accumulate(path.stat().st_size for path in paths))
        self._at = 0

    @classmethod
    def over(cls, files: Sequence[BinaryIO], sizes: Sequence[int]) -> Self:
        """Open files of known sizes in bytes, which need not lie on this machine."""
        joined = cls(())
        joined._files, joined._ends = list(files), list(accumulate(sizes))
        return joined

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position of the whole; may lie beyond its end, as in any file."""
        end = self._ends[-1] if self._ends else 0
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: end}[whence]
        if start + offset < 0:
            # As a file does; zipfile asks for the end of archives that are too short to have one.
            raise OSError(errno.EINVAL, "a position before the start")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read up to the end of the part at the current position."""
        part = bisect_right(self._ends, self._at)
        if part == len(self._files):
            return 0
        begin = self._ends[part - 1] if part else 0
        file = self._files[part]
        file.seek(self._at - begin)
        chunk = file.read(min(len(buffer), self._ends[part] - self._at))
        buffer[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)

    def close(self) -> None:
        """Close every part."""
        for file in self._files:
            file.close()
        super().close()


class ZipImages:
    """Files of a zip archive, whole or in parts, read one by one; safe for several threads.

    Args:
        paths: the archive, or its parts in order.

    Raises:
        SubmitterError: `data_malformed`, on first use, where it is no zip archive or is cut short.
    """

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._lock = threading.Lock()

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the files in it."""
        return frozenset(info.filename for info in self._zip.infolist() if not info.is_dir())

    def read(self, name: str) -> bytes:
        """Content of one file.

        Raises:
            SubmitterError: `data_malformed`, where it is not there or damaged.
        """
        try:
            with self._lock:
                return self._zip.read(name)
        except DAMAGED as error:
            raise SubmitterError(
                "data_malformed",
                f"{self} holds no readable {name!r} ({error}).",
                "Fetch the archive again.",
            ) from error

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(io.BufferedReader(JoinedFiles(self._paths)))
        except DAMAGED as error:
            parts = f" (with {len(self._paths)} parts)" if len(self._paths) > 1 else ""
            raise SubmitterError(
                "data_malformed",
                f"{self}{parts} is no complete zip archive: {error}.",
                "A part is missing or cut short; fetch it again.",
            ) from error

    def __str__(self) -> str:
        return str(self._paths[0])
