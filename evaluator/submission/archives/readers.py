"""Readers of folders, zips and tars: each gives entries, one after the other.

In folders no link is followed and nothing blocks: what was looked at may be something else by the
time it is opened, so each folder and file is opened by its name in the folder that is held open
above it, and never through a link.

A zip is read only if every reader sees the same in it: the list at its end, the headers in front of
its members and the members themselves must tell the same story: contiguous, each byte belonging to
one member, sizes and sums as announced. Members share no bytes, so that what comes out is bounded by
what is there.

Of a tar, plain or compressed with gzip, all that comes out of the compression is counted, headers and
what is left out included, and the reader holds one header at a time.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.entries import (
    PIECE,
    ArchiveLimits,
    Entry,
    bomb,
    crafted,
    is_left_behind,
    printable,
)

_NO_FILE = "is a link, a device or another thing that is no file"


def folder_entries(path: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """The files and folders below a folder: those of one in the order of their names, then below.

    What tools leave behind is not gone into: a `.git` may hold more files than may be counted.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _below(descriptor, "", limits)
    finally:
        os.close(descriptor)


def _below(folder: int, prefix: str, limits: ArchiveLimits) -> Iterator[Entry]:
    """What is in an open folder, and below it; as many folders are held open as it is deep."""
    with os.scandir(folder) as found:
        # One more than may come, so that it is seen to be too many.
        items = sorted(islice(found, limits.members + 1), key=lambda item: item.name)
    for item in items:
        name = prefix + item.name
        is_folder = item.is_dir(follow_symlinks=False)
        fault = "" if is_folder or item.is_file(follow_symlinks=False) else _NO_FILE
        pieces = partial(_file_pieces, item.name, folder)
        yield Entry(name, pieces, is_folder=is_folder, fault=fault)
    for item in items:
        name = prefix + item.name
        is_folder = item.is_dir(follow_symlinks=False)
        if is_folder and not is_left_behind(name) and name.count("/") < limits.depth:
            with _opened_below(item.name, folder, os.O_DIRECTORY) as inner:
                yield from _below(inner, f"{name}/", limits)


def _file_pieces(name: str, folder: int) -> Iterator[bytes]:
    with _opened_below(name, folder, os.O_NONBLOCK) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{name!r} {_NO_FILE}")
        while piece := os.read(descriptor, PIECE):
            yield piece


@contextmanager
def _opened_below(name: str, folder: int, way: int) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | way
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_LOCAL = struct.Struct("<4s5H3L2H")
_END = struct.Struct("<4s4H2LH")
_BIG = 0xFFFFFFFF
_MASKED = 0x1 | 0x20 | 0x40 | 0x2000
_SIZES_FOLLOW = 0x8
_UTF8 = 0x800
_UNICODE_PATH = 0x7075
_FOLLOWING = (0, 12, 16, 20, 24)
"""Bytes that may stand behind a member whose sizes follow it."""
_LISTED_BYTES = 52
"""Of a member in the list at the end at least: 46 and its name. Members may be many or have long
names, not both: each is held while the zip is read."""
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")


