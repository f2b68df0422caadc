"""Processes of boxes, as the kernel reports them: which there are, what they hold, which outlived theirs.

Where no cgroup counts the memory of a box, it is added up from outside. Resident memory is not all:
what is shared without a file stays when it has left the page tables, the tables take memory
themselves, and so do empty files and what waits in sockets.

While any process of a box that did not end runs, this machine takes no further job. Such processes
are kept as files, so that a worker that is started anew, and `doctor`, know of them as well.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Sequence
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
    """As whom the kernel sees a process, whatever it is called inside a namespace."""
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
    """What processes hold beside their resident memory: page tables, and what they share unseen."""
    told = [fields for pid in pids if (fields := _sizes(pid))]
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


def _sizes(pid: int) -> dict[bytes, int]:
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


_LOG = logging.getLogger(__name__)


def marks_folder() -> Path:
    """Where this user's marks are kept; they need not outlast a restart of the machine."""
    if os.geteuid() == 0:
        return Path("/run/assay/broken")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    name = f"assay-{os.geteuid()}"
    return (Path(runtime) if runtime else Path(tempfile.gettempdir())) / name / "broken"


def mark_survivors(pids: Iterable[int], folder: Path | None = None) -> None:
    """Remember processes that survived the end of their box."""
    place = folder or marks_folder()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for pid in pids:
            if (began := started(pid)) is not None:
                (place / f"{pid}-{began}").touch()
    except OSError as error:
        # This worker knows by itself; only one that is started anew will not.
        _LOG.error("Boxes that did not end cannot be marked in %s: %s", place, error)


def survivors(folder: Path | None = None) -> tuple[int, ...]:
    """Processes of boxes that did not end, and still run; marks of others are taken away.

    Marks that another user of the machine could have made count for nothing.
    """
    place = folder or marks_folder()
    if not (_is_ours(place.parent) and _is_ours(place)):
        return ()
    alive = []
    for path in sorted(place.iterdir()):
        pid, _, began = path.name.partition("-")
        if not (pid.isdigit() and began.isdigit()):
            continue
        if started(int(pid)) == int(began):
            alive.append(int(pid))
        else:
            path.unlink(missing_ok=True)
    return tuple(alive)


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:  # it is not there, or not for us
        return False
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o002
    )
