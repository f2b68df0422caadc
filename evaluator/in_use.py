"""Marks that something on this disk is being used, so that nobody makes room of it.

A mark is a lock of the operating system on a file or folder: it ends with the process that has it,
however that ends, and holds among all processes of one machine.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NOT_OURS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@contextmanager
def in_use(mark: Path) -> Iterator[None]:
    """Use what the mark stands for; any number may."""
    fd = _opened(mark)
    try:
        if fd is not None:
            fcntl.flock(fd, fcntl.LOCK_SH)
            with suppress(PermissionError):  # another user's: they note their own uses
                os.utime(fd)
        yield
    finally:
        if fd is not None:
            os.close(fd)


@contextmanager
def unused(mark: Path) -> Iterator[bool]:
    """Whether nobody uses what the mark stands for; nobody begins to before this is left."""
    fd = _opened(mark)
    try:
        yield fd is not None and took_lock(fd)
    finally:
        if fd is not None:
            os.close(fd)


def took_lock(fd: int) -> bool:
    """Take the lock of a file or folder, unless somebody has it or its file system has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _opened(mark: Path) -> int | None:
    if mark.is_dir():
        return os.open(mark, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        try:
            return os.open(mark, flags | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            break
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise
    return None
