"""Archives of images: zip files read where they lie, tar files unpacked whole beside themselves."""

from __future__ import annotations

import errno
import io
import os
import shutil
import struct
import tarfile
import threading
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

from benchmarks.errors import SubmitterError
from benchmarks.sources.pins import Unpacked, sha256_of
from benchmarks.sources.remote import LARGEST_IMAGE, translate_disk_errors

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


class ConcatenatedFiles(io.RawIOBase):
    """Several files read as one, as if they were concatenated in order."""

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
    """Files of a zip archive, whole or in parts, read one by one; safe for several threads."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._lock = threading.Lock()

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the files in it."""
        return frozenset(info.filename for info in self._zip.infolist() if not info.is_dir())

    def read(self, name: str) -> bytes:
        """Content of one file."""
        try:
            with self._lock:
                size = self._zip.getinfo(name).file_size
                if size > LARGEST_IMAGE:
                    raise ValueError(f"it has {size:,} bytes, more than {LARGEST_IMAGE:,}")
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
            return zipfile.ZipFile(io.BufferedReader(ConcatenatedFiles(self._paths)))
        except DAMAGED as error:
            parts = f" (with {len(self._paths)} parts)" if len(self._paths) > 1 else ""
            raise SubmitterError(
                "data_malformed",
                f"{self}{parts} is no complete zip archive: {error}.",
                "A part is missing or cut short; fetch it again.",
            ) from error

    def __str__(self) -> str:
        return str(self._paths[0])


CUT_SHORT = (tarfile.TarError, EOFError, zlib.error, LZMAError)
"""What the standard library raises for an archive that is damaged or ends early."""
_CHUNK = 1 << 20


def unpack(archive: Path, keep: Iterable[str]) -> Unpacked:
    """Unpack a tar archive (plain, gz, bz2, xz) into the folder in which it lies.

    It is unpacked into a hidden folder first and moved at the end, so a kill leaves no file half
    written in its place.
    """
    aside = archive.with_name(f".{archive.name}.unpacking")
    with translate_disk_errors(archive.parent):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
    try:
        files = _extract(archive, aside)
        top = sorted(place.name for place in aside.iterdir())
        for name in sorted({*keep, archive.name} & set(top)):
            raise refused(archive, name, "has the name of a file that is kept there")
        with translate_disk_errors(archive.parent):
            for name in top:
                _move(aside / name, archive.parent / name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Unpacked(sha256=sha256_of(archive), files=files, top=top)


def still_unpacked(folder: Path, entry: Unpacked) -> bool:
    """Whether what an archive brought is still there, by the number of files."""
    return sum(_count(folder / name) for name in entry.top) >= entry.files


def members(tar: tarfile.TarFile, archive: object) -> Iterator[tarfile.TarInfo]:
    """The files and folders in an archive, each checked."""
    for member in tar:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name:
            raise refused(archive, member.name, "lies outside the archive's folder")
        if not (member.isreg() or member.isdir()):
            raise refused(archive, member.name, "is a link or a device")
        yield member


def refused(archive: object, name: str, why: str) -> SubmitterError:
    """The error for a member that will not be written."""
    return SubmitterError(
        "archive_refused",
        f"{archive} was not unpacked: its member {name!r} {why}.",
        "The authors' archive holds no such thing; delete this one and fetch it again.",
    )


def cut_short(archive: object, error: object) -> SubmitterError:
    """The error for an archive that does not hold what it should."""
    return SubmitterError(
        "data_malformed",
        f"{archive} is no complete tar archive: {error}.",
        "Delete it and fetch it again.",
    )


def _extract(archive: Path, into: Path) -> int:
    ending = _end_mark_header()
    count = 0
    with _translate_damage(archive), tarfile.open(archive, tarinfo=ending) as tar:
        for member in members(tar, archive):
            with translate_disk_errors(into), _translate_damage(archive):
                tar.extract(member, into, filter="data")
            count += member.isreg()
        # The checksum of the compressed stream stands behind the end mark, where tarfile stops.
        while tar.fileobj is not None and tar.fileobj.read(_CHUNK):
            pass
    if not ending.seen:
        raise cut_short(archive, f"it ends after {count} files without its end mark")
    return count


@contextmanager
def _translate_damage(archive: Path) -> Iterator[None]:
    """Turn what a decoder raises into `data_malformed`; errors of the disk pass."""
    try:
        yield
    except CUT_SHORT as error:
        raise cut_short(archive, error) from error
    except OSError as error:
        if error.errno is not None:
            raise
        # Decoders of gz and bz2 raise a bare OSError; those of the disk have a number.
        raise cut_short(archive, error) from error


class _Ending(tarfile.TarInfo):
    seen = False


def _end_mark_header() -> type[_Ending]:
    """A header class that notes the end mark: without one, tarfile takes a cut for the end."""

    class Noting(_Ending):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                cls.seen = True
            return super().frombuf(buf, encoding, errors)

    return Noting


def _move(source: Path, target: Path) -> None:
    """Move a file or folder; folders that are there already are joined, files replaced."""
    if source.is_dir() and target.is_dir():
        for place in source.iterdir():
            _move(place, target / place.name)
        return
    source.replace(target)


def _count(place: Path) -> int:
    if place.is_file():
        return 1
    return sum(len(files) for _, _, files in os.walk(place))
