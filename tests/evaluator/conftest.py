"""What every room of the evaluator's tests may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evaluator.scorers.model_repositories import hub_of_models
from tests.evaluator.scorers.tiny_models import save_clip
from tests.kit.hub.server import HubServer
from tests.kit.worker import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A Hub with repositories of models."""
    with hub_of_models(monkeypatch) as server:
        yield server


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small random CLIP."""
    return save_clip(tmp_path_factory.mktemp("clip"))