def zip_entries(path: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """The members of a zip, in the order of their bytes."""
    with _ZipFileObject.of(path, limits) as file:
        announced = _announced(file, printable(path.name))
        if announced > limits.members:
            raise _too_many(printable(path.name), announced, limits.members)
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            if announced != len(infos):
                raise crafted(
                    printable(path.name), f"lists {len(infos)} members and announces {announced}"
                )
            _check_list(path, infos, limits)
            for info, start in _placed(file, archive, printable(path.name)):
                yield Entry(
                    info.orig_filename.removeprefix("./"),
                    partial(_zip_pieces, file, info, start, printable(path.name)),
                    is_folder=info.orig_filename.endswith("/"),
                    fault=_zip_fault(info),
                )


class _ZipFileObject(io.BufferedReader):
    """A zip on disk. Its list of members is asked for in one piece, which may not be too long."""

    limits = ArchiveLimits()
    archive = ""

    @classmethod
    def of(cls, path: Path, limits: ArchiveLimits) -> Self:
        """Open a zip."""
        file = cls(io.FileIO(path))
        file.limits, file.archive = limits, printable(path.name)
        return file

    def read(self, size: int | None = -1, /) -> bytes:
        """Read, unless more is asked for than any honest zip needs at once."""
        if size is not None and size > self.limits.members * _LISTED_BYTES + _END.size + 0xFFFF:
            raise SubmitterError(
                "too_many_files",
                f"{self.archive} has {size >> 10} kB for the list of its members alone.",
                f"{self.limits.sizes} Leave out what the scorer does not need.",
            )
        return super().read(size)


def _announced(file: io.BufferedReader, archive: str) -> int:
    """How many members the end of the zip announces, after a look at where that end is."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _END.size - 0xFFFF))
    tail = file.read(_END.size + 0xFFFF)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        raise zipfile.BadZipFile("its end is missing, so it is not whole")
    _, disk, first_disk, here, announced, _, _, comment = _END.unpack_from(tail, at)
    if at + _END.size + comment != len(tail):
        raise crafted(archive, "has other bytes behind its end")
    if disk != first_disk or here != announced:
        raise crafted(archive, "is one part of a zip of several parts")
    return _announced_wide(file, archive, size - len(tail) + at, announced)


def _announced_wide(file: io.BufferedReader, archive: str, end: int, announced: int) -> int:
    """The number of members in the wider record in front of the end, where there is one."""
    file.seek(max(0, end - _LOCATOR.size))
    magic, _, place, _ = _LOCATOR.unpack(file.read(_LOCATOR.size))
    if magic != b"PK\6\7":
        return announced
    file.seek(max(0, end - _LOCATOR.size - _END64.size))
    at = file.tell()
    magic, *_, members, _, _ = _END64.unpack(file.read(_END64.size))
    if magic != b"PK\6\6" or at != place:
        raise crafted(archive, "has its end in two places")
    return int(members)


def _check_list(path: Path, infos: list[zipfile.ZipInfo], limits: ArchiveLimits) -> None:
    """Refuse at once what the list alone shows to be too much. It is not believed otherwise."""
    files = [
        info
        for info in infos
        if not info.filename.endswith("/") and not is_left_behind(info.filename)
    ]
    if len(files) > limits.entries:
        raise _too_many(printable(path.name), len(files), limits.entries)
    total = sum(info.file_size for info in files)
    if total > limits.ratio_from and total > limits.ratio * path.stat().st_size:
        raise bomb(printable(path.name), limits.ratio)
    for info in files:
        if info.file_size > limits.file_bytes:
            raise too_large(repr(info.filename[:300]), limits)
    if total > limits.total_bytes:
        raise too_large(printable(path.name), limits)


def _too_many(archive: str, found: int, most: int) -> SubmitterError:
    return SubmitterError(
        "too_many_files",
        f"{archive} holds {found} files; {most} are taken at most.",
        "Leave out what the scorer does not need.",
    )


def too_large(what: str, limits: ArchiveLimits) -> SubmitterError:
    """More bytes come out of an archive than may."""
    return SubmitterError("too_large", f"{what} unpacks to more than is taken.", limits.sizes)


def _placed(
    file: io.BufferedReader, archive: zipfile.ZipFile, name: str
) -> Iterator[tuple[zipfile.ZipInfo, int]]:
    """Every member with the place of its bytes, after a look at how all of them lie."""
    found: list[tuple[zipfile.ZipInfo, int]] = []
    end, loose = 0, False
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        _check_gap(info.header_offset - end, info.orig_filename[:300], name, loose=loose)
        start = _data_start(file, info, name)
        found.append((info, start))
        end, loose = start + info.compress_size, bool(info.flag_bits & _SIZES_FOLLOW)
    _check_gap(archive.start_dir - end, "the list at its end", name, loose=loose)
    yield from found


def _check_gap(gap: int, what: str, archive: str, *, loose: bool) -> None:
    if gap < 0:
        raise crafted(archive, f"has members that share their bytes, before {what!r}")
    if gap and not (loose and gap in _FOLLOWING):
        raise crafted(archive, f"has {gap} bytes that belong to no member, before {what!r}")


def _data_start(file: io.BufferedReader, info: zipfile.ZipInfo, archive: str) -> int:
    """Where a member's bytes begin; its header must say what the list says."""
    file.seek(info.header_offset)
    header = file.read(_LOCAL.size)
    magic, _, flags, method, _, _, crc, packed, size, n_name, n_extra = _LOCAL.unpack(header)
    name, extra = file.read(n_name), file.read(n_extra)
    listed = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")
    if magic != b"PK\3\4" or name != listed or (flags ^ info.flag_bits) & (_UTF8 | 0x1):
        raise crafted(archive, f"calls a member {info.orig_filename[:300]!r} only in its list")
    given = (crc, *_wide(size, packed, extra))
    wanted = (info.CRC, info.file_size, info.compress_size)
    follows = info.flag_bits & _SIZES_FOLLOW
    agrees = all(g == w or (follows and g == 0) for g, w in zip(given, wanted, strict=True))
    if method != info.compress_type or not agrees:
        raise crafted(archive, f"gives {info.orig_filename[:300]!r} two sizes, sums or methods")
    return int(info.header_offset + _LOCAL.size + n_name + n_extra)


def _wide(size: int, packed: int, extra: bytes) -> tuple[int, int]:
    """Sizes of a local header, which stand in an extra field where they need 64 bits."""
    if _BIG not in (size, packed):
        return size, packed
    for kind, data in _extras(extra):
        if kind == 1:
            values = iter(struct.unpack_from(f"<{len(data) // 8}Q", data))
            size, packed = (next(values, -1) if v == _BIG else v for v in (size, packed))
            break
    return size, packed


def _zip_fault(info: zipfile.ZipInfo) -> str:
    mode = stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & _MASKED:
        return "is encrypted or patched; pack it without a password"
    if info.orig_filename.endswith("/"):
        return "is a folder that has bytes" if info.file_size else ""
    if (other := _other_name(info)) is not None:
        return f"is called {other[:300]!r} as well; give it a name of plain letters"
    if mode not in (0, stat.S_IFREG):
        return "is a link, a device or another thing that is no file"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return (
            f"is compressed by method {info.compress_type}, which is not taken; the usual one is "
            "deflate"
        )
    return ""


def _other_name(info: zipfile.ZipInfo) -> str | None:
    """Another name that some readers would take, from an extra field in the list."""
    for kind, data in _extras(info.extra):
        if kind == _UNICODE_PATH:
            # Behind its version and a sum of the name that it stands for.
            name = data[5:].decode("utf-8", "replace")
            return None if name == info.orig_filename else name
    return None


def _extras(extra: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        yield kind, extra[at + 4 : at + 4 + length]
        at += 4 + length


def _zip_pieces(
    file: io.BufferedReader, info: zipfile.ZipInfo, start: int, archive: str
) -> Iterator[bytes]:
    """The bytes of a member, which must end where its header says they do."""
    stored = info.compress_type == zipfile.ZIP_STORED
    raw = _raw(file, start, info.compress_size)
    size = crc = 0
    for piece in raw if stored else _inflated(raw, archive, info.orig_filename[:300]):
        size += len(piece)
        crc = zlib.crc32(piece, crc)
        if size > info.file_size:
            break
        yield piece
    if size != info.file_size:
        raise crafted(archive, f"says {info.orig_filename[:300]!r} had another size than it has")
    if crc != info.CRC:
        raise zipfile.BadZipFile(f"the sum of {info.orig_filename[:300]!r} does not fit")


def _raw(file: io.BufferedReader, start: int, n_bytes: int) -> Iterator[bytes]:
    at, end = start, start + n_bytes
    while at < end:
        file.seek(at)
        piece = file.read(min(PIECE, end - at))
        if not piece:
            raise EOFError("it ends in the middle of a member")
        at += len(piece)
        yield piece


def _inflated(raw: Iterator[bytes], archive: str, name: str) -> Iterator[bytes]:
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    for packed in raw:
        while packed and not engine.eof:
            yield engine.decompress(packed, PIECE)
            packed = engine.unconsumed_tail  # noqa: PLW2901 (what is left of it)
        if engine.eof and (engine.unused_data or packed or next(raw, b"")):
            raise crafted(archive, f"has bytes behind the end of {name!r}")
    while not engine.eof:
        piece = engine.decompress(b"", PIECE)
        if not piece:
            raise EOFError(f"{name!r} is not whole")
        yield piece


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
    """The members of a tar."""
    headers = _Headers(limits, printable(path.name))
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        stream: io.BufferedIOBase | io.RawIOBase = file
        if file.peek(len(GZIP)).startswith(GZIP):
            stream = _Gunzipped(file, limits, printable(path.name))
        bounded = _Bounded(stream, file, limits, printable(path.name))
        archive = stack.enter_context(_opened_tar(path, bounded, headers))
        while (info := archive.next()) is not None:
            # It would keep a header for every member.
            archive.members.clear()  # type: ignore[attr-defined]
            if not info.issparse():
                headers.check(info)  # Once more: an extended header may have changed its size.
            yield Entry(
                info.name.removeprefix("./"),
                partial(_tar_pieces, archive, info),
                is_folder=info.isdir(),
                fault=_tar_fault(info),
            )
        _check_end(archive, headers, printable(path.name))


def _opened_tar(path: Path, bounded: _Bounded, headers: _Headers) -> tarfile.TarFile:
    # As a stream, since seeking in a compressed file inflates what nobody counts.
    try:
        return tarfile.open(fileobj=bounded, mode="r|", tarinfo=headers.member, encoding="utf-8")
    except tarfile.ReadError as error:
        raise SubmitterError(
            "not_an_archive",
            f"{printable(path.name)} is neither a zip nor a tar archive.",
            "Send a .zip, .tar, .tar.gz or .tgz.",
        ) from error


def _tar_fault(info: tarfile.TarInfo) -> str:
    if info.isdir():
        return "is a folder that has bytes" if info.size else ""
    # A sparse file's map may send the reader round and round in it.
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
        return "is a link, a device or a sparse file"
    return ""


def _tar_pieces(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[bytes]:
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
