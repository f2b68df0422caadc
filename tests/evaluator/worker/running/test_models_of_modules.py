"""Models of the Hub that a module names: fetched by the worker, for its box has no network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import PlatformError
from evaluator.hub.model_shelf import ModelShelf
from evaluator.isolation.job import Job
from evaluator.worker.running.module_box import Boxes
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Submission
from leaderboard.states import State
from tests.evaluator.rig import MODULE, FakeBackend, Rig

SHA = "0123456789" * 4
NAMING = {**MODULE, "assay.toml": f'name = "grey"\nmodels = ["owner/name@{SHA}"]'.encode()}


@dataclass
class Noting(FakeBackend):
    """Notes the jobs it is given."""

    jobs: list[Job] = field(default_factory=list)

    def start(self, *words: Any, **named: Any) -> Any:
        self.jobs.append(words[0])
        return super().start(*words, **named)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_the_box_gets_the_models_its_module_names(rig: Rig) -> None:
    rig.backend = backend = Noting()
    here = rig.folder / "models" / f"owner--name@{SHA}"
    here.mkdir(parents=True)
    named = rig.send(NAMING).submission
    assert named.models == (f"owner/name@{SHA}",)
    assert rig.worker().run_next()
    ((model,),) = {job.models for job in backend.jobs}
    assert (model.repo, model.revision, model.folder) == ("owner/name", SHA, here)
    assert Ledger(rig.store).status(named.submission_id).state is State.PUBLISHED


def test_a_module_that_names_none_fetches_none(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ModelShelf, "bring", never)
    rig.backend = backend = Noting()
    rig.send()
    assert rig.worker().run_next()
    assert {job.models for job in backend.jobs} == {()}


def test_a_machine_without_a_place_for_models_says_so(rig: Rig) -> None:
    named: Submission = rig.send(NAMING).submission
    role = rig.worker().scorers
    boxes = Boxes(role.isolation, role.own, role.limits)
    with (
        pytest.raises(PlatformError, match="no place for models"),
        boxes.boxed(named, rig.module(NAMING), rig.folder / "scratch"),
    ):
        raise AssertionError
