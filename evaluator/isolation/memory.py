"""The memory of a box as far as it can be added up from outside, where no cgroup counts it.

Resident memory is not all: what is shared without a file stays when it has left the page tables, the
tables take memory themselves, and so do empty files and what waits in sockets.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from evaluator.isolation.supervising.processes import PROC

_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_KIB = 1024
_FILE = 1024
"""What an empty file of a folder in memory takes: its inode and its name."""
_SOCKET = 2 * 212_992
"""What may wait in a socket, once each way, by the kernel's default bound."""
_SHARED_WITHOUT_A_FILE = b"/dev/zero (deleted)"


def mounted_bytes(pid: int, folders: Iterable[str]) -> int:
    """Bytes held by the in-memory folders that a process sees; 0 where it is gone."""
    return sum(_used_bytes(PROC / str(pid) / "root" / folder.lstrip("/")) for folder in folders)


def sockets_bytes(pid: int) -> int:
    """The most that may wait in the sockets of a process's network namespace."""
    try:
        words = (PROC / str(pid) / "net/sockstat").read_text().split()
    except _GONE:
        return 0
    return int(words[2]) * _SOCKET  # "sockets: used N"


def unseen_bytes(pids: Sequence[int], room: int) -> int:
    """What processes hold beside their resident memory: page tables, and what they share unseen.

    Args:
        pids: of the box.
        room: what may be held before it matters; the long list of what a process has mapped is
            read only where all of it together could be more.
    """
    told = [fields for pid in pids if (fields := _status(pid))]
    tables = sum(fields.get(b"VmPTE", 0) for fields in told)
    # Whatever is shared counts for the size of a process, and never for its data.
    most = sum(fields.get(b"VmSize", 0) - fields.get(b"VmData", 0) for fields in told)
    if tables + most <= room:
        return tables
    resident = sum(fields.get(b"RssShmem", 0) for fields in told)
    return tables + max(0, shared_bytes(pids) - resident)


def shared_bytes(pids: Iterable[int]) -> int:
    """Memory without a file that processes have mapped together, each piece counted once."""
    sizes: dict[bytes, int] = {}
    for pid in pids:
        try:
            lines = (PROC / str(pid) / "maps").read_bytes().splitlines()
        except _GONE:
            continue
        for line in lines:
            if line.endswith(_SHARED_WITHOUT_A_FILE):
                place, _, offset, _, inode = line.split()[:5]
                start, end = (int(word, 16) for word in place.split(b"-"))
                last = int(offset, 16) + end - start
                sizes[inode] = max(sizes.get(inode, 0), last)
    return sum(sizes.values())


def _status(pid: int) -> dict[bytes, int]:
    """Sizes in `/proc/PID/status`, in bytes; none where the process is gone."""
    try:
        lines = (PROC / str(pid) / "status").read_bytes().splitlines()
    except _GONE:
        return {}
    words = (line.split() for line in lines if line.endswith(b" kB"))
    return {name.rstrip(b":"): int(size) * _KIB for name, size, _ in words}


def _used_bytes(folder: Path) -> int:
    try:
        status = os.statvfs(folder)
    except _GONE:
        return 0
    content = (status.f_blocks - status.f_bfree) * status.f_frsize
    return content + (status.f_files - status.f_ffree) * _FILE
