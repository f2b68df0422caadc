"""Process locks of the workers of this machine, which end with their process."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
FORGOTTEN_AFTER_S = 7 * 24 * 3600.0
_TRIES = 50
_PAUSE_S = 0.02

log = logging.getLogger(__name__)


class Presence:
    """A lock that a worker holds while it works, in a folder that workers of a machine share.

    The kernel gives the lock up when the process ends, however it ends, so whoever can take it
    knows at once that the worker is gone. Across machines locks tell nothing: a file of another
    machine, or of an earlier start of this one, is not judged by.

    Args:
        folder: where the locks are.
        name: of the worker.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._fd: int | None = None

    def __enter__(self) -> Self:
        """Take the lock; where that cannot be, the worker is known by its pulse alone."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = self._locked()
        except OSError as error:
            log.warning("No lock shows that this worker lives: %s", error)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)  # The file stays: that it can be locked says that we are gone.
            self._fd = None

    def ended(self, name: str) -> bool:
        """Whether a worker's process has certainly ended; False where nothing is known of it."""
        if not _NAME.fullmatch(name) or name == self._name:
            return False
        with self._left(name) as left:
            return left

    def sweep(self, now_s: float) -> None:
        """Remove locks of workers that ended long ago."""
        for file in self._folder.glob("*.lock"):
            with suppress(OSError):
                old = file.stat().st_mtime < now_s - FORGOTTEN_AFTER_S
                if old:
                    self._remove(file)

    def _remove(self, file: Path) -> None:
        name = file.name.removesuffix(".lock")
        # While it is locked: a worker that takes it up again finds that it is gone (`_locked`).
        with self._left(name) as left:
            if left and name != self._name:
                file.unlink()

    @contextmanager
    def _left(self, name: str) -> Iterator[bool]:
        """Hold the lock of a worker that has certainly ended; False where that is not known."""
        try:
            fd = os.open(self._file(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield False
            return
        try:
            yield _taken(fd) and self._is_file(fd, name) and _of_this_start(fd)
        finally:
            os.close(fd)

    def _locked(self) -> int:
        """This worker's file, locked, and named for this start.

        Whoever looks whether a worker has ended holds its lock for a moment, and whoever cleans up
        may have removed the file between its opening and its locking: then it is tried again.

        Raises:
            OSError: it cannot be had.
        """
        for _ in range(_TRIES):
            fd = os.open(self._file(self._name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if _taken(fd) and self._is_file(fd, self._name):
                    os.ftruncate(fd, 0)
                    os.write(fd, _this_start().encode())
                    return fd
            except OSError:
                os.close(fd)
                raise
            os.close(fd)
            time.sleep(_PAUSE_S)
        raise OSError(f"another process holds the lock of {self._name}")

    def _is_file(self, fd: int, name: str) -> bool:
        """Whether a file that is open is the one of that name now."""
        try:
            return os.path.samestat(os.fstat(fd), self._file(name).stat())
        except FileNotFoundError:
            return False

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _taken(fd: int) -> bool:
    """Take the lock of a file, unless somebody has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _of_this_start(fd: int) -> bool:
    try:
        return os.pread(fd, 200, 0).decode(errors="replace") == _this_start()
    except OSError:
        return False


def _this_start() -> str:
    """Names this start of this machine's kernel; empty where that is not told."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "no name"
