"""Entries of a submitted folder, zip or tar: their limits, their names, what reads them, and damage.

In folders no link is followed and nothing blocks: what was looked at may be something else by the
time it is opened, so each folder and file is opened by its name in the folder that is held open
above it, and never through a link.

A zip is read by the standard library, within bounds that its list of members shows before anything
is inflated. Two readers might see different things in it, but only what comes out here counts: it is
hashed and packed anew.

Of a tar, plain or compressed with gzip, all that comes out of the compression is counted, headers and
what is left out included, and the reader holds one header at a time.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Self, TypeVar

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.problems import Problem

PIECE = 1 << 20
"""Most that is held of one file at a time, in bytes."""

_JUNK_FACTOR = 20
_MEMBER_OVERHEAD = 4096


@dataclass(frozen=True)
class ArchiveLimits:
    """How much an archive may hold."""

    entries: int = 2000  # files that are kept
    file_bytes: int = 1 << 30  # of one file
    total_bytes: int = 1 << 30  # of all files together
    depth: int = 16  # parts of a path, the file's own name included
    name_bytes: int = 240  # of a path, in UTF-8
    ratio: int = 200  # bytes that may come out of one byte of the archive
    # bytes from which on the ratio counts; small files of zeros are honest
    ratio_from: int = 64 << 20
    problems: int = 100  # that are told one by one; the rest are counted
    weights_header_bytes: int = 2 << 20  # of the header of a safetensors file

    @property
    def members(self) -> int:
        """Folders, headers and what tools left behind count here, not in `entries`."""
        return self.entries * _JUNK_FACTOR

    @property
    def archive_bytes(self) -> int:
        """Of the archive itself, and of all that comes out of it, with headers and leftovers."""
        return self.total_bytes + self.entries * _MEMBER_OVERHEAD + PIECE

    @property
    def sizes(self) -> str:
        """What is allowed, in a sentence."""
        return (
            f"One file may have {mb(self.file_bytes)}, all together {mb(self.total_bytes)}, "
            f"and there may be {self.entries} files."
        )


def mb(n_bytes: int) -> str:
    """A number of bytes as people say it."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{n_bytes} bytes"


_LEFT_FOLDERS = frozenset(
    {
        "__pycache__",
        "__MACOSX",
        ".git",
        ".hg",
        ".svn",
        ".cache",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    }
)
_LEFT_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
_COMPILED = (".pyc", ".pyo")
_MOST_SHOWN = 120
"""Characters of a name in a message."""
_NOT_ON_WINDOWS = re.compile(r'[<>:"|?*\\]')
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)
_INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # fillers and joiners that are counted as letters
    + "".join(map(chr, range(0xFE00, 0xFE10)))  # selectors of a letter's variant
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)


def is_left_behind(name: str) -> bool:
    """Whether it is what tools leave behind and nobody means to send; it is left out.

    Compiled Python is among it: it could run in place of the source beside it.
    """
    parts = PurePosixPath(name).parts
    if not parts:
        return False
    last = parts[-1]
    return (
        bool(_LEFT_FOLDERS.intersection(parts))
        or last in _LEFT_FILES
        or last.startswith("._")
        or last.lower().endswith(_COMPILED)
    )


def name_problem(name: str, limits: ArchiveLimits) -> Problem | None:
    """What is wrong with a file's path, if anything."""
    for fault, hint in _name_faults(name, limits):
        return Problem(
            "unsafe_name", f"The name {_cut(name)!r} {fault}.", hint, file=printable(name)
        )
    return None


def _name_faults(name: str, limits: ArchiveLimits) -> Iterator[tuple[str, str]]:
    """What is wrong with a name and what to do; the first matters, the rest may follow from it."""
    path = PurePosixPath(name)
    if any(_is_odd(c) for c in name):
        yield (
            "holds control, invisible or undecodable characters",
            "Rename that file with letters, digits and . _ - only.",
        )
    if not unicodedata.is_normalized("NFC", name):
        yield (
            "holds unnormalised characters, which other disks keep as others",
            "Rename that file without accents, or with composed ones (Unicode NFC).",
        )
    drive = len(name) > 1 and name[0].isalpha() and name[1] == ":"
    if name.startswith(("/", "~")) or ".." in path.parts or "\\" in name or drive:
        yield "leads out of the archive", "Use relative names with / between folders."
    if not path.parts or path.as_posix() != name:
        yield "is not the plain path of a file", "Rename that file."
    if any(map(_windows_cannot_keep, path.parts)):
        yield (
            "cannot be kept by Windows",
            'Leave out < > : " | ? * and names like CON or NUL, and dots or spaces at the end.',
        )
    if len(name.encode(errors="replace")) > limits.name_bytes or len(path.parts) > limits.depth:
        yield (
            "is too long or too deep",
            f"A path may have {limits.name_bytes} bytes and {limits.depth} parts.",
        )


