"""Tiny pipelines on disk, saved once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluator.generation import tiny_pipelines
from tests.evaluator.scorers.common import later


class SavedPipelines(dict[str, Path]):
    """Folders of tiny pipelines by name, each saved when it is first asked for."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def __missing__(self, name: str) -> Path:
        checked = name == "checked"
        make = tiny_pipelines.sd15 if checked else getattr(tiny_pipelines, name)
        make(**{"with_checker": True} if checked else {}).save_pretrained(self.root / name)
        self[name] = self.root / name
        return self[name]


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each tiny pipeline, by name; `checked` is SD1.5 with a safety checker."""
    later("evaluator.generation.pipelines").quieten()
    return SavedPipelines(tmp_path_factory.mktemp("pipelines"))
