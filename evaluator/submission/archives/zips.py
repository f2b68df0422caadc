"""Reads a zip as a stream of entries, and only one of which every reader sees the same.

The list at the end of a zip, the headers in front of its members and the members themselves must
tell the same story: contiguous, each byte belonging to one member, sizes and sums as announced.
Members share no bytes, so that what comes out is bounded by what is there.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Self

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.entries import Entry, bomb, crafted
from evaluator.submission.archives.limits import PIECE, ArchiveLimits
from evaluator.submission.archives.names import is_left_behind, shown

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
    """The members of a zip, in the order of their bytes.

    Raises:
        SubmitterError: `crafted_archive`, `too_many_files`, `too_large`, `bomb`.
        zipfile.BadZipFile: among others, where it is damaged.
    """
    with _ZipFileObject.of(path, limits) as file:
        announced = _announced(file, shown(path.name))
        if announced > limits.members:
            raise _too_many(shown(path.name), announced, limits.members)
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            if announced != len(infos):
                raise crafted(
                    shown(path.name), f"lists {len(infos)} members and announces {announced}"
                )
            _check_list(path, infos, limits)
            for info, start in _placed(file, archive, shown(path.name)):
                yield Entry(
                    info.orig_filename.removeprefix("./"),
                    partial(_pieces, file, info, start, shown(path.name)),
                    is_folder=info.orig_filename.endswith("/"),
                    fault=_fault(info),
                )


class _ZipFileObject(io.BufferedReader):
    """A zip on disk. Its list of members is asked for in one piece, which may not be too long."""

    limits = ArchiveLimits()
    archive = ""

    @classmethod
    def of(cls, path: Path, limits: ArchiveLimits) -> Self:
        """Open a zip."""
        file = cls(io.FileIO(path))
        file.limits, file.archive = limits, shown(path.name)
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
        raise _too_many(shown(path.name), len(files), limits.entries)
    total = sum(info.file_size for info in files)
    if total > limits.ratio_from and total > limits.ratio * path.stat().st_size:
        raise bomb(shown(path.name), limits.ratio)
    for info in files:
        if info.file_size > limits.file_bytes:
            raise too_large(repr(info.filename[:300]), limits)
    if total > limits.total_bytes:
        raise too_large(shown(path.name), limits)


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


def _fault(info: zipfile.ZipInfo) -> str:
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


def _pieces(
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
