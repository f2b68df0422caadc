"""Reads a folder as a stream of entries: without following links, and without blocking.

What was looked at may be something else by the time it is opened, so each folder and file is
opened by its name in the folder that is held open above it, and never through a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

from evaluator.submission.archives.entries import Entry
from evaluator.submission.archives.limits import PIECE, ArchiveLimits
from evaluator.submission.archives.names import is_left_behind

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
        pieces = partial(_pieces, item.name, folder)
        yield Entry(name, pieces, is_folder=is_folder, fault=fault)
    for item in items:
        name = prefix + item.name
        is_folder = item.is_dir(follow_symlinks=False)
        if is_folder and not is_left_behind(name) and name.count("/") < limits.depth:
            with _opened(item.name, folder, os.O_DIRECTORY) as inner:
                yield from _below(inner, f"{name}/", limits)


def _pieces(name: str, folder: int) -> Iterator[bytes]:
    with _opened(name, folder, os.O_NONBLOCK) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{name!r} {_NO_FILE}")
        while piece := os.read(descriptor, PIECE):
            yield piece


@contextmanager
def _opened(name: str, folder: int, way: int) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | way
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
