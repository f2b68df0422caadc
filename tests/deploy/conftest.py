"""What the tests of images share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.rig import Rig, for_user, rig


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """An engine of the tests' own."""
    with rig(tmp_path_factory.mktemp("trees")) as found:
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty volume."""
    (tmp_path / "home").mkdir(mode=0o700)
    return for_user(tmp_path / "home")
