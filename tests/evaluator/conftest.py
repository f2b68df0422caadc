"""What every room of the evaluator's tests may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluator.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)
