"""What stands on a model shelf can be listed and taken away, but not from under a box."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from benchmarks.errors import SubmitterError, TransientError
from evaluator.hub import shelf_room
from evaluator.hub.model_shelf import ModelShelf
from tests.evaluator.scorers.model_repositories import REPO, hub_of_models
from tests.hub.server import HubServer

OLD, NEW = f"old/model@{'0' * 40}", f"new/model@{'1' * 40}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with hub_of_models(monkeypatch) as state:
        yield state


def put(shelf: ModelShelf, model: str, used_at: float, n_bytes: int = 4096, end: str = "") -> Path:
    place = shelf.folder / f"{model.replace('/', '--')}{end}"
    place.mkdir(parents=True)
    (place / "model.safetensors").write_bytes(b"w" * n_bytes)
    mark = shelf.folder / f"{model.replace('/', '--')}.used"
    mark.touch()
    os.utime(mark, (used_at, used_at))
    return place


@pytest.fixture
def shelf(tmp_path: Path) -> ModelShelf:
    made = ModelShelf(tmp_path / "models")
    put(made, NEW, used_at=2000.0)
    put(made, OLD, used_at=1000.0, n_bytes=8192)
    return made


def test_models_are_listed_with_size_and_last_use_the_oldest_first(shelf: ModelShelf) -> None:
    found = [(one.model, one.n_bytes, one.last_used, one.in_use) for one in shelf.models()]
    assert found == [(OLD, 8192, 1000.0, False), (NEW, 4096, 2000.0, False)]


def test_a_shelf_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert ModelShelf(tmp_path / "nowhere").models() == ()


def test_a_model_that_is_forgotten_frees_its_bytes(shelf: ModelShelf) -> None:
    assert shelf.forget(OLD) == 8192
    assert [one.model for one in shelf.models()] == [NEW]
    with pytest.raises(SubmitterError) as caught:
        shelf.forget(OLD)
    assert caught.value.code == "unknown_model"


def test_what_a_box_uses_cannot_be_taken_away(shelf: ModelShelf) -> None:
    with shelf.lent([OLD]) as (model,):
        assert model.folder.is_dir()
        assert {one.model: one.in_use for one in shelf.models()} == {OLD: True, NEW: False}
        with pytest.raises(TransientError) as caught:
            shelf.forget(OLD)
        assert caught.value.code == "model_in_use"
        assert (model.folder / "model.safetensors").is_file()
    assert shelf.forget(OLD) == 8192


def test_lending_a_model_makes_it_the_last_one_used(shelf: ModelShelf) -> None:
    with shelf.lent([OLD]):
        pass
    assert [one.model for one in shelf.models()] == [NEW, OLD]


def test_a_model_that_is_being_fetched_cannot_be_taken_away(shelf: ModelShelf) -> None:
    part = put(shelf, f"part/model@{'2' * 40}", 1.0, end=".part")
    (one, *_) = shelf.models()
    assert (one.place, one.whole) == (part, False)
    with FileLock(shelf.folder / f"part--model@{'2' * 40}.lock"):
        assert shelf_room.taken_away(one) == 0
    assert shelf_room.taken_away(one) == one.n_bytes
    assert not part.exists()


def test_what_a_removal_left_that_was_cut_off_is_swept(shelf: ModelShelf) -> None:
    left = shelf.folder / "0123.gone"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"w" * 4096)
    assert shelf_room.sweep(shelf.folder) == 4096
    assert not left.exists()


def test_a_model_that_was_taken_away_is_fetched_again(hub: HubServer, tmp_path: Path) -> None:
    sha = hub.add(REPO, {"config.json": b"{}", "model.safetensors": b"w"}).branches["main"]
    shelf = ModelShelf(tmp_path / "models", hub.endpoint)
    named = f"{REPO}@{sha}"
    shelf.bring([named])
    shelf.forget(named)
    with shelf.lent([named]) as (model,):
        assert (model.folder / "refs/main").read_text() == sha
