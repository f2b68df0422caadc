"""Reads the lock files: which version of which package, and the hashes of its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LOCKS = ("requirements-app.txt", "requirements.txt", "requirements-dev.txt", "requirements-uv.txt")
"""What may be installed, of any role: every file of these is looked at."""
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class LockError(ValueError):
    """A lock file does not pin what it should."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One package as a lock has it.

    Attributes:
        name: as package indexes compare it.
        version: the only one that may be installed.
        hashes: SHA-256 of each of its files, any one of which may be installed.
    """

    name: str
    version: Version
    hashes: frozenset[str]


def read_lock(path: Path) -> tuple[Pin, ...]:
    """All pins of a lock file.

    Raises:
        LockError: a line pins no version, has no hash, or names a place to download from.
        OSError: the file cannot be read.
    """
    joined = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.strip() for line in joined.splitlines())
    pins = tuple(_pin(path, line) for line in lines if line and not line.startswith("#"))
    if not pins:
        raise LockError(f"{path} pins nothing.")
    return pins


def _pin(path: Path, line: str) -> Pin:
    hashes = frozenset(_HASH.findall(line))
    text = _HASH.sub("", line).strip()
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise LockError(f"{path}: {text!r} pins no package. Run `make lock`.") from error
    exact = [each for each in requirement.specifier if each.operator == "=="]
    if len(exact) != 1 or len(requirement.specifier) != 1 or "*" in exact[0].version:
        raise LockError(f"{path}: {text!r} does not pin one version. Run `make lock`.")
    if not hashes:
        raise LockError(f"{path}: {text!r} has no hash. Run `make lock`.")
    return Pin(canonicalize_name(requirement.name), Version(exact[0].version), hashes)
