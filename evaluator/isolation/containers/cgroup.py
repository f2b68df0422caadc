"""Cgroup of a container, made by its engine: the kernel's counts and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluator.isolation.bubblewrap.cgroup_places import CONTROLLERS
from evaluator.isolation.bubblewrap.cgroups import Cgroup
from evaluator.isolation.supervising.processes import PROC

CGROUPS = Path("/sys/fs/cgroup")
_UNIFIED = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the kernel holds a container to, as it says itself; None for no bound.

    Attributes:
        memory: bytes of all its processes together.
        processes: processes and threads.
        processors: how many it may keep busy.
    """

    memory: int | None
    processes: int | None
    processors: float | None


def cgroup_of(pid: int, proc: Path = PROC, root: Path = CGROUPS) -> Cgroup | None:
    """The cgroups a process is in; None where they cannot be seen from here.

    Args:
        pid: of the first process of a container.
        proc: the kernel's table of processes.
        root: where the trees of cgroups are mounted.
    """
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    paths = _paths(lines)
    if set(CONTROLLERS) <= set(paths):
        folders = {name: root / name / paths[name] for name in CONTROLLERS}
    else:
        folders = dict.fromkeys(CONTROLLERS, root / paths.get(_UNIFIED, ""))
    seen = all(folder.is_dir() and folder != root for folder in folders.values())
    return Cgroup(folders) if seen else None


def held_bytes(cgroup: Cgroup) -> int:
    """Memory that the kernel cannot take back: of processes, and of files in memory."""
    stat = _numbers(cgroup.folders["memory"] / "memory.stat")
    if "total_rss" in stat:  # the first version, which counts children apart
        return stat["total_rss"] + stat.get("total_shmem", 0)
    return stat.get("anon", 0) + stat.get("shmem", 0)


def bounds(cgroup: Cgroup) -> Bounds:
    """Read back what holds."""
    memory, processes, processor = (cgroup.folders[name] for name in CONTROLLERS)
    of_memory = _bound(memory / "memory.max")
    return Bounds(
        memory=_bound(memory / "memory.limit_in_bytes") if of_memory is None else of_memory,
        processes=_bound(processes / "pids.max"),
        processors=_processors(processor),
    )


def _paths(lines: list[str]) -> Mapping[str, str]:
    """Controller to path below its root; the second version has no name."""
    found = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path.lstrip("/")
    return found


def _processors(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split() or [
        _text(folder / "cpu.cfs_quota_us").strip(),
        _text(folder / "cpu.cfs_period_us").strip(),
    ]
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None  # "max", -1, or not there
    return int(words[0]) / int(words[1])


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # of the other version, or the group is going just now
        return ""


def _numbers(path: Path) -> Mapping[str, int]:
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _bound(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None
