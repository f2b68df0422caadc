"""Containers that a killed worker left behind."""

from __future__ import annotations

import os

from evaluator.isolation.container_arguments import BOX_LABEL, SUPERVISOR_LABEL
from evaluator.isolation.container_engine import Engine, EngineError
from evaluator.isolation.processes import PROC, started

_LISTED = f'{{{{.Id}}}} {{{{index .Config.Labels "{SUPERVISOR_LABEL}"}}}}'


def this_supervisor() -> str:
    """What names this process for good: number, start, and the namespace that counts both."""
    return f"{os.getpid()}-{started(os.getpid())}-{_namespace()}"


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
    words = told.partition(" ")[2].split("-")
    if len(words) != 3 or not words[0].isdigit():
        return False
    pid, began, namespace = words
    # In another namespace the number says nothing here; that worker's own machine sweeps it.
    return namespace == _namespace() and str(started(int(pid))) != began


def _namespace() -> str:
    return str((PROC / "self/ns/pid").stat().st_ino)
