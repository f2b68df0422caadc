"""The test Hub with repositories of models in it, and rows that name them."""

from __future__ import annotations

from pathlib import Path

from evaluator.scorers.checkpoints import ModelHub
from evaluator.scorers.registry import ScorerRow
from tests.evaluator.scorers.tiny_models import row
from tests.kit.hub.server import HubServer

REPO = "authors/model"


def store(state: HubServer, folder: Path, token: str | None = None) -> ModelHub:
    """A cache in a folder, filled from the test Hub."""
    return ModelHub(folder / "cache", folder / "pins.json", state.endpoint, token)


def row_of(repository: str = REPO, **checkpoint: object) -> ScorerRow:
    """A row of one checkpoint."""
    return row(checkpoint={"id": repository, **checkpoint})
