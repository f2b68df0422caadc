"""Reads a tar, plain or compressed with gzip, as a stream of entries.

All that comes out of the compression is counted, headers and what is left out included, and the
reader holds one header at a time.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.entries import Entry, bomb, crafted
from evaluator.submission.archives.limits import PIECE, ArchiveLimits
from evaluator.submission.archives.names import shown
from evaluator.submission.archives.zips import too_large

GZIP = b"\x1f\x8b"
_GZIP_FORM = 16 + zlib.MAX_WBITS
_PACKED_BYTES = 64 * 1024
_HEADER_BYTES = 8 * 1024
"""Of one extended header, which tarfile reads whole; real ones have some hundred bytes."""
_EXTENDED_HEADERS = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)


def tar_entries(path: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """The members of a tar.

    Raises:
        SubmitterError: `not_an_archive`, `crafted_archive`, `too_many_files`, `too_large`, `bomb`.
        tarfile.TarError: among others, where it is damaged.
    """
    headers = _Headers(limits, shown(path.name))
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        stream: io.BufferedIOBase | io.RawIOBase = file
        if file.peek(len(GZIP)).startswith(GZIP):
            stream = _Gunzipped(file, limits, shown(path.name))
        bounded = _Bounded(stream, file, limits, shown(path.name))
        archive = stack.enter_context(_opened(path, bounded, headers))
        while (info := archive.next()) is not None:
            # It would keep a header for every member.
            archive.members.clear()  # type: ignore[attr-defined]
            if not info.issparse():
                headers.check(info)  # Once more: an extended header may have changed its size.
            yield Entry(
                info.name.removeprefix("./"),
                partial(_pieces, archive, info),
                is_folder=info.isdir(),
                fault=_fault(info),
            )
        _check_end(archive, headers, shown(path.name))


def _opened(path: Path, bounded: _Bounded, headers: _Headers) -> tarfile.TarFile:
    # As a stream, since seeking in a compressed file inflates what nobody counts.
    try:
        return tarfile.open(fileobj=bounded, mode="r|", tarinfo=headers.member, encoding="utf-8")
    except tarfile.ReadError as error:
        raise SubmitterError(
            "not_an_archive",
            f"{shown(path.name)} is neither a zip nor a tar archive.",
            "Send a .zip, .tar, .tar.gz or .tgz.",
        ) from error


def _fault(info: tarfile.TarInfo) -> str:
    if info.isdir():
        return "is a folder that has bytes" if info.size else ""
    # A sparse file's map may send the reader round and round in it.
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
        return "is a link, a device or a sparse file"
    return ""


def _pieces(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[bytes]:
    stream = archive.extractfile(info)
    if stream is None:
        raise tarfile.ReadError(f"{info.name[:300]!r} has no bytes")
    with stream:
        while piece := stream.read(PIECE):
            yield piece


def _check_end(archive: tarfile.TarFile, headers: _Headers, name: str) -> None:
    """Read on behind the last member: only filling may be there."""
    if not headers.ended:
        raise tarfile.ReadError("its end is missing, so it is not whole")
    while piece := archive.fileobj.read(PIECE):
        if piece.strip(b"\0"):
            raise crafted(name, "has other bytes behind its end")


class _Gunzipped(io.RawIOBase):
    """What comes out of a gzip file. Its parts are counted: one takes time, empty as it may be."""

    def __init__(self, file: io.BufferedIOBase, limits: ArchiveLimits, archive: str) -> None:
        self._file = file
        self._limits = limits
        self._archive = archive
        self._parts = 1
        self._part = zlib.decompressobj(_GZIP_FORM)
        self._waiting = b""

    def read(self, size: int = PIECE, /) -> bytes:
        """Inflate at most so many bytes; none where it ends."""
        while True:
            piece = self._part.decompress(self._waiting, size)
            self._waiting = self._part.unconsumed_tail
            if piece:
                return piece
            if self._part.eof:
                if not self._next_part():
                    return b""
            elif not self._waiting:
                self._waiting = self._file.read(_PACKED_BYTES)
                if not self._waiting:
                    raise EOFError("its end is missing, so it is not whole")

    def _next_part(self) -> bool:
        """Go on behind the end of a part and the zeros that may follow it; False at the very end."""
        rest = self._part.unused_data.lstrip(b"\0")
        while not rest:
            packed = self._file.read(_PACKED_BYTES)
            if not packed:
                return False
            rest = packed.lstrip(b"\0")
        self._parts += 1
        if self._parts > self._limits.members:
            raise crafted(self._archive, f"is compressed in more than {self._limits.members} parts")
        self._part, self._waiting = zlib.decompressobj(_GZIP_FORM), rest
        return True


class _Bounded(io.RawIOBase):
    """A decompressed tar that ends in an error when more comes out of it than it may hold."""

    def __init__(
        self,
        stream: io.BufferedIOBase | io.RawIOBase,
        packed: io.BufferedIOBase,
        limits: ArchiveLimits,
        archive: str,
    ) -> None:
        self._stream = stream
        self._packed = packed
        self._limits = limits
        self._archive = archive
        self._out = 0

    def read(self, size: int = -1, /) -> bytes:
        """Read and count."""
        data = self._stream.read(size)
        self._out += len(data)
        limits = self._limits
        if self._out > limits.archive_bytes:
            raise too_large(f"{self._archive}, with all that is left out of it,", limits)
        if self._out > limits.ratio_from and self._out > limits.ratio * self._packed.tell():
            raise bomb(self._archive, limits.ratio)
        return data


@dataclass
class _Headers:
    """Headers of one tar, counted and measured before tarfile reads what belongs to them."""

    limits: ArchiveLimits
    archive: str
    extended: int = 0
    ended: bool = False

    @property
    def member(self) -> type[tarfile.TarInfo]:
        """What tarfile is to read headers with."""
        headers = self

        class Member(tarfile.TarInfo):
            @classmethod
            def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
                headers.ended = bool(buf) and not any(buf)
                try:
                    info = super().frombuf(buf, encoding, errors)
                except tarfile.HeaderError as error:
                    # tarfile would take a broken header for the end and lose what follows.
                    if any(buf):
                        raise tarfile.ReadError(str(error)) from error
                    raise
                headers.check(info)
                return info

            # The map of a sparse file may be as long as the archive, and tarfile would hold it
            # whole. No such file is taken, so what does not stand in its header is not read.

            def _proc_sparse(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
                if self._sparse_structs[1]:  # type: ignore[attr-defined]
                    raise crafted(headers.archive, f"holds a long sparse file, {self.name[:300]!r}")
                return super()._proc_sparse(archive)  # type: ignore[misc,no-any-return]

            def _proc_gnusparse_10(self, following: tarfile.TarInfo, *_: object) -> None:
                following.sparse = b""

        return Member

    def check(self, info: tarfile.TarInfo) -> None:
        """Refuse a header that announces too much."""
        if info.size < 0:
            raise tarfile.ReadError("a file has less than no bytes")
        if info.type in _EXTENDED_HEADERS:
            self.extended += info.size
            if info.size > _HEADER_BYTES or self.extended > (
                self.limits.entries * 1024 + _HEADER_BYTES
            ):
                raise SubmitterError(
                    "too_large",
                    f"{self.archive} has an extended header of {info.size} bytes.",
                    "Pack the folder without extended attributes.",
                )
        elif info.size > self.limits.archive_bytes:
            raise too_large(repr(info.name[:300]), self.limits)
