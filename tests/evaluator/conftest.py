"""What every room of the evaluator's tests may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluator.scorers.tiny_models import save_clip
from tests.kit.worker import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small random CLIP."""
    return save_clip(tmp_path_factory.mktemp("clip"))
