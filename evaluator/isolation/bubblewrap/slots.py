"""A user of its own for every box, where the worker is root: no two boxes share one."""

from __future__ import annotations

import fcntl
import os
import pwd
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import PlatformError

LOCKS = Path("/run/assay/users")
UIDS = range(64000, 65000)
"""Beyond what systems give to accounts and services, and within what they map into containers."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A user that no other box runs as, while this is held.

    Attributes:
        uid: user and group.
        lock: descriptor of the locked file; the kernel lets go of it when the worker dies.
    """

    uid: int
    lock: int

    def release(self) -> None:
        """Let another box have it."""
        os.close(self.lock)


def take_slot(locks: Path = LOCKS, uids: Iterable[int] = UIDS) -> Slot:
    """The first user of the range that no box holds and no account has.

    Args:
        locks: folder for one lock file per user, for root alone.
        uids: the range.

    Raises:
        PlatformError: `no_user_for_box`, all are held or the folder cannot be used.
    """
    try:
        _prepare(locks)
        for uid in uids:
            if (slot := _try(locks, uid)) is not None:
                return slot
    except OSError as error:
        raise PlatformError(
            "no_user_for_box",
            f"The folder {locks}, where users of boxes are locked, cannot be used ({error}).",
            "Let the worker write to /run, or start it as an ordinary user.",
        ) from error
    raise PlatformError(
        "no_user_for_box",
        "Every user that a box may have is held by another box.",
        "End workers that hang; their boxes keep their users.",
    )


@contextmanager
def left_by_nobody(uid: int, locks: Path = LOCKS) -> Iterator[bool]:
    """Whether a box once had this user and none holds it; nobody can take it meanwhile.

    Args:
        uid: the user.
        locks: folder of the lock files.
    """
    slot = _try(locks, uid) if (locks / str(uid)).exists() else None
    try:
        yield slot is not None
    finally:
        if slot is not None:
            slot.release()


def _prepare(locks: Path) -> None:
    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = locks.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(f"{locks} belongs to, or can be written by, somebody else")


def _try(locks: Path, uid: int) -> Slot | None:
    with suppress(KeyError):
        pwd.getpwuid(uid)
        return None
    lock = os.open(locks / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return Slot(uid, lock)
