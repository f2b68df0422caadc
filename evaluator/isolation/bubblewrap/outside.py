"""State of a box from outside, and leftovers of killed workers."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaluator.isolation.bubblewrap import cgroups, slots
from evaluator.isolation.bubblewrap.cgroup_places import Places
from evaluator.isolation.interpreter import PACKAGE
from evaluator.isolation.layers import Layer
from evaluator.isolation.supervising import processes
from evaluator.isolation.supervising.box import NamespaceBox

_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION = 1
_BUBBLEWRAP = "bwrap"
_NAMESPACES = ("pid", "net", "mnt", "uts", "user")


@dataclass(frozen=True, slots=True)
class Finding:
    """A layer that was looked at.

    Attributes:
        layer: its name.
        fault: what is wrong with it; empty where it holds.
    """

    layer: str
    fault: str = ""


def seen(box: NamespaceBox) -> Iterator[Finding]:
    """Look at a box that has started and runs nothing yet."""
    shared = [name for name in _NAMESPACES if _is_shared(box.init_pid, name)]
    yield Finding(Layer.PROCESS, f"it shares namespaces: {', '.join(shared)}" if shared else "")
    yield Finding(
        Layer.IPC, "it shares the ipc namespace" if _is_shared(box.init_pid, "ipc") else ""
    )
    told = Path(f"/proc/{box.init_pid}/environ").read_bytes()
    yield Finding(Layer.ENVIRONMENT, "its first process has the worker's variables" if told else "")
    root = processes.user_of(box.init_pid) == 0
    yield Finding(Layer.KERNEL_UID, "the kernel sees root in it" if root else "")
    bounded = box.held.cgroup.folders if box.held.cgroup else {}
    yield Finding(Layer.MEMORY_CGROUP if "memory" in bounded else Layer.MEMORY_WATCHDOG)
    yield Finding(Layer.CPU_CGROUP if "cpu" in bounded else Layer.CPU_NICENESS)


def kernel_notes() -> tuple[str, ...]:
    """What this kernel could do besides, and is not asked to."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    return (f"Landlock {version} is there, and not used",) if version > 0 else ()


def sweep(places: Places) -> None:
    """End and remove what workers left that were killed.

    Args:
        places: where they made cgroups.
    """
    cgroups.sweep(places)
    for pid in orphans():
        _kill(pid)
    if os.geteuid() == 0:
        for pid in processes.pids_where(lambda pid: processes.user_of(pid) in slots.UIDS):
            _end_if_left(pid)


def _end_if_left(pid: int) -> None:
    try:
        user = processes.user_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return
    with slots.left_by_nobody(user) as left:
        if left:
            _kill(pid)


def orphans() -> list[int]:
    """First processes of boxes whose worker was killed in the very moment that it started them.

    Bubblewrap follows its worker at once, and may leave its child waiting for a word from it. Such a
    child has nothing of a submission in it, and never will; it only has to be taken away.
    """
    return processes.pids_where(_is_orphan)


def _is_orphan(pid: int) -> bool:
    if not _may_be_ours(processes.user_of(pid)):
        return False  # somebody else's, whatever it is made to look like
    folder = processes.PROC / str(pid)
    if (folder / "comm").read_text().strip() != _BUBBLEWRAP:
        return False
    if PACKAGE.encode() not in (folder / "cmdline").read_bytes():
        return False
    lines = (line.split() for line in (folder / "status").read_text().splitlines())
    told = {words[0]: words[1:] for words in lines if words}
    first = len(told["NSpid:"]) > 1 and told["NSpid:"][-1] == "1"
    parent = (processes.PROC / told["PPid:"][0] / "comm").read_text().strip()
    return first and parent != _BUBBLEWRAP


def _may_be_ours(user: int) -> bool:
    me = os.geteuid()
    return user == me or (me == 0 and user in slots.UIDS)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _is_shared(pid: int, name: str) -> bool:
    here = Path("/proc/self/ns", name).stat().st_ino
    return Path(f"/proc/{pid}/ns", name).stat().st_ino == here
