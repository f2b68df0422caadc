"""Tiny pipelines on disk, saved once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluator.generation import tiny_pipelines
from tests.evaluator.scorers.common import later


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each tiny pipeline, by name; `checked` is SD1.5 with a safety checker."""
    later("evaluator.generation.pipelines").quieten()
    root = tmp_path_factory.mktemp("pipelines")
    for name in ("sd15", "sdxl", "sd3", "pixart"):
        getattr(tiny_pipelines, name)().save_pretrained(root / name)
    tiny_pipelines.sd15(with_checker=True).save_pretrained(root / "checked")
    return {folder.name: folder for folder in root.iterdir()}
