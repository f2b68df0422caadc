"""Small random models under the names that rows of built-in metrics give, on the test Hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.checkpoints import ModelHub
from evaluator.scorers.registry import ScorerRow, load_rows
from leaderboard.submission_service import BuiltinForm
from tests.evaluator.scorers.model_repositories import store
from tests.evaluator.scorers.tiny_models import blip2_t5, save_clip, saved
from tests.kit.hub.server import HubServer, running_hub

DUAL, VLM = "clipscore-hessel", "vqascore-instructblip-xl"
ROWS = load_rows()
CLIP, BLIP2 = (ROWS[name].checkpoints["model"].id for name in (DUAL, VLM))


def form(name: str = DUAL, **more: Any) -> BuiltinForm:
    return BuiltinForm(name, **more)


@contextmanager
def models_hub(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[HubServer]:
    """A Hub without models that this process takes for the only one, with an empty cache."""
    with running_hub() as state:
        use(patch, store(state, folder))
        yield state


def use(patch: pytest.MonkeyPatch, hub: ModelHub) -> None:
    patch.setattr(ModelHub, "of_environment", classmethod(lambda _: hub))


def for_other_processes(patch: pytest.MonkeyPatch, hub: HubServer, home: Path) -> None:
    """They know the Hub and its cache by the environment alone."""
    for name, value in (("HF_HOME", str(home)), ("HF_ENDPOINT", hub.endpoint)):
        patch.setenv(name, value)
    use(patch, ModelHub(home / "hub", home / "assay_checkpoints.json", hub.endpoint))


def add_clip(state: HubServer, folder: Path, **more: Any) -> str:
    """The checkpoint of the dual encoder; its commit."""
    files = _files(save_clip(folder / "clip"))
    return state.add(CLIP, files, kind="models", **more).branches["main"]


def add_vlm(state: HubServer, folder: Path) -> str:
    """The checkpoint of the VLM; its commit."""
    place = saved(folder / "blip2", *blip2_t5(instruct=True))
    return state.add(BLIP2, _files(place), kind="models").branches["main"]


def _files(place: Path) -> dict[str, bytes]:
    found = (path for path in place.rglob("*") if path.is_file())
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in found}


def change_row(patch: pytest.MonkeyPatch, name: str = DUAL, **changes: Any) -> ScorerRow:
    """From now on the table has another row of that name."""
    row = ROWS[name].model_copy(update=changes)
    for module in (
        "submission.builtin",
        "worker.scorer_role",
        "submission.service",
        "reevaluating",
    ):
        patch.setattr(f"evaluator.{module}.load_rows", lambda: {**ROWS, name: row})
    return row


def emptied(hub: ModelHub) -> ModelHub:
    """The same Hub with nothing in its cache."""
    return replace(hub, cache=hub.cache.with_name("empty"), pins=hub.pins.with_name("none.json"))


def manifest(content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content)
    return found
