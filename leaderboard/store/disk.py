"""Writing, walking and failing on a disk, as a folder store needs it."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import TransientError

_PIECE = 1 << 20
DRAFT = ".draft"  # Ending of a file that is not yet what it is to be

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


def replace_durably(path: Path, content: bytes) -> None:
    """Write a file so that readers and a crash see the old content or the new, never a part."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}{DRAFT}")
    try:
        write_durably(draft, content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)  # Still there only where something failed.


def write_durably(path: Path, content: bytes | Path) -> None:
    """Write a file, or copy one piece by piece, and wait until the disk has it."""
    with path.open("wb") as file:
        if isinstance(content, Path):
            with content.open("rb") as source:
                shutil.copyfileobj(source, file, _PIECE)
        else:
            file.write(content)
        file.flush()
        os.fsync(file.fileno())


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
