"""Room on the disk, asked before anything is written."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.errors import SubmitterError

UNPACKING = 1.1
"""Bytes that an unpacked archive takes, per byte of the archive: images hardly shrink in one, and
each unpacked file fills whole blocks of the disk."""
_RESERVE = 64 * 2**20


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin what cannot end.

    Args:
        folder: where it will be written; need not exist yet.
        needed: bytes still to be written.

    Raises:
        SubmitterError: `disk_full`, with what is needed, what is free, and where.
    """
    if needed <= 0:
        return
    there = existing(folder)
    free = shutil.disk_usage(there).free
    if needed + _RESERVE > free:
        raise SubmitterError(
            "disk_full",
            f"This needs {as_bytes(needed)} in {folder}; the disk of {there} has "
            f"{as_bytes(free)} free, of which {as_bytes(_RESERVE)} stay in reserve.",
            "Make room, or name a folder on another disk with --data; `--answers-only` leaves the "
            "images out, `--subset 10` takes a few.",
        )


def existing(folder: Path) -> Path:
    """The folder itself, or its nearest parent that exists."""
    absolute = folder.absolute()
    return next(place for place in (absolute, *absolute.parents) if place.exists())


def as_bytes(size: float) -> str:
    """A size for people, in decimal units as providers of data print it: `10.7 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} TB"
