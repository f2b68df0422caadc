"""Folder cache: a folder of folders that can be had again, each whole, none taken away while it is used.

Beside each lies a mark of its last use, and a lock for whoever makes it.
"""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from evaluator.in_use import in_use, unused

PART = ".part"
LOCK = ".lock"
USED = ".used"
_GONE = ".gone"


@dataclass(frozen=True, slots=True)
class CachedFolder:
    """A folder of a cache."""

    name: str  # of the folder, once it is whole
    place: Path  # where it is
    n_bytes: int  # on disk
    last_used: float  # seconds since 1970, by this machine's clock
    in_use: bool  # whether a box that runs has it
    whole: bool  # whether it was finished


@contextmanager
def using(place: Path) -> Iterator[None]:
    """Use a folder, which may still have to be made: nobody takes it away meanwhile."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with in_use(_mark(place)):
        yield


@contextmanager
def while_alone(place: Path) -> Iterator[None]:
    """Make a folder: one process does, others wait for it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_name(f"{place.name}{LOCK}")):
        yield


def note_use(place: Path) -> None:
    """Remember that a folder was used now, where that can be written down."""
    with suppress(OSError):
        _mark(place).touch(mode=0o644)


def cached_folders(folder: Path) -> tuple[CachedFolder, ...]:
    """What a cache holds, what was used longest ago first."""
    found = [
        _cached_folder(place)
        for place in folder.glob("*")
        if place.is_dir() and not place.name.endswith((LOCK, USED, _GONE))
    ]
    return tuple(sorted(found, key=lambda one: (one.last_used, one.name)))


def taken_away(one: CachedFolder) -> int:
    """Remove a folder unless it is used or being made; the number of bytes this freed."""
    bare = _bare(one.place)
    try:
        with FileLock(bare.with_name(f"{bare.name}{LOCK}"), timeout=0), unused(_mark(bare)) as free:
            if not free:
                return 0
            # Renamed first: a crash never leaves half a folder under its name.
            gone = one.place.with_name(f"{uuid.uuid4().hex}{_GONE}")
            one.place.replace(gone)
    except (Timeout, FileNotFoundError):
        return 0
    shutil.rmtree(gone, ignore_errors=True)
    return one.n_bytes


def sweep(folder: Path) -> int:
    """Remove what a removal that was cut off left; the number of bytes this freed."""
    freed = 0
    for gone in folder.glob(f"*{_GONE}"):
        freed += bytes_below(gone)
        shutil.rmtree(gone, ignore_errors=True)
    return freed


def let_all_read(place: Path, *, executables: bool = False) -> None:
    """Make a folder readable for whichever user a box has, and no more than that."""
    for folder, _, names in os.walk(place):
        Path(folder).chmod(0o755)
        for name in names:
            file = Path(folder) / name
            runs = executables and file.stat().st_mode & stat.S_IXUSR
            file.chmod(0o755 if runs else 0o644)


def bytes_below(place: Path) -> int:
    """What a file, or a folder with all that is in it, takes of the disk."""
    if not place.is_dir():
        return _bytes_of(place)
    return sum(
        _bytes_of(Path(folder) / name) for folder, _, names in os.walk(place) for name in names
    )


def _bytes_of(file: Path) -> int:
    try:
        found = file.lstat()
    except FileNotFoundError:
        return 0
    return found.st_blocks * 512


def _cached_folder(place: Path) -> CachedFolder:
    bare = _bare(place)
    mark = _mark(bare)
    try:
        last_used = mark.stat().st_mtime
    except FileNotFoundError:  # made before uses were noted
        last_used = place.stat().st_mtime
        is_free = True
    else:
        with unused(mark) as is_free:
            pass
    return CachedFolder(
        name=bare.name,
        place=place,
        n_bytes=bytes_below(place),
        last_used=last_used,
        in_use=not is_free,
        whole=place == bare,
    )


def _bare(place: Path) -> Path:
    return place.with_name(place.name.removesuffix(PART))


def _mark(place: Path) -> Path:
    return place.with_name(f"{place.name}{USED}")
