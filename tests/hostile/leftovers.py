"""What a box was, noted while it runs, and what of it is still there when it has ended."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from evaluator.isolation import processes
from evaluator.isolation.bubblewrap import NamespaceSandbox
from evaluator.isolation.session import ScorerSession

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_GONE_WITHIN_S = 30.0


@dataclass(frozen=True)
class Trace:
    """By what a box can be found.

    Attributes:
        namespace: inode of its PID namespace.
        held: keeps that number from being given to another box of this machine.
        user: as whom the kernel sees its processes.
        groups: its control groups, where they are not those of this process.
    """

    namespace: int
    held: int
    user: int
    groups: tuple[str, ...]


def trace_of(session: ScorerSession) -> Trace:
    """Note a box that has just started."""
    box = session._box
    assert isinstance(box, NamespaceSandbox)
    ours = set(_groups(os.getpid()))
    theirs = tuple(group for group in _groups(box.init_pid) if group not in ours)
    user = int(_field(box.init_pid, "Uid").split()[0])
    held = os.open(_PROC / str(box.init_pid) / "ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    return Trace(box.namespace, held, user, theirs)


@dataclass(frozen=True)
class Holdings:
    """What this process holds and what lies in its folders.

    Attributes:
        descriptors: what each open descriptor is, without its number.
        threads: names of the living ones.
        mounts: of this process.
        files: below the folders where a submission is worked on.
        children: processes that this one started.
    """

    descriptors: Counter[str]
    threads: Counter[str]
    mounts: frozenset[str]
    files: tuple[str, ...]
    children: frozenset[int]


def holdings(*folders: Path) -> Holdings:
    """What is held now."""
    return Holdings(
        Counter(_descriptors()),
        Counter(thread.name for thread in threading.enumerate()),
        frozenset((_PROC / "self/mountinfo").read_text().splitlines()),
        tuple(sorted(str(path) for folder in folders for path in folder.rglob("*"))),
        frozenset(_children()),
    )


def left_of(trace: Trace) -> list[str]:
    """What is still there of a box that has ended: nothing, if all is well. Asked once."""
    inside = processes.pids_in_namespace(trace.namespace)
    os.close(trace.held)
    found = [f"process {pid}" for pid in inside]
    # Whoever got out of the namespace is still in the box's control groups, which then cannot have
    # been removed. Without any, its user tells; but that may be another box's by now.
    if trace.user != os.geteuid() and not trace.groups:
        found += [f"process {pid} of user {trace.user}" for pid in _of_user_outside(trace.user)]
    found += [
        f"control group {path}"
        for group in trace.groups
        for path in _CGROUPS.glob(f"*/{group.lstrip('/')}")
    ]
    return found


def grown(before: Holdings, after: Holdings, related_to: str) -> list[str]:
    """What is held now and was not before.

    Args:
        before: a submission was worked on.
        after: it.
        related_to: only mounts that name this are looked at: others use the machine as well.
    """
    mounts = [m for m in after.mounts - before.mounts if related_to in m or "bwrap" in m]
    return [
        *(f"descriptor {what}" for what in (after.descriptors - before.descriptors)),
        *(f"thread {name}" for name in (after.threads - before.threads)),
        *(f"mount {mount}" for mount in mounts),
        *(f"file {name}" for name in after.files if name not in before.files),
        *(f"child {pid}" for pid in sorted(after.children - before.children)),
    ]


def settled(before: Holdings, related_to: str, *folders: Path) -> list[str]:
    """What is left after a little while: the kernel may take a moment to clear away."""
    deadline = time.monotonic() + _GONE_WITHIN_S
    while (left := grown(before, holdings(*folders), related_to)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _descriptors() -> Iterator[str]:
    for link in (_PROC / "self/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:  # the one of the listing itself
            continue
        # The number of a pipe or socket is another each time; how many there are is not.
        yield target.partition(":[")[0]


def _children() -> Iterator[int]:
    for task in (_PROC / "self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has ended meanwhile
            yield from map(int, (task / "children").read_text().split())


def _groups(pid: int) -> Iterator[str]:
    for line in (_PROC / str(pid) / "cgroup").read_text().splitlines():
        path = line.split(":", 2)[2]
        if path != "/":
            yield path


def _field(pid: int, name: str) -> str:
    lines = (_PROC / str(pid) / "status").read_text().splitlines()
    return next(line.partition(":")[2] for line in lines if line.startswith(f"{name}:"))


def _of_user_outside(user: int) -> Iterator[int]:
    """Processes of a box's user that are in this process's own PID namespace."""
    ours = (_PROC / "self/ns/pid").stat().st_ino
    for pid in processes.pids_in_namespace(ours):
        try:
            if int(_field(pid, "Uid").split()[0]) == user:
                yield pid
        except (FileNotFoundError, ProcessLookupError):
            continue
