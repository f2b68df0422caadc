"""Sweep of a killed worker's containers."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluator.isolation.containers.arguments import BOX_LABEL, SUPERVISOR_LABEL
from evaluator.isolation.containers.engine import Engine, EngineError
from evaluator.isolation.supervising.processes import PROC, started

_LISTED = f'{{{{.Id}}}} {{{{index .Config.Labels "{SUPERVISOR_LABEL}"}}}}'
_PREFIX = "assay-start-"


def this_supervisor() -> str:
    """What names this process for good: number, start, and the namespace that counts both."""
    return f"{os.getpid()}-{started(os.getpid())}-{_namespace()}"


@contextmanager
def start_folder(place: Path | None = None) -> Iterator[Path]:
    """A folder for files that a container needs only while it starts; removed afterwards.

    Args:
        place: folder to make it in; the system's own for temporary files if None.
    """
    prefix = f"{_PREFIX}{this_supervisor()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place) as name:
        yield Path(name)


def sweep_folders(place: Path | None = None) -> int:
    """Remove the `start_folder`s of this user's workers that live no longer; how many there were.

    Args:
        place: folder they were made in; the system's own for temporary files if None.
    """
    listed = (place or Path(tempfile.gettempdir())).glob(f"{_PREFIX}*")
    left = [folder for folder in listed if _is_own_folder(folder) and _has_no_worker(folder)]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)  # another worker may sweep as well
    return len(left)


def sweep(engine: Engine) -> int:
    """Remove the boxes of workers that live no longer; how many there were.

    Raises:
        EngineError: the engine does not answer.
    """
    listed = engine.call("ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={BOX_LABEL}=1")
    left = [name for name in listed.split() if _is_orphaned(engine, name)]
    for name in left:
        engine.remove(name)
    return len(left)


def _is_orphaned(engine: Engine, name: str) -> bool:
    try:
        told = engine.call("container", "inspect", "--format", _LISTED, name)
    except EngineError:  # gone since it was listed
        return False
    return _is_gone(told.partition(" ")[2])


def _has_no_worker(folder: Path) -> bool:
    return _is_gone(folder.name.removeprefix(_PREFIX).rpartition("-")[0])


def _is_own_folder(path: Path) -> bool:
    """No link, and nobody else's: anyone may write in a folder for temporary files."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_gone(supervisor: str) -> bool:
    """Whether a worker named by `this_supervisor` lives no longer; False where that is not told."""
    words = supervisor.split("-")
    if len(words) != 3 or not words[0].isdigit():
        return False
    pid, began, namespace = words
    # In another namespace the number says nothing here; that worker's own machine sweeps it.
    return namespace == _namespace() and str(started(int(pid))) != began


def _namespace() -> str:
    return str((PROC / "self/ns/pid").stat().st_ino)
