"""Reads a folder as a stream of entries: without following links, and without blocking."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from evaluator.submission.entries import Entry
from evaluator.submission.limits import PIECE, ArchiveLimits
from evaluator.submission.names import is_left_behind

_NO_FILE = "is a link, a device or another thing that is no file"


def folder_entries(path: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """The files and folders below a folder, in the order of their names.

    What tools leave behind is not gone into: a `.git` may hold more files than may be counted.
    """
    waiting = [path]
    while waiting:
        here = waiting.pop()
        with os.scandir(here) as found:
            items = sorted(found, key=lambda item: item.name)
        for item in items:
            name = Path(item.path).relative_to(path).as_posix()
            is_folder = item.is_dir(follow_symlinks=False)
            if is_folder and not is_left_behind(name) and name.count("/") < limits.depth:
                waiting.append(Path(item.path))
            fault = "" if is_folder or item.is_file(follow_symlinks=False) else _NO_FILE
            yield Entry(name, partial(_pieces, Path(item.path)), is_folder=is_folder, fault=fault)


def _pieces(path: Path) -> Iterator[bytes]:
    # What was a file may be something else by now.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path.name!r} {_NO_FILE}")
        while piece := file.read(PIECE):
            yield piece
