"""`models`: what is kept on this machine, and giving it up."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.hub.model_shelf import ModelShelf
from tests.evaluator.commands.submitting import Run

MODEL = f"owner/model@{'0' * 40}"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelShelf:
    monkeypatch.setenv("ASSAY_MODELS", str(tmp_path / "models"))
    place = tmp_path / "models" / MODEL.replace("/", "--")
    place.mkdir(parents=True)
    (place / "model.safetensors").write_bytes(b"w" * 4096)
    return ModelShelf(tmp_path / "models")


def test_models_are_listed_and_forgotten(run: Run, shelf: ModelShelf) -> None:
    (listed,) = run("models", "list", "--json").json
    assert (listed["model"], listed["bytes"], listed["in_use"]) == (MODEL, 4096, False)
    assert MODEL in run("models", "list").out
    assert run("models", "forget", MODEL).code == 0
    assert run("models", "list", "--json").json == []


def test_what_is_not_there_or_in_use_is_not_forgotten(run: Run, shelf: ModelShelf) -> None:
    other = run("models", "forget", f"owner/other@{'0' * 40}")
    assert other.code == 1
    assert "unknown_model" in other.err
    with shelf.lent([MODEL]):
        used = run("models", "forget", MODEL)
    assert used.code == 3
    assert "model_in_use" in used.err
    assert [one.model for one in shelf.models()] == [MODEL]
