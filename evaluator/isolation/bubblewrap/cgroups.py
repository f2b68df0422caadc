"""Bounds that the kernel holds a whole box to: memory, processes and processors, by cgroups.

Of the two versions of cgroups, whichever gives this process a folder to write in is used; where
neither does, the watchdog is left. Nothing is taken for granted: what is written is read back.
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
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator.isolation.bubblewrap.cgroup_places import Places, machine_places
from evaluator.isolation.limits import Limits
from evaluator.isolation.supervising.processes import started

_PREFIX = "assay-box"
_PERIOD_US = 100_000
_ROUNDING = 1 << 16
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
    """The cgroup of one box; in version 1 one per controller, all of the same name.

    Attributes:
        folders: controller to folder; only those whose bounds the kernel took.
    """

    folders: Mapping[str, Path]

    def add(self, pid: int) -> None:
        """Put a process in; what it starts from then on is in as well."""
        for folder in self._each():
            (folder / "cgroup.procs").write_text(str(pid))

    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in it for lack of memory."""
        folder = self.folders.get("memory")
        if folder is None:
            return False
        counted = _fields(folder / "memory.events") | _fields(folder / "memory.oom_control")
        return counted.get("oom_kill", 0) > 0

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
    """A cgroup with the bounds of a job; None on a machine that has no place for one.

    Args:
        places: where cgroups may be made.
        limits: of the job.

    Raises:
        PlatformError: `bound_refused`, the kernel does not take one of the bounds.
    """
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
    return held(machine_places())


def held(places: Places) -> Places:
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
