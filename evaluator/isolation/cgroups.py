"""Bounds that the kernel holds a whole box to: memory, processes and processors, by cgroups.

Of the two versions of cgroups, whichever gives this process a folder to write in is used; where
neither does, the watchdog is left. Nothing is taken for granted: what is written is read back. The
cgroup of a container is made by its engine, and only read here.
"""

from __future__ import annotations

import errno
import functools
import itertools
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from benchmarks.errors import PlatformError
from evaluator.isolation.job import Limits
from evaluator.isolation.processes import PROC, started

CONTROLLERS = ("memory", "pids", "cpu")
_WORKER = "assay-worker"
"""Where version 2 has the worker move to: folders that share out resources hold no processes."""


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of the machine's cgroup trees."""

    version: int = 2  # of cgroups
    # controller to the folder below which cgroups are made
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
    """Look for places in version 2, then in version 1."""
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


_PREFIX = "assay-box"
_PERIOD_US = 100_000
_ROUNDING = 1 << 16
_LARGEST_PIECE = 4 << 20
"""At most so much is asked of the kernel at once."""
_OWN_PROCESSES = 8
"""Beside the scorer's: bubblewrap, the first process of the box, and those that come and go."""
_REMOVED_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.005
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Setting:
    """A file of a cgroup, what is written to it, and whether the kernel must take it."""

    file: str
    text: str
    required: bool = True


def settings(version: int, limits: Limits) -> Mapping[str, tuple[Setting, ...]]:
    """What is written for each controller, in order."""
    memory, processes = str(limits.memory_bytes), str(limits.processes + _OWN_PROCESSES)
    quota = str(limits.threads * _PERIOD_US)
    pids = (Setting("pids.max", processes),)
    if version == 1:
        return {
            "memory": (
                Setting("memory.limit_in_bytes", memory),
                # There only where swap is counted.
                Setting("memory.memsw.limit_in_bytes", memory, required=False),
            ),
            "pids": pids,
            "cpu": (
                Setting("cpu.cfs_period_us", str(_PERIOD_US)),
                Setting("cpu.cfs_quota_us", quota),
            ),
        }
    return {
        "memory": (
            Setting("memory.max", memory),
            Setting("memory.swap.max", "0", required=False),
            Setting("memory.oom.group", "1", required=False),
        ),
        "pids": pids,
        "cpu": (Setting("cpu.max", f"{quota} {_PERIOD_US}"),),
    }


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The cgroup of one box; in version 1 one per controller, all of the same name."""

    folders: Mapping[str, Path]  # controller to folder; only those whose bounds the kernel took

    def add(self, pid: int) -> None:
        """Put a process in; what it starts from then on is in as well."""
        for folder in self._each():
            (folder / "cgroup.procs").write_text(str(pid))

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in it for lack of memory of its own.

        What it killed because the machine as a whole had none left is not meant.
        """
        folder = self.folders.get("memory")
        if folder is None:
            return False
        counted = _fields(folder / "memory.events") | _fields(folder / "memory.oom_control")
        # Version 1 does not count how often the bound was reached, but keeps the most there was.
        most, bound = (_bound(folder / f"memory.{n}_in_bytes") for n in ("max_usage", "limit"))
        full = counted.get("oom", 0) > 0 or (bound and (most or 0) >= bound - _LARGEST_PIECE)
        return counted.get("oom_kill", 0) > 0 and bool(full)

    def out_of_processes(self) -> bool:
        """Whether the kernel refused it a process or thread at its bound."""
        folder = self.folders.get("pids")
        return folder is not None and _fields(folder / "pids.events").get("max", 0) > 0

    def kill(self) -> None:
        """End everything in it at once, where the kernel can."""
        for folder in self._each():
            with suppress(OSError):  # older kernels cannot; the box is ended by its first process
                if (folder / "cgroup.kill").exists():
                    (folder / "cgroup.kill").write_text("1")

    def pids(self) -> frozenset[int]:
        """Processes in it."""
        found: set[int] = set()
        for folder in self._each():
            with suppress(OSError):  # gone, or going while it is read
                found.update(map(int, (folder / "cgroup.procs").read_text().split()))
        return frozenset(found)

    def remove(self) -> bool:
        """Take it away; False where something is still in it."""
        gone = [_removed(folder) for folder in self._each()]
        return all(gone)

    def _each(self) -> Iterator[Path]:
        return iter(dict.fromkeys(self.folders.values()))


