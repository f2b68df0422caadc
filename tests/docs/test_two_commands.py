"""The two commands that matter."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.running_documents import Supplies, copy_of_project, plain_environment
from tests.kit.processes import finished

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
def test_make_demo_and_make_test_are_there(tmp_path: Path, supplies: Supplies) -> None:
    """`make demo` for real, over a finished store; of `make test` what it would run."""
    folder = tmp_path / "assay"
    folder.mkdir()
    copy_of_project(folder)
    shutil.copytree(supplies.store(), folder / ".assay" / "store")

    def make(*words: str) -> str:
        environment = plain_environment(tmp_path)
        done = finished(["make", *words], cwd=folder, env=environment, within_s=500)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = make("demo", "SERVE=0")
    assert "demo_gecko" in said
    assert "demo-alpha" in said
    would = make("--dry-run", "test")
    assert all(word in would for word in ("ruff check", "mypy", "python -m pytest"))
    assert "uv pip install" not in would  # the environment is there
