"""Which workers of this machine live, by locks that end with their process."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Self

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
FORGOTTEN_AFTER_S = 7 * 24 * 3600.0


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
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._file(self._name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._fd = fd
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.write(fd, _this_start().encode())
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)  # The file stays: that it can be locked says that we are gone.
            self._fd = None

    def ended(self, name: str) -> bool:
        """Whether a worker's process has certainly ended; False where nothing is known of it."""
        if not _NAME.fullmatch(name) or name == self._name:
            return False
        try:
            fd = os.open(self._file(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if os.read(fd, 200).decode(errors="replace") != _this_start():
                return False
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(fd)

    def sweep(self, now_s: float) -> None:
        """Remove locks of workers that ended long ago."""
        for file in self._folder.glob("*.lock"):
            with suppress(OSError):
                old = file.stat().st_mtime < now_s - FORGOTTEN_AFTER_S
                if old and self.ended(file.name.removesuffix(".lock")):
                    file.unlink()

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


def _this_start() -> str:
    """Names this start of this machine's kernel; empty where that is not told."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "no name"
