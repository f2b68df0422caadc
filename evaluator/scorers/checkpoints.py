"""Checkpoints by Hub id and commit, as safetensors unless an operator allows otherwise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import SubmitterError
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Source:
    """Where a checkpoint is read from.

    Attributes:
        place: a local folder (or file, where the row names one), whole and checked.
        name: for the record: `owner/name`, or the folder's path where it is the operator's own.
        revision: the commit; empty for a folder of the operator's own.
    """

    place: Path
    name: str
    revision: str

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


def resolve(row: ScorerRow, runtime: Runtime, role: str = "model") -> Source:
    """The files of a row's checkpoint, fetched if need be.

    Raises:
        SubmitterError: `checkpoint_missing` (not in the cache while offline, no such repository
            or commit, a gated one), `checkpoint_unsafe` (its weights are not safetensors).
        TransientError: `hub_unreachable`.
    """
    checkpoint = row.checkpoints[role]
    folder = runtime.folders.get(role)
    if folder is None:
        raise SubmitterError(
            "checkpoint_missing",
            f"{row.name} needs {checkpoint.id}, which is not on this machine.",
            f"Name a folder that holds it with --checkpoint {role}=FOLDER.",
        )
    if not folder.exists():
        raise SubmitterError("checkpoint_missing", f"{row.name}: there is no {folder}.")
    return Source(folder, str(folder), "")


def check_class(source: Source, accepted: tuple[str, ...]) -> None:
    """Refuse a checkpoint of another `model_type` than the family knows, before it is loaded.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, naming what it is and what is wanted.
    """
    found = json.loads((source.place / "config.json").read_bytes()).get("model_type", "")
    if found not in accepted:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} holds a model of type {found or 'unknown'!r}; "
            f"wanted: {' or '.join(accepted)}.",
        )
