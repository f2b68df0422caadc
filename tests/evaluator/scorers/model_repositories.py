"""The test Hub with repositories of models in it, and rows that name them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.scorers.checkpoints import ModelHub
from evaluator.scorers.registry import ScorerRow
from tests.evaluator.scorers.tiny_models import row
from tests.kit.hub.answers import hub
from tests.kit.hub.messages import Reply, Request
from tests.kit.hub.server import HubServer, running_hub

REPO = "authors/model"


@contextmanager
def hub_of_models(patch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A running Hub that answers for models what the test Hub answers for data sets."""

    def models(state: HubServer, request: Request) -> Reply:
        target = request.target.replace("/api/models/", "/api/datasets/", 1)
        if re.fullmatch(r"/[^/]+/[^/]+/resolve/.*", target):
            target = f"/datasets{target}"
        return hub(state, dataclasses.replace(request, target=target))

    patch.setattr("tests.kit.hub.server.hub", models)
    with running_hub() as state:
        yield state


def store(state: HubServer, folder: Path, token: str | None = None) -> ModelHub:
    """A cache in a folder, filled from the test Hub."""
    return ModelHub(folder / "cache", folder / "pins.json", state.endpoint, token)


def row_of(repository: str = REPO, **checkpoint: object) -> ScorerRow:
    """A row of one checkpoint."""
    return row(checkpoint={"id": repository, **checkpoint})
