"""Tiny pipelines on disk, saved once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evaluator.generation import tiny_pipelines


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each tiny pipeline, by name; `checked` is SD1.5 with a safety checker."""
    from evaluator.generation.pipelines import quieten

    quieten()
    root = tmp_path_factory.mktemp("pipelines")
    made: dict[str, Any] = {
        "sd15": tiny_pipelines.sd15(),
        "checked": tiny_pipelines.sd15(with_checker=True),
        "sdxl": tiny_pipelines.sdxl(),
        "sd3": tiny_pipelines.sd3(),
        "pixart": tiny_pipelines.pixart(),
    }
    for name, pipe in made.items():
        pipe.save_pretrained(root / name)
    return {name: root / name for name in made}
