"""Places of this machine where cgroups of boxes may be made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

CONTROLLERS = ("memory", "pids", "cpu")
_WORKER = "assay-worker"
"""Where version 2 has the worker move to: folders that share out resources hold no processes."""


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of the machine's cgroup trees.

    Attributes:
        version: of cgroups.
        folders: controller to the folder below which cgroups are made.
    """

    version: int = 2
    folders: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Mount:
    kind: str
    root: str
    place: Path
    options: frozenset[str]


def machine_places() -> Places:
    """Those of this process; in version 2 the worker may be moved for it."""
    proc = Path("/proc/self")
    return find(
        (proc / "mountinfo").read_text(), (proc / "cgroup").read_text(), worker_pid=os.getpid()
    )


def find(mountinfo: str, membership: str, *, worker_pid: int) -> Places:
    """Look for places in version 2, then in version 1.

    Args:
        mountinfo: `/proc/self/mountinfo`.
        membership: `/proc/self/cgroup`.
        worker_pid: this process, moved aside where version 2 asks for it.
    """
    mounts = list(_mounts(mountinfo))
    own = dict(_memberships(membership))
    for mount in mounts:
        if mount.kind == "cgroup2" and (base := _inside(mount, own.get("", "/"))):
            if base.name == _WORKER:
                base = base.parent
            if enabled := _enable(base, worker_pid):
                return Places(2, dict.fromkeys(enabled, base))
    folders = {}
    for controller in CONTROLLERS:
        for mount in mounts:
            if mount.kind == "cgroup" and controller in mount.options:
                base_1 = _inside(mount, own.get(controller, "/"))
                if base_1 is not None and os.access(base_1, os.W_OK):
                    folders[controller] = base_1
    return Places(1, folders) if folders else Places()


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        words, rest = before.split(), after.split()
        if len(words) > 4 and len(rest) > 2 and rest[0].startswith("cgroup"):
            yield _Mount(rest[0], words[3], Path(words[4]), frozenset(rest[2].split(",")))


def _memberships(membership: str) -> Iterator[tuple[str, str]]:
    """(controller, path) of each line; version 2 has no controller named."""
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _inside(mount: _Mount, path: str) -> Path | None:
    """The folder of a cgroup, which a container may see only a part of the tree of."""
    with suppress(ValueError):
        relative = PurePosixPath(path).relative_to(mount.root)
        folder = mount.place / relative
        return folder if folder.is_dir() else None
    return None


def _enable(base: Path, worker_pid: int) -> tuple[str, ...]:
    """Have children of a folder bound by as many controllers as there are."""
    try:
        there = (base / "cgroup.controllers").read_text().split()
        wanted = [name for name in CONTROLLERS if name in there]
        if "memory" not in wanted or not os.access(base, os.W_OK):
            return ()
        control = base / "cgroup.subtree_control"
        if missing := [name for name in wanted if name not in control.read_text().split()]:
            told = " ".join(f"+{name}" for name in missing)
            try:
                control.write_text(told)
            except OSError:
                _step_aside(base, worker_pid)
                control.write_text(told)
        return tuple(name for name in wanted if name in control.read_text().split())
    except OSError:
        return ()


def _step_aside(base: Path, worker_pid: int) -> None:
    folder = base / _WORKER
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.procs").write_text(str(worker_pid))
