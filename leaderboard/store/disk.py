"""Walking and failing on a disk, as a folder store needs it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import TransientError

_REMEDIES = {
    errno.ENOSPC: "Free space on the store's disk, then try again.",
    errno.EDQUOT: "Free space within the quota of the store's disk, then try again.",
    errno.EACCES: "Let this user read and write the store's folder, then try again.",
    errno.EPERM: "Let this user read and write the store's folder, then try again.",
    errno.EROFS: "Mount the store's disk for writing, then try again.",
}


@contextmanager
def failing(action: str) -> Iterator[None]:
    """Report what the file system refuses."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "Check the store's disk, then try again.")
        # Without the file's full name: the message may end up on a page.
        raise TransientError(
            "store_failed",
            f"The store could not {action}: {error.strerror or type(error).__name__}.",
            remedy,
        ) from error


def files_below(top: Path, *, without: Path) -> Iterator[Path]:
    """All files in a folder and its folders; none where there is no such folder."""
    for folder, folders, names in os.walk(top, onerror=_raise_unless_absent):
        here = Path(folder)
        folders[:] = [name for name in folders if here / name != without]
        yield from (here / name for name in names)


def remove_file(path: Path) -> None:
    """Remove a file; harmless where there is none."""
    if path.is_file():
        path.unlink()


def make_room(path: Path) -> None:
    """Make a path free for a file: its folder is made, and a folder of no files is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        for folder, _, _ in os.walk(path, topdown=False, onerror=_raise_unless_absent):
            Path(folder).rmdir()


def _raise_unless_absent(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
