"""Boxes that did not end: while any of their processes runs, this machine takes no further job.

Kept as files, so that a worker that is started anew, and `doctor`, know of them as well.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from evaluator.isolation.supervising import processes

_LOG = logging.getLogger(__name__)


def marks_folder() -> Path:
    """Where this user's marks are kept; they need not outlast a restart of the machine."""
    if os.geteuid() == 0:
        return Path("/run/assay/broken")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    name = f"assay-{os.geteuid()}"
    return (Path(runtime) if runtime else Path(tempfile.gettempdir())) / name / "broken"


def mark(pids: Iterable[int], folder: Path | None = None) -> None:
    """Remember processes that survived the end of their box.

    Args:
        pids: of the processes.
        folder: for the marks; this user's where None.
    """
    place = folder or marks_folder()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for pid in pids:
            if (started := processes.started(pid)) is not None:
                (place / f"{pid}-{started}").touch()
    except OSError as error:
        # This worker knows by itself; only one that is started anew will not.
        _LOG.error("Boxes that did not end cannot be marked in %s: %s", place, error)


def survivors(folder: Path | None = None) -> tuple[int, ...]:
    """Processes of boxes that did not end, and still run; marks of others are taken away.

    Marks that another user of the machine could have made count for nothing.

    Args:
        folder: of the marks; this user's where None.
    """
    place = folder or marks_folder()
    if not (_is_ours(place.parent) and _is_ours(place)):
        return ()
    alive = []
    for path in sorted(place.iterdir()):
        pid, _, started = path.name.partition("-")
        if not (pid.isdigit() and started.isdigit()):
            continue
        if processes.started(int(pid)) == int(started):
            alive.append(int(pid))
        else:
            path.unlink(missing_ok=True)
    return tuple(alive)


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:  # it is not there, or not for us
        return False
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o002
    )
