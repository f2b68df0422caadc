"""What the tests of images share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.deploy.rig import Rig, for_user, rig


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """An engine of the tests' own."""
    with rig(tmp_path_factory.mktemp("trees")) as found:
        yield found


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder on a way that every user may go, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="assay-deploy-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def site_libraries(open_folder: Path) -> Path:
    """A clean environment with what requirements-app.txt pins, and nothing else."""
    folder = open_folder / "venv"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    words = ["--quiet", "--python", str(folder / "bin/python"), "--require-hashes", "--no-build"]
    lock = REPOSITORY / "requirements-app.txt"
    subprocess.run([uv, "pip", "install", *words, "-r", lock], check=True)
    # Compiled once, what the site imports of it: every start would do it again.
    warm = "import gradio, huggingface_hub, mcp.server.fastmcp, pandas, scipy"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([folder / "bin/python", "-c", warm], cwd="/", env=environment, check=True)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty volume."""
    (tmp_path / "home").mkdir(mode=0o700)
    return for_user(tmp_path / "home")
