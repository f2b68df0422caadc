"""Job: code that is to be run in a box."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from evaluator.isolation.limits import Limits


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A public model of the Hub, fetched before the box starts."""

    repo: str  # `owner/name`
    revision: str  # the commit, 40 hexadecimal digits
    # here; holds `refs/main` with the revision and `snapshots/<revision>/` with the files, as a
    # cache of the Hub's client does
    folder: Path

    @property
    def folder_inside(self) -> str:
        """Name of the folder in a cache of the Hub's client."""
        return f"models--{self.repo.replace('/', '--')}"

    @property
    def snapshot_inside(self) -> str:
        """Where the model's files are in such a cache."""
        return f"{self.folder_inside}/snapshots/{self.revision}"


@dataclass(frozen=True, slots=True)
class Job:
    """One submission to be run."""

    folder: Path  # the module's, unpacked; the box sees it read-only
    entry_point: str = "scorer:Scorer"  # `module:Class`
    weights: str | None = None  # a file inside the folder, as the manifest names it, or None
    limits: Limits = field(default_factory=Limits)  # what the job may use
    device: str = "cpu"  # handed to the constructor if it names it
    models: tuple[ModelFiles, ...] = ()  # of the Hub, as the manifest names them
