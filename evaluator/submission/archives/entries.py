"""Entries of a submitted folder or archive: their limits, their names, and damage in our words."""

from __future__ import annotations

import re
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

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


def _unreadable(error: Exception, archive: str) -> SubmitterError | TransientError:
    if isinstance(error, OSError) and error.errno is not None:
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
