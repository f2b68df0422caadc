"""A store with a desk, and a Hub, for the tests of submissions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evaluator.rig import Rig
from tests.evaluator.scorers.model_repositories import hub_of_models
from tests.hub.server import HubServer


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_of_models(monkeypatch) as state:
        yield state