def make(places: Places, limits: Limits) -> Cgroup | None:
    """A cgroup with the bounds of a job; None on a machine that has no place for one."""
    name = f"{_PREFIX}-{os.getpid()}-{started(os.getpid())}-{next(_numbers)}"
    made = Cgroup({controller: base / name for controller, base in places.folders.items()})
    try:
        for controller, folder in made.folders.items():
            folder.mkdir(exist_ok=True)
            for setting in settings(places.version, limits)[controller]:
                _write(folder, setting)
    except OSError as error:
        made.remove()
        raise PlatformError(
            "bound_refused",
            f"The kernel did not bound the {controller} of a box ({error}).",
            "Start the worker again; it then says what this machine can bound.",
        ) from error
    return made if made.folders else None


@functools.cache
def machine_cgroups() -> Places:
    """Where this process can make cgroups, and which bounds the kernel takes there; tried once."""
    return without_refused(machine_places())


def without_refused(places: Places) -> Places:
    """The places without the controllers whose bounds are not taken."""
    folders = {}
    for controller, base in places.folders.items():
        with suppress(PlatformError):
            if made := make(Places(places.version, {controller: base}), Limits()):
                made.remove()
                folders[controller] = base
    return Places(places.version, folders)


def sweep(places: Places) -> int:
    """End and remove what workers left that were killed; how many cgroups there were."""
    left = [
        folder
        for base in dict.fromkeys(places.folders.values())
        for folder in base.glob(f"{_PREFIX}-*")
        if _is_orphaned(folder.name)
    ]
    for folder in left:
        cgroup = Cgroup({"memory": folder})
        cgroup.kill()
        for pid in cgroup.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        cgroup.remove()
    return len(left)


def _write(folder: Path, setting: Setting) -> None:
    path = folder / setting.file
    try:
        path.write_text(setting.text)
        taken = path.read_text()
    except OSError:
        if setting.required:
            raise
        return
    if setting.required and not _same(taken, setting.text):
        raise OSError(errno.EINVAL, f"{path} holds {taken.strip()!r} instead of {setting.text}")


def _same(read: str, written: str) -> bool:
    """The kernel rounds bytes down to whole pages."""
    pairs = zip(read.split(), written.split(), strict=False)
    if len(read.split()) != len(written.split()):
        return False
    return all(a.isdigit() and 0 <= int(b) - int(a) < _ROUNDING for a, b in pairs)


def _fields(path: Path) -> dict[str, int]:
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


def _removed(folder: Path) -> bool:
    deadline = time.monotonic() + _REMOVED_WITHIN_S
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:  # busy until the last of its processes is reaped
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_EVERY_S)
        else:
            return True


def _is_orphaned(name: str) -> bool:
    words = name.removeprefix(f"{_PREFIX}-").split("-")
    if len(words) != 3 or not all(word.isdigit() for word in words):
        return False
    return started(int(words[0])) != int(words[1])


CGROUPS = Path("/sys/fs/cgroup")
_UNIFIED = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the kernel holds a container to, as it says itself; None for no bound."""

    memory: int | None  # bytes of all its processes together
    processes: int | None  # processes and threads
    processors: float | None  # how many it may keep busy


def cgroup_of(pid: int, proc: Path = PROC, root: Path = CGROUPS) -> Cgroup | None:
    """The cgroups a process is in; None where they cannot be seen from here."""
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
    stat = _counted(cgroup.folders["memory"] / "memory.stat")
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
    words = _read(folder / "cpu.max").split() or [
        _read(folder / "cpu.cfs_quota_us").strip(),
        _read(folder / "cpu.cfs_period_us").strip(),
    ]
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None  # "max", -1, or not there
    return int(words[0]) / int(words[1])


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # of the other version, or the group is going just now
        return ""


def _counted(path: Path) -> Mapping[str, int]:
    rows = (line.split() for line in _read(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _bound(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None