def clash_key(name: str) -> str:
    """The same for names that are one file on some disk, or one module to Python."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def parents(name: str) -> Iterator[str]:
    """The folders a file lies in, the nearest first."""
    return (parent.as_posix() for parent in PurePosixPath(name).parents if parent.parts)


def printable(name: str) -> str:
    """A name as it may stand in a list of problems: escaped, and not too long."""
    cut = _cut(name)
    return cut if cut.isprintable() else repr(cut)[1:-1]


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_SHOWN else f"{name[: _MOST_SHOWN - 1]}…"


def _is_odd(character: str) -> bool:
    category = unicodedata.category(character)
    return (
        category[0] == "C" or (category[0] == "Z" and character != " ") or character in _INVISIBLE
    )


def _windows_cannot_keep(part: str) -> bool:
    stem = part.partition(".")[0].rstrip(" ")
    return bool(
        part.endswith((".", " ")) or _NOT_ON_WINDOWS.search(part) or _DEVICES.fullmatch(stem)
    )


T = TypeVar("T")

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    # What the readers of the standard library let through of a crafted file: odd numbers and
    # texts, methods they do not know, headers nested too deep.
    ValueError,
    LookupError,
    OverflowError,
    RuntimeError,
)


@dataclass(frozen=True)
class Entry:
    """One thing that stands in a submission."""

    name: str  # as it is written there
    # reads its bytes, a bounded number at a time; valid until the next entry
    pieces: Callable[[], Iterator[bytes]] = lambda: iter(())
    is_folder: bool = False  # it is a folder and has no bytes
    # why it is no plain file, as the end of a sentence that begins with its name; empty where it is
    # one
    fault: str = ""


def reading(items: Iterator[T], archive: str) -> Iterator[T]:
    """The same items; whatever a damaged or crafted file makes its reader say is told in our words."""
    while True:
        try:
            item = next(items)
        except StopIteration:
            return
        except _DAMAGE as error:
            raise _unreadable(error, archive) from error
        yield item


def crafted(archive: str, fault: str) -> SubmitterError:
    """An archive of which two readers would see different things."""
    return SubmitterError(
        "crafted_archive",
        f"{archive} {fault}.",
        "Pack the folder again with an ordinary tool (zip -r, tar czf).",
    )


def bomb(archive: str, ratio: int) -> SubmitterError:
    """An archive that grows beyond measure."""
    return SubmitterError(
        "bomb",
        f"{archive} grows to more than {ratio} times its size while unpacking.",
        "Leave out what is empty or repeated; weights hardly shrink.",
    )


def too_large(what: str, limits: ArchiveLimits) -> SubmitterError:
    """More bytes come out of an archive than may."""
    return SubmitterError("too_large", f"{what} unpacks to more than is taken.", limits.sizes)


def too_many(archive: str, most: str) -> SubmitterError:
    """More files are in an archive than may."""
    return SubmitterError(
        "too_many_files",
        f"{archive} holds more than {most}.",
        "Leave out what the scorer does not need.",
    )


def _unreadable(error: Exception, archive: str) -> SubmitterError | TransientError:
    # EINVAL: it was asked for a place that no file has.
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        if isinstance(error, PermissionError):
            return SubmitterError(
                "unreadable",
                f"{archive} cannot be read: {error.strerror}.",
                "Let this user read it and all that is in it.",
            )
        return TransientError(
            "disk_failed", f"{archive} could not be read: {error.strerror}.", "Try again."
        )
    return SubmitterError(
        "damaged_archive",
        f"{archive} is damaged: {str(error)[:200] or type(error).__name__}.",
        "Pack it again and upload it whole.",
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


_MASKED = 0x1 | 0x20 | 0x40 | 0x2000
_LISTED_BYTES = 52
"""Of a member in the list at the end at least: 46 and its name. Members may be many or have long
names, not both: each is held while the zip is read."""


def zip_entries(path: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """The members of a zip, as the list at its end has them.

    No member gives more bytes than the list says, so that the list shows at once what is too much.
    """
    with _ZipFileObject(path) as file:
        file.most = max(PIECE, limits.members * _LISTED_BYTES)
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            _check_list(path, infos, limits)
            for info in infos:
                yield Entry(
                    info.orig_filename.removeprefix("./"),
                    partial(_member_pieces, archive.open, info),
                    is_folder=info.orig_filename.endswith("/"),
                    fault=_zip_fault(info),
                )


class _ZipFileObject(io.FileIO):
    """A zip on disk. Its list of members is asked for in one piece, which may not be too long."""

    most = PIECE

    def read(self, size: int | None = -1, /) -> bytes:
        """Read, unless more is asked for than any honest zip needs at once."""
        if size is not None and size > self.most:
            raise too_many(printable(Path(self.name).name), f"{mb(self.most)} in its list of files")
        return super().read(size)


def _check_list(path: Path, infos: Sequence[zipfile.ZipInfo], limits: ArchiveLimits) -> None:
    """Refuse at once what the list alone shows to be too much, or to lie nowhere."""
    name, n_bytes = printable(path.name), path.stat().st_size
    if any(info.header_offset < 0 for info in infos):
        raise zipfile.BadZipFile("its list is not where it says")
    files = [
        info
        for info in infos
        if not info.filename.endswith("/") and not is_left_behind(info.filename)
    ]
    for found, most in ((len(infos), limits.members), (len(files), limits.entries)):
        if found > most:
            raise too_many(name, f"{most} files")
    total = sum(info.file_size for info in files)
    if total > limits.ratio_from and total > limits.ratio * n_bytes:
        raise bomb(name, limits.ratio)
    for info in files:
        if info.file_size > limits.file_bytes:
            raise too_large(repr(info.filename[:300]), limits)
    if total > limits.total_bytes:
        raise too_large(name, limits)
    if sum(info.compress_size for info in infos) > n_bytes:
        # Each takes the time of its compressed bytes, however often they count.
        raise zipfile.BadZipFile("its files lie over one another")


def _zip_fault(info: zipfile.ZipInfo) -> str:
    if info.flag_bits & _MASKED:
        return "is encrypted or patched; pack it without a password"
    if info.orig_filename.endswith("/"):
        return "is a folder that has bytes" if info.file_size else ""
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        return _NO_FILE
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return (
            f"is compressed by method {info.compress_type}, which is not taken; the usual one is "
            "deflate"
        )
    return ""


def _member_pieces(opened: Callable[[T], IO[bytes] | None], info: T) -> Iterator[bytes]:
    with opened(info) or io.BytesIO() as member:
        while piece := member.read(PIECE):
            yield piece


GZIP = b"\x1f\x8b"
_GZIP_FORM = 16 + zlib.MAX_WBITS
_HEADER_BYTES = 8 * 1024
"""Of one extended header, which tarfile reads whole; real ones have some hundred bytes."""
_NESTED_HEADERS = 8
"""Extended headers of one member: one or two are usual; each takes what the one before said."""
_EXTENDED_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_SPARSE_GOES_ON = 482
"""Place in a header of what says that blocks with more of a sparse file's map follow."""


