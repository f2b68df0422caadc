"""Processes of a box and their memory, as the kernel reports them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def pids_in_namespace(inode: int) -> list[int]:
    """Living processes whose PID namespace has this inode, however they detached themselves."""

    def is_in(pid: int) -> bool:
        # Asked of every process ten times a second, so without making a `Path` of each.
        return os.stat(f"{PROC}/{pid}/ns/pid").st_ino == inode and _is_alive(pid)  # noqa: PTH116

    return pids_where(is_in)


def pids_in_session(session: int) -> list[int]:
    """Living processes of a session."""
    return pids_where(lambda pid: int(_status(pid)[3]) == session and _is_alive(pid))


def user_of(pid: int) -> int:
    """As whom the kernel sees a process, whatever it is called inside a namespace.

    Raises:
        FileNotFoundError, ProcessLookupError: it is gone.
    """
    lines = (PROC / str(pid) / "status").read_text().splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith("Uid:"))


def started(pid: int) -> int | None:
    """When a living process started, in ticks; with its number, that names it for good."""
    try:
        return int(_status(pid)[19]) if _is_alive(pid) else None
    except (FileNotFoundError, ProcessLookupError):
        return None


def resident_bytes(pids: Iterable[int]) -> int:
    """Resident memory of these processes together; pages they share count once for each."""
    return sum(map(_resident_bytes, pids))


def pids_where(matches: Callable[[int], bool]) -> list[int]:
    """Processes that a look at `/proc` matches; those that go meanwhile do not."""
    listed = os.listdir(PROC)  # noqa: PTH208 - ten times a second; names are enough
    pids = [int(name) for name in listed if name.isdigit()]
    return [pid for pid in pids if _matches(matches, pid)]


def _matches(matches: Callable[[int], bool], pid: int) -> bool:
    try:
        return matches(pid)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        # Gone since it was listed, or another user's: then it is no process of a box of ours.
        return False


def _status(pid: int) -> list[bytes]:
    """Fields of `/proc/PID/stat` from the state on."""
    # The name in parentheses may hold anything, so fields are counted from its end.
    return (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()


def _is_alive(pid: int) -> bool:
    """Not merely waiting to be reaped: a dead process holds nothing, and its parent may be slow."""
    return _status(pid)[0] not in {b"Z", b"X"}


def _resident_bytes(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_bytes().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0
