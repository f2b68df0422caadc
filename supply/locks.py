"""Reads the lock files: which version of which package, and the hashes of its files."""

from __future__ import annotations

from pathlib import Path

from evaluator.environments.lock import Pin, read_pins

LOCKS = (
    "requirements-app.txt",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-uv.txt",
    "requirements-watch.txt",
)
"""What may be installed, of any role: every file of these is looked at."""


class LockError(ValueError):
    """A lock file does not pin what it should."""


def read_lock(path: Path) -> tuple[Pin, ...]:
    """All pins of a lock file.

    Raises:
        LockError: a line pins no version, has no hash, or names a place to download from.
        OSError: the file cannot be read.
    """
    lock, faults = read_pins(path.read_bytes())
    if faults:
        said = "; ".join(f"line {one.line}: {one.message}" for one in faults)
        raise LockError(f"{path}: {said}. Run `make lock`.")
    return lock.pins
