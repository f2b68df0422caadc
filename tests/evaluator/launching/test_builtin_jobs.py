"""Built-in metrics in jobs of the Hub: run there, judged here, and only where they fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.scorers.fitting import capacity_of_flavor
from evaluator.submission.builtin import LAYERS, source_of
from leaderboard.records import Event
from leaderboard.states import State
from tests.evaluator.launching.test_job_launcher import HubTime, launcher, once, scoring, started
from tests.evaluator.submission.builtins import ROWS, add_clip, form, models_hub
from tests.kit.hub.jobs import Job
from tests.kit.hub.server import HubServer
from tests.kit.worker import ROOT, Rig, submission

LARGE = "viescore-sc"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with models_hub(monkeypatch, tmp_path) as server:
        server.jobs.hook = Job.run
        yield server


@pytest.fixture
def rig(hub: HubServer, tmp_path: Path) -> Rig:
    return Rig(tmp_path, clock=HubTime(hub))


@pytest.mark.slow
def test_a_job_scores_a_built_in_metric_and_a_judge_elsewhere_publishes_it(
    hub: HubServer, rig: Rig, tmp_path: Path
) -> None:
    add_clip(hub, tmp_path)
    name = rig.desk.submit_builtin(form(), account=ROOT).status.submission.submission_id
    hub.jobs.hook = scoring(rig)
    once(launcher(hub, rig), hub)
    assert rig.status(name).to_judge
    rig.worker("judge").run_all()
    assert rig.state(name) is State.PUBLISHED
    assert rig.result(name).isolation == LAYERS


def test_no_job_is_started_for_what_its_machine_cannot_hold(hub: HubServer, rig: Rig) -> None:
    known = submission(LARGE, source=source_of(ROWS[LARGE]), received_at=rig.clock())
    events = [Event(at=rig.clock(), state=s, by=ROOT.key) for s in (State.RECEIVED, State.QUEUED)]
    rig.ledger.receive(known, b"{}", events)
    small = launcher(hub, rig, flavor="t4-small")
    assert (small.turn().started, small.turn().started, started(hub)) == (0, 0, [])
    assert rig.state(known.submission_id) is State.QUEUED
    assert launcher(hub, rig, flavor="l4x1").turn().started == 1


@pytest.mark.parametrize(
    ("flavor", "gb"), [("t4-small", 16), ("l4x1", 24), ("l40sx4", 48), ("a10g-large", 24)]
)
def test_a_flavor_is_known_by_its_gpu(flavor: str, gb: int) -> None:
    found = capacity_of_flavor(flavor)
    assert found is not None and found.memory_bytes == gb * 1e9
    assert capacity_of_flavor("cpu-upgrade") is None
