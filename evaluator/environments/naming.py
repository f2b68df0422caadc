"""Locks of modules: an author's own or one of the operator's, read, audited and named for records."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.problems import Problem, one_error
from benchmarks.settings.model import value_of
from evaluator.environments.advisories import known_findings, read_advisories
from evaluator.environments.lock import MAX_BYTES, Lock, read_pins

OWN = "requirements.lock"
"""File of a module that brings its own environment."""
SUFFIX = ".lock"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""Of an operator's environment."""
NEEDED = "pillow"
"""What the box itself reads images with."""
_CLIENT, _OLDEST_CLIENT = "huggingface-hub", 1
_MAKE = (
    "Make it for Python 3.11: uv pip compile --generate-hashes --python-version 3.11 "
    f"requirements.in -o {OWN}"
)


@dataclass(frozen=True, slots=True)
class NamedLock:
    """A lock by the name it has in records."""

    name: str  # `requirements.lock`, or that of an operator's environment
    lock: Lock

    @property
    def record(self) -> str:
        """`name@SHA-256`: what a submission was taken with."""
        return f"{self.name}@{self.lock.sha256}"


def examined(content: bytes, file: str) -> tuple[Lock | None, tuple[Problem, ...]]:
    """A lock, and everything that is wrong with it; None where anything is."""
    lock, faults = read_pins(content)
    problems = [
        Problem("bad_lock", f"The lock cannot be used: {one.message}.", _MAKE, file, one.line)
        for one in faults
    ]
    if not faults:
        problems += _unusable(lock, file)
    return (None if problems else lock), tuple(problems)


def operator_names() -> tuple[str, ...]:
    """Names of the operator's environments."""
    named = value_of("locks", os.environ)
    found = [] if named is None else sorted(Path(named).glob(f"*{SUFFIX}"))
    return tuple(path.stem for path in found if NAME.fullmatch(path.stem))


def operator_lock(name: str, otherwise: str = f"Or bring a lock of your own, {OWN}.") -> NamedLock:
    """One of the operator's environments; `otherwise`: what to do where there is none of that name.

    Raises:
        SubmitterError: `unknown_environment`; there is none of that name.
        PlatformError: `bad_environment`; its lock cannot be used.
    """
    folder, known = value_of("locks", os.environ), operator_names()
    if folder is None or name not in known:
        raise SubmitterError(
            "unknown_environment",
            f"There is no environment {name[:80]!r} here.",
            f"Known: {', '.join(known) or 'none'}. {otherwise}",
        )
    path = Path(folder) / f"{name}{SUFFIX}"
    lock, problems = examined(_head(path), path.name)
    if lock is None:
        told = " ".join(f"{one.place}: {one.message}" for one in problems)
        raise PlatformError("bad_environment", told, "An operator has to mend it.")
    return NamedLock(name, lock)


def builtin_lock(name: str) -> NamedLock:
    """One of the operator's environments, for a built-in metric, which our own code runs in.

    Raises:
        SubmitterError: `unknown_environment`; there is none of that name.
        PlatformError: `bad_environment`; its lock cannot be used, or not with our code.
    """
    named = operator_lock(name, f"Put {name}{SUFFIX} into the folder of ASSAY_LOCKS.")
    found = named.lock.version(_CLIENT)
    if found is not None and int(found.partition(".")[0]) < _OLDEST_CLIENT:
        raise PlatformError(
            "bad_environment",
            f"{name}{SUFFIX} pins {_CLIENT} {found}, with which no built-in metric runs.",
            f"Lock {_CLIENT} {_OLDEST_CLIENT} or later, or send a scoring module that names it.",
        )
    return named


def recorded_lock(record: str, module: Path) -> NamedLock:
    """The lock that a module was taken with.

    Args:
        record: see `NamedLock.record`.
        module: its folder.

    Raises:
        SubmitterError: something is wrong with the author's lock.
        PlatformError: `environment_changed`; the lock is another now.
    """
    name = record.rpartition("@")[0]
    if name == OWN:
        lock, problems = examined(_head(module / OWN), OWN)
        if lock is None:
            raise one_error(problems)
        found = NamedLock(OWN, lock)
    else:
        found = operator_lock(name)
    if found.record != record:
        raise PlatformError(
            "environment_changed",
            f"The environment {name} is another here than when this was sent.",
            "Put its lock back, or send another version of the metric.",
        )
    return found


def _head(path: Path) -> bytes:
    """As much of a lock as is needed to read it, or to refuse its length."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PlatformError(
            "bad_environment", f"The lock {path.name} cannot be read: {error.strerror}."
        ) from error


def _unusable(lock: Lock, file: str) -> Iterator[Problem]:
    if lock.version(NEEDED) is None:
        yield Problem(
            "no_pillow",
            f"It does not pin {NEEDED}, with which images are read before a scorer sees them.",
            f"Add {NEEDED} to what it is made from. {_MAKE}",
            file,
        )
    yield from _advisories(lock, file, value_of("accepted_advisories", os.environ))


def _advisories(lock: Lock, file: str, accepted: Sequence[str]) -> Iterator[Problem]:
    for found in known_findings(lock.pins, read_advisories(), datetime.now(UTC).date()):
        if not set(found.ids) & set(accepted):
            yield Problem(
                "known_defect",
                f"{found.pin.name} {found.pin.version} has {' '.join(found.ids)}: {found.about}",
                "Pin a version without it, or ask the operator to accept it.",
                file,
                found.pin.line,
            )
