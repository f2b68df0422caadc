"""Names of files in a submission: plain on every disk, and readable as they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath

from benchmarks.problems import Problem
from evaluator.submission.archives.limits import ArchiveLimits

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
        return Problem("unsafe_name", f"The name {name[:300]!r} {fault}.", hint, file=shown(name))
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
    if name.startswith(("/", "~")) or ".." in path.parts or "\\" in name or ":" in name:
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


def shown(name: str) -> str:
    """A name as it may stand in a list of problems: escaped, and not too long."""
    return name[:300] if name.isprintable() else repr(name[:300])[1:-1]


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
