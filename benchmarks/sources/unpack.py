"""Tar archives, unpacked beside themselves: whole or not at all, and never outside their folder."""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import Self

from benchmarks.errors import SubmitterError
from benchmarks.sources.faults import disk_told_clearly
from benchmarks.sources.hashing import sha256_of
from benchmarks.sources.pins import Unpacked

CUT_SHORT = (tarfile.TarError, EOFError, zlib.error, LZMAError)
"""What the standard library raises for an archive that is damaged or ends early."""
_CHUNK = 1 << 20


def unpack(archive: Path, keep: Iterable[str]) -> Unpacked:
    """Unpack a tar archive (plain, gz, bz2, xz) into the folder in which it lies.

    It is unpacked into a hidden folder first and moved at the end, so a kill leaves no file half
    written in its place.

    Args:
        archive: the archive.
        keep: names in its folder that it must not bring: the declared files and the pins.

    Raises:
        SubmitterError: `archive_refused` (a path outside, a link, a device), `data_malformed` (no
            archive, or cut short) or `disk_full`.
    """
    aside = archive.with_name(f".{archive.name}.unpacking")
    with disk_told_clearly(archive.parent):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
    try:
        files = _extract(archive, aside)
        top = sorted(place.name for place in aside.iterdir())
        for name in sorted({*keep, archive.name} & set(top)):
            raise refused(archive, name, "has the name of a file that is kept there")
        with disk_told_clearly(archive.parent):
            for name in top:
                _move(aside / name, archive.parent / name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Unpacked(sha256=sha256_of(archive), files=files, top=top)


def still_unpacked(folder: Path, entry: Unpacked) -> bool:
    """Whether what an archive brought is still there, by the number of files."""
    return sum(_count(folder / name) for name in entry.top) >= entry.files


def members(tar: tarfile.TarFile, archive: object) -> Iterator[tarfile.TarInfo]:
    """The files and folders in an archive, each checked.

    Raises:
        SubmitterError: `archive_refused`.
    """
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
    ending = _ending()
    count = 0
    with _damage_told_clearly(archive), tarfile.open(archive, tarinfo=ending) as tar:
        for member in members(tar, archive):
            with disk_told_clearly(into), _damage_told_clearly(archive):
                tar.extract(member, into, filter="data")
            count += member.isreg()
        # The checksum of the compressed stream stands behind the end mark, where tarfile stops.
        while tar.fileobj is not None and tar.fileobj.read(_CHUNK):
            pass
    if not ending.seen:
        raise cut_short(archive, f"it ends after {count} files without its end mark")
    return count


@contextmanager
def _damage_told_clearly(archive: Path) -> Iterator[None]:
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


def _ending() -> type[_Ending]:
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
