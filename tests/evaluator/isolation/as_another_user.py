"""Runs pytest as an ordinary user: `python as_another_user.py UID ARGUMENTS`, started by root.

Folders on the way to Python and to the project may be root's alone. So this opens the way, for
itself only: in a mount namespace of its own it covers each closed folder by an open one that holds
nothing but the next steps.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000


def main(arguments: Sequence[str]) -> None:
    """Open the way, become the user, and run pytest in this process's place."""
    uid, words = int(arguments[0]), arguments[1:]
    become(uid, Path.cwd())
    os.environ["HOME"] = "/nonexistent"
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *words])


def become(uid: int, *places: Path) -> None:
    """Make this process an ordinary user's, for whom the way to Python and these places is open."""
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.unshare(_CLONE_NEWNS))
    _mount(libc, "none", "/", flags=_MS_REC | _MS_PRIVATE)
    # All ways are looked at before any is changed: two of them may lead through one folder.
    steps: dict[Path, list[Path]] = {}
    for wanted in (Path(sys.base_prefix), Path(sys.prefix), *places):
        for closed, step in closed_steps(wanted.resolve()):
            if step not in steps.setdefault(closed, []):
                steps[closed].append(step)
    for closed in sorted(steps, key=lambda folder: len(folder.parts)):
        _cover(libc, closed, steps[closed])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def closed_steps(wanted: Path) -> Iterator[tuple[Path, Path]]:
    """Folders on the way that others may not pass, each with the next step behind it."""
    way = [*reversed(wanted.parents), wanted]
    for folder, step in pairwise(way):
        if not folder.stat().st_mode & stat.S_IXOTH:
            yield folder, step


def _cover(libc: ctypes.CDLL, closed: Path, steps: Sequence[Path]) -> None:
    kept = [(step, os.open(step, os.O_PATH)) for step in steps]
    _mount(libc, "tmpfs", str(closed), kind="tmpfs", data="mode=0755,size=1m")
    for step, opened in kept:
        step.mkdir(mode=0o755)
        _mount(libc, f"/proc/self/fd/{opened}", str(step), flags=_MS_BIND | _MS_REC)
        os.close(opened)


def _mount(
    libc: ctypes.CDLL, source: str, target: str, *, kind: str = "", flags: int = 0, data: str = ""
) -> None:
    words = [word.encode() for word in (source, target, kind, data)]
    _checked(libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main(sys.argv[1:])
