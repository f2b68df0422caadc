"""Fingerprint of a run of a built-in metric: runs that share it give the same scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.errors import PlatformError
from evaluator import scorers
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime
from evaluator.scoring import images
from evaluator.scoring.in_process.device import versions

CONTRACT_VERSION = 1
"""Raised when the same scorer could be given other inputs for the same pair."""

_SCORERS = Path(scorers.__file__).parent
_IMAGES = Path(images.__file__).parent


def fingerprint_of(row: ScorerRow, runtime: Runtime) -> str:
    """SHA-256 over everything that can change a score or an embedding, as 64 hex digits.

    What only describes a row is left out; so are batch sizes, which change no more than rounding.
    Checkpoints count by commit, and an operator's own folders by their bytes.

    Raises:
        SubmitterError: a checkpoint that is not there.
        TransientError: the Hub is out of reach.
    """
    said = {
        "contract": CONTRACT_VERSION,
        "scorer": row.name,
        "family": row.family,
        "options": row.options,
        "checkpoints": {
            role: _identity(resolve(row, runtime, role), row.checkpoints[role].file)
            for role in _roles(row, runtime)
        },
        "questions": _content(runtime.questions) if runtime.questions else "",
        "remote_code": runtime.trust_remote_code,
        "dtype": runtime.dtype or row.dtype,
        "device": runtime.device.split(":")[0],
        "packages": versions(),
        "code": _code(row.family),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _roles(row: ScorerRow, runtime: Runtime) -> list[str]:
    """Checkpoints that are read: an operator's own folder of a model holds its processor, too."""
    own = "model" in runtime.folders and "processor" not in runtime.folders
    return sorted(role for role in row.checkpoints if not (own and role == "processor"))


def _identity(source: Source, file: str) -> list[str]:
    if source.revision:
        return [source.name, source.revision, file]
    return [_content(source.place), file]


def _content(place: Path) -> str:
    """Hash of the bytes and names of a file, or of all files of a folder."""
    whole = hashlib.sha256()
    paths = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    for path in paths:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        name = path.relative_to(place).as_posix() if path != place else ""
        whole.update(f"{name}\0{digest}\0".encode())
    return whole.hexdigest()


def _code(family: str) -> str:
    whole = hashlib.sha256()
    for path in _code_files(family):
        whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def _code_files(family: str) -> Iterator[Path]:
    found = find_spec(f"evaluator.scorers.families.{family}")  # found, but not imported
    if found is None or found.origin is None:
        raise PlatformError("bad_scorer_row", f"There is no family {family!r}.")
    yield Path(found.origin)
    yield from sorted((_SCORERS / "models").rglob("*.py"))
    yield from sorted(_IMAGES.glob("*.py"))
