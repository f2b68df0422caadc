"""Built-in metrics that were submitted: queued, run in the worker's process, ranked and judging."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.environments.naming import operator_lock
from evaluator.reevaluating import outdated_builtins, renew_builtins
from evaluator.scorers.checkpoints import ModelHub
from evaluator.scorers.fitting import Capacity
from evaluator.scoring.engine import EngineOptions
from evaluator.submission.builtin import LAYERS, digest_of
from leaderboard.accounts import ASSAY
from leaderboard.models.grid import ranked_metrics
from leaderboard.records import Kind
from leaderboard.states import State
from tests.evaluator.environments.wheels import operator_environments
from tests.evaluator.submission import builtins
from tests.evaluator.worker.rigs import DEMO, DemoRig, ModelRig, drawn
from tests.kit.hub.server import HubServer
from tests.kit.worker import ROOT, Killed, Rig


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    with builtins.models_hub(monkeypatch, tmp_path) as state:
        yield state


def sent(rig: Rig, name: str = builtins.DUAL) -> str:
    return rig.desk.submit_builtin(
        builtins.form(name), account=ROOT
    ).status.submission.submission_id


def test_a_dual_encoder_is_queued_run_and_ranked_like_a_module(
    rig: Rig, hub: HubServer, tmp_path: Path
) -> None:
    commit = builtins.add_clip(hub, tmp_path)
    name = sent(rig)
    record = rig.status(name).submission
    assert (record.kind, record.builtin, record.account) == (Kind.METRIC, builtins.DUAL, ASSAY.key)
    assert record.source == f"builtin:{builtins.DUAL}@{digest_of(builtins.ROWS[builtins.DUAL])}"
    assert record.models == (f"{builtins.CLIP}@{commit}",)
    assert [event.by for event in rig.ledger.events(name)] == [ROOT.key, ROOT.key]
    rig.worker().run_all()
    result = rig.result(name)
    assert rig.state(name) is State.PUBLISHED
    assert result.isolation == LAYERS
    assert result.cost is not None and result.cost.pairs == 3 and result.cost.seconds > 0
    assert result.findings is not None
    environment = result.findings.environment
    assert environment["checkpoint_model"] == f"{builtins.CLIP}@{commit}"
    assert environment["row"] == f"{builtins.DUAL}@{builtins.ROWS[builtins.DUAL].digest}"
    assert result.trust is not None and not result.trust.failed
    assert {check.name for check in result.trust.checks} >= {"repeat", "order", "batch", "run"}
    (cell,) = rig.cells()
    assert cell.distrust == "" and cell.value is not None and math.isfinite(cell.value)
    assert [one.entry_id for one in ranked_metrics(rig.shown(), rig.ledger.statuses())] == [
        f"{name}/{builtins.DUAL}"
    ]
    assert rig.backend.entered == 0, "no sandbox was used"


@pytest.fixture
def demo(rig: Rig) -> DemoRig:
    return DemoRig(rig.folder)


@pytest.mark.slow
def test_a_dual_encoder_and_a_vlm_are_ranked_on_a_demo_board(
    demo: DemoRig, hub: HubServer, tmp_path: Path
) -> None:
    builtins.add_clip(hub, tmp_path)
    builtins.add_vlm(hub, tmp_path)
    demo.pairs = 100
    names = [sent(demo, builtins.DUAL), sent(demo, builtins.VLM)]
    demo.worker().run_all()
    assert demo.in_state(State.PUBLISHED) == set(names)
    board = demo.shown().boards[DEMO]
    cells = {cell.entry_id: cell for cell in board.slice(board.card.headline, None)}
    assert cells.keys() == {f"{names[0]}/{builtins.DUAL}", f"{names[1]}/{builtins.VLM}"}
    told = {one: (cell.rank, cell.n_missing, cell.distrust) for one, cell in cells.items()}
    assert all(rank is not None and not missing for rank, missing, _ in told.values()), told


@pytest.mark.slow
def test_of_a_killed_worker_another_goes_on_and_scores_only_what_is_missing(
    demo: DemoRig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluator.scorers.in_process import ModelClient

    builtins.add_clip(hub, tmp_path)
    often = EngineOptions(batch_pairs=38, window=1, keep_every_s=0.0)
    monkeypatch.setattr("evaluator.submission.runs.IN_PLAN_ORDER", often)
    name, asked, ask = sent(demo), list[str](), ModelClient.ask
    deadly = {"at": 200}

    def counted(client: Any, items: Any) -> Any:
        reply = ask(client, items)
        of_controls = not items[0].asked[0].text_id
        if len(items) > 12 and not of_controls:  # a batch of the run, not of the trust checks
            asked.extend(pair.pair_id for item in items for pair in item.asked)
            if len(asked) > deadly["at"]:
                raise Killed
        return reply

    monkeypatch.setattr(ModelClient, "ask", counted)
    demo.dies(demo.worker("first"))
    assert demo.state(name) is State.SCORING
    first, deadly["at"] = len(asked), 10_000
    demo.worker("second").run_all()
    assert demo.state(name) is State.PUBLISHED
    assert first > 200 and len(asked) - first < 304 - 100, "most of what was finished was kept"
    assert len(set(asked)) == 304
    claims = [e.by for e in demo.ledger.events(name) if e.state is State.CLAIMED]
    assert claims == ["first", "second"]


def test_weights_that_are_gone_at_the_worker_are_the_platforms_failure_and_charge_nobody(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builtins.add_clip(hub, tmp_path)
    name = sent(rig)
    builtins.use(monkeypatch, builtins.emptied(ModelHub.of_environment()))
    del hub.repositories[hub.key("models", builtins.CLIP)]
    rig.worker().run_all()
    assert rig.ended(name) == (State.FAILED, "checkpoint_missing", "platform")
    assert builtins.CLIP in rig.status(name).reason
    assert rig.status(name).scored_at is None


def test_a_row_that_changed_after_it_was_queued_fails_with_what_to_do(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builtins.add_clip(hub, tmp_path)
    name = sent(rig)
    builtins.change_row(
        monkeypatch, options={**builtins.ROWS[builtins.DUAL].options, "formula": "cos"}
    )
    rig.worker().run_all()
    assert rig.ended(name) == (State.FAILED, "builtin_row_changed", "platform")
    assert f"submit builtin:{builtins.DUAL}" in rig.status(name).hint


def test_what_only_describes_a_row_does_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of(builtins.ROWS[builtins.DUAL])
    said = builtins.change_row(monkeypatch, title="Other", notes=("Other.",), flops_per_pair=1.0)
    assert digest_of(said) == before
    assert digest_of(builtins.change_row(monkeypatch, trained_on=("toy",))) != before


def test_a_worker_leaves_to_others_what_it_cannot_hold(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builtins.add_clip(hub, tmp_path)
    name = sent(rig)
    small = Capacity("a small machine", 1e6)
    monkeypatch.setattr("evaluator.worker.scorer_role.this_machine", lambda: small)
    rig.worker().run_all()
    assert rig.state(name) is State.QUEUED


def test_what_is_kept_is_what_was_sent_or_nothing_is_run(
    rig: Rig, hub: HubServer, tmp_path: Path
) -> None:
    builtins.add_clip(hub, tmp_path)
    name = sent(rig)
    private, path = rig.store.private, rig.status(name).submission.archive
    kept = json.loads(private.read(path))
    assert kept["row"]["name"] == builtins.DUAL and set(kept["commits"]) == {"model"}
    kept["commits"]["model"] = "0" * 40
    private.commit({path: json.dumps(kept).encode()}, parent=private.head(), message="tampered")
    rig.worker().run_all()
    assert rig.ended(name) == (State.FAILED, "upload_changed", "platform")


@pytest.mark.slow
def test_it_needs_no_sandbox(rig: Rig, hub: HubServer, tmp_path: Path) -> None:
    builtins.add_clip(hub, tmp_path)
    rig.isolated = False
    name = sent(rig)
    rig.worker().run_all()
    assert rig.state(name) is State.PUBLISHED


@pytest.mark.slow
def test_it_scores_the_images_of_models(tmp_path: Path, hub: HubServer) -> None:
    rig = ModelRig(tmp_path)
    builtins.add_clip(hub, tmp_path)
    metric = sent(rig)
    rig.worker().run_all()
    model = rig.received("painter", drawn(10))
    rig.worker().run_all()
    run = rig.entries()[model].judges[f"{metric}/{builtins.DUAL}"]
    assert (run.failed, run.isolation) == ("", LAYERS)
    assert run.cost is not None and run.cost.images == len(drawn(10)) + run.perturbed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["changed", "same"])
def test_a_changed_row_is_sent_anew_once_and_takes_the_place_of_the_old_one(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    builtins.add_clip(hub, tmp_path)
    old = sent(rig)
    rig.worker().run_all()
    if name == "same":
        assert outdated_builtins(rig.store) == ()
        return
    rig.clock.move(minutes=1)
    row = builtins.change_row(
        monkeypatch, options={**builtins.ROWS[builtins.DUAL].options, "formula": "cos"}
    )
    (outdated,) = outdated_builtins(rig.store)
    assert outdated.submission_id == old
    (new,) = renew_builtins(rig.store, {"toy": rig.toy}, None, [outdated])
    assert outdated_builtins(rig.store) == (), "it is sent once"
    assert rig.status(new).submission.source == f"builtin:{builtins.DUAL}@{digest_of(row)}"
    assert [event.by for event in rig.ledger.events(new)] == [ASSAY.key] * 2
    rig.worker().run_all()
    assert (rig.state(old), rig.state(new)) == (State.SUPERSEDED, State.PUBLISHED)
    assert [cell.entry_id for cell in rig.cells()] == [f"{new}/{builtins.DUAL}"]


@pytest.mark.slow
def test_a_row_that_names_an_environment_is_run_with_what_was_locked_when_it_was_sent(
    rig: Rig, hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = operator_environments(tmp_path, monkeypatch)
    builtins.for_other_processes(monkeypatch, hub, tmp_path / "home")
    builtins.add_clip(hub, tmp_path)
    plain = sent(rig)
    builtins.change_row(monkeypatch, environment="old")
    name = sent(rig)
    record = operator_lock("old").record
    assert rig.status(name).submission.environment == record
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.delenv("ASSAY_LOCKS")
        rig.worker().run_all()
    assert rig.state(name) is State.QUEUED, "who lacks the lock leaves it to others"
    rig.worker().run_all()
    assert rig.state(name) is State.PUBLISHED, rig.ended(name)
    findings = rig.result(name).findings
    assert findings is not None and findings.environment["environment"] == record
    assert findings.environment["open_clip_torch"] == "0.1"
    assert rig.ended(plain)[1] == "builtin_row_changed"
    (locks / "old.lock").write_text((locks / "new.lock").read_text())
    rig.acts.rerun(name, ROOT, "with another lock")
    rig.worker().run_all()
    assert rig.ended(name) == (State.FAILED, "environment_changed", "platform")
