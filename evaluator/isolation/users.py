"""A user of its own for every box, where the worker is root, and what that user may read.

No two boxes share a user. Theirs may not pass through, say, `/root`, so the files of a box are bound
to a place of their own first, in a mount namespace that only the starting thread and the box have:
nothing of it is seen by the rest of the machine, and it is gone when both are. A box can read in its
mount table where in a file system a bind mount comes from, so folders are shown through an overlay
with a relative name, and files are copied: neither tells a path of this machine.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import PlatformError

LOCKS = Path("/run/assay/users")
UIDS = range(64000, 65000)
"""Beyond what systems give to accounts and services, and within what they map into containers."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A user that no other box runs as, while this is held."""

    uid: int  # user and group
    lock: int  # descriptor of the locked file; the kernel lets go of it when the worker dies

    def release(self) -> None:
        """Let another box have it."""
        os.close(self.lock)


def take_slot(locks: Path = LOCKS, uids: Iterable[int] = UIDS) -> Slot:
    """The first user of the range that no box holds and no account has."""
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
    """Whether a box once had this user and none holds it; nobody can take it meanwhile."""
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


_STAGE = Path("/tmp")  # noqa: S108 - covered by memory of our own, in a namespace of our own
_CLONE_NEWNS = 0x20000
_MS_RDONLY, _MS_BIND, _MS_REC, _MS_SLAVE = 0x1, 0x1000, 0x4000, 0x80000
_NOTHING = _STAGE / "none"
"""An empty folder: an overlay takes two."""
_MOST_FILES = 200_000


def stage(sources: Iterable[Path]) -> Mapping[Path, Path]:
    """Show files at a place that every user may reach, to this thread and what it starts.

    The calling thread sees another `/tmp` afterwards, and should do nothing but start a box.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        if ctypes.get_errno() == errno.EPERM:
            return {}
        raise _last_error("unshare")
    _mount(libc, "none", "/", None, flags=_MS_REC | _MS_SLAVE)
    with ExitStack() as stack:
        # Opened before their path may be covered.
        opened = {path: fd for path in sources if (fd := _opened(path, stack)) is not None}
        below = {path for path in opened if _holds_mounts(path)}
        _mount(libc, "tmpfs", str(_STAGE), "tmpfs", flags=0, data="mode=0755,size=4m")
        _NOTHING.mkdir(mode=0o755)
        try:
            return {
                path: _show(libc, descriptor, _STAGE / str(number), whole=path in below)
                for number, (path, descriptor) in enumerate(opened.items())
            }
        finally:
            os.chdir("/")  # of this thread alone, since its mount namespace is its own


def hides_names() -> bool:
    """Whether folders can be shown without their names: to root, by an overlay."""
    return os.geteuid() == 0 and "overlay" in Path("/proc/filesystems").read_text().split()


def _show(libc: ctypes.CDLL, descriptor: int, place: Path, *, whole: bool) -> Path:
    source = f"/proc/self/fd/{descriptor}"
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        place.write_bytes(Path(source).read_bytes())
        place.chmod(0o644)
        return place
    if stat.S_ISDIR(mode):
        place.mkdir(mode=0o755)
        if not whole and _overlaid(libc, descriptor, place):
            return place
    else:
        place.touch(mode=0o644)
    _mount(libc, source, str(place), None, flags=_MS_BIND | _MS_REC)
    return place


def _overlaid(libc: ctypes.CDLL, descriptor: int, place: Path) -> bool:
    """Show a folder by a name relative to it; False where this kernel or file system does not."""
    os.fchdir(descriptor)
    try:
        _mount(
            libc,
            "overlay",
            str(place),
            "overlay",
            flags=_MS_RDONLY,
            data=f"lowerdir=.:{_NOTHING},redirect_dir=nofollow,metacopy=off",
        )
    except OSError:  # then the box is started all the same, and a probe says what it can read
        return False
    return True


def _holds_mounts(folder: Path) -> bool:
    """Whether something is mounted below a folder, which an overlay would not show."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(folder in Path(line.split()[4]).parents for line in lines)


def require_readable(paths: Iterable[Path], uid: int, *, reached: bool) -> None:
    """Refuse what the user of a box could not read inside, before it starts."""
    for path in paths:
        if not path.exists():
            continue
        if not reached:
            require_way(path, uid)
        if (fault := _closed_inside(path)) is not None:
            raise _not_readable(fault, uid, "read", "o+rX")


def require_way(path: Path, uid: int) -> None:
    """Refuse a file that the user of a box cannot get to."""
    for folder in reversed(path.resolve().parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            raise _not_readable(folder, uid, "pass through", "o+x")


def _not_readable(path: Path, uid: int, act: str, mode: str) -> PlatformError:
    return PlatformError(
        "not_readable",
        f"The user that a box runs as (uid {uid}) cannot {act} {path}.",
        f"Let it: chmod {mode} {path}",
    )


def _closed_inside(path: Path) -> Path | None:
    waiting, seen = [path], 0
    while waiting and seen < _MOST_FILES:
        current = waiting.pop()
        seen += 1
        mode = current.lstat().st_mode
        if stat.S_ISLNK(mode):
            continue
        needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
        if mode & needed != needed:
            return current
        if stat.S_ISDIR(mode):
            waiting += current.iterdir()
    return None


def _opened(path: Path, stack: ExitStack) -> int | None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor


def _mount(libc: ctypes.CDLL, *words: str | None, flags: int, data: str | None = None) -> None:
    source, target, kind, told = (w and w.encode() for w in (*words, data))
    if libc.mount(source, target, kind, ctypes.c_ulong(flags), told) != 0:
        raise _last_error(f"mounting {words[1]}")


def _last_error(doing: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{doing}: {os.strerror(number)}")
