"""What every test of endurance needs: a place in memory, a launcher of workers, and a run to compare with."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endurance.crew import Launcher, launching
from tests.endurance.verdict import ACCOUNTS, Undisturbed, undisturbed
from tests.kit.tiers import nightly

_MEMORY = Path("/dev/shm")
"""A file there outlives its process as on a disk, and nobody waits for it to be written."""


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    with launching() as made:
        yield made


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """What the first submissions of any store come to when nothing happens."""
    return undisturbed(tmp_path_factory.mktemp("alone"), ACCOUNTS)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder that is quick, where this machine has one."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="assay-endurance-", dir=_MEMORY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def kills_wanted() -> int:
    """How many kills at random moments, from ASSAY_KILLS; 0: as many as are planned."""
    return int(os.environ.get("ASSAY_KILLS", "0"))


@pytest.fixture(scope="session")
def how_long() -> float:
    """Times the default, from ASSAY_ENDURANCE: 20 makes hundreds of kills of tens."""
    return float(os.environ.get("ASSAY_ENDURANCE", "10" if nightly() else "1"))