def tar_entries(path: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """The members of a tar, read as a stream: seeking in a compressed file inflates uncounted."""
    name = printable(path.name)
    with ExitStack() as stack:
        stream = _TarStream(stack.enter_context(path.open("rb")), limits, name)
        header = _header_type(limits, name)
        try:
            archive = stack.enter_context(
                tarfile.open(fileobj=stream, mode="r|", tarinfo=header, encoding="utf-8")
            )
        except tarfile.ReadError as error:
            raise SubmitterError(
                "not_an_archive",
                f"{name} is neither a zip nor a tar archive.",
                "Send a .zip, .tar, .tar.gz or .tgz.",
            ) from error
        while (info := archive.next()) is not None:
            # It would keep a header for every member, and copy for each what is said of all.
            archive.members.clear()  # type: ignore[attr-defined]
            archive.pax_headers = {}
            if not info.issparse():
                _check_size(info, limits)  # Once more: an extended header may have changed it.
            yield Entry(
                info.name.removeprefix("./"),
                partial(_member_pieces, archive.extractfile, info),
                is_folder=info.isdir(),
                fault=_tar_fault(info),
            )
        while rest := archive.fileobj.read(PIECE):
            if rest.strip(b"\0"):
                raise crafted(name, "has other bytes behind its end")


class _TarStream(io.RawIOBase):
    """A tar, decompressed; more than it may hold is an error."""

    def __init__(self, file: io.BufferedReader, limits: ArchiveLimits, archive: str) -> None:
        self._file = file
        self._limits = limits
        self._archive = archive
        plain = iter(partial(file.read, tarfile.RECORDSIZE), b"")
        self._pieces = self._inflated() if file.peek(len(GZIP)).startswith(GZIP) else plain
        self._out = 0

    def read(self, _size: int = -1, /) -> bytes:
        """The next bytes, however many are asked for; none where it ends."""
        data = next(self._pieces, b"")
        self._out += len(data)
        limits = self._limits
        if self._out > limits.archive_bytes:
            raise too_large(f"{self._archive}, with all that is left out of it,", limits)
        if self._out > limits.ratio_from and self._out > limits.ratio * self._file.tell():
            raise bomb(self._archive, limits.ratio)
        return data

    def _inflated(self) -> Iterator[bytes]:
        """What comes out of gzip. Its parts are counted: one takes time, empty as it may be."""
        packed = b""
        for _ in range(self._limits.members):
            part = zlib.decompressobj(_GZIP_FORM)
            while not part.eof:
                if not (packed := packed or self._file.read(tarfile.RECORDSIZE)):
                    raise EOFError("its end is missing, so it is not whole")
                try:
                    piece = part.decompress(packed, tarfile.RECORDSIZE)
                except zlib.error as error:  # tarfile would say that it is no tar.
                    raise gzip.BadGzipFile(str(error)) from error
                if piece:
                    yield piece
                packed = part.unconsumed_tail
            packed = part.unused_data.lstrip(b"\0")  # Zeros may follow a part.
            while not packed:
                if not (packed := self._file.read(tarfile.RECORDSIZE)):
                    return
                packed = packed.lstrip(b"\0")
        raise crafted(self._archive, f"is compressed in more than {self._limits.members} parts")


def _header_type(limits: ArchiveLimits, archive: str) -> type[tarfile.TarInfo]:
    """What tarfile reads headers with: measured before it reads what belongs to them."""
    extended = nested = 0

    class Header(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal extended, nested
            try:
                info = super().frombuf(buf, encoding, errors)
            except tarfile.HeaderError as error:
                # tarfile would take a broken header for the end and lose what follows.
                if buf != bytes(tarfile.BLOCKSIZE):
                    why = str(error) if buf else "its end is missing, so it is not whole"
                    raise tarfile.ReadError(why) from error
                raise
            _check_size(info, limits)
            if info.type == tarfile.GNUTYPE_SPARSE and buf[_SPARSE_GOES_ON]:
                raise crafted(archive, f"holds a long sparse file, {info.name[:300]!r}")
            nested = nested + 1 if info.type in _EXTENDED_HEADERS else 0
            if nested > _NESTED_HEADERS:
                raise ValueError("a file has extended headers without end")
            if nested:
                extended += info.size
                if info.size > _HEADER_BYTES or extended > limits.entries * 1024 + _HEADER_BYTES:
                    raise SubmitterError(
                        "too_large",
                        f"{archive} has an extended header of {info.size} bytes.",
                        "Pack the folder without extended attributes.",
                    )
            return info

        def _proc_gnusparse_10(self, following: tarfile.TarInfo, *_: object) -> None:
            """Leave the map of a sparse file, which is refused, unread: it may be endless."""
            following.sparse = b""

    return Header


def _check_size(info: tarfile.TarInfo, limits: ArchiveLimits) -> None:
    if info.size < 0:
        raise tarfile.ReadError("a file has less than no bytes")
    if info.size > limits.archive_bytes:
        raise too_large(repr(info.name[:300]), limits)


def _tar_fault(info: tarfile.TarInfo) -> str:
    if info.isdir():
        return "is a folder that has bytes" if info.size else ""
    # A sparse file's map may send the reader round and round in it.
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
        return "is a link, a device or a sparse file"
    return ""
