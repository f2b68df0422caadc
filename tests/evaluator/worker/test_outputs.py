"""A scoring module with several outputs, from its submission to the boards of its metrics."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluator.commands.report import about_run, recomputed
from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.job import Limits
from evaluator.scoring.asking import Item, PairRequest
from evaluator.scoring.comparing import packed
from evaluator.scoring.sandbox import SandboxClient
from evaluator.submission.templates import SkeletonKind, module_files
from evaluator.worker.handoff import cached_scores
from evaluator.worker.scorer_role import PackedModule
from leaderboard.models.grid import ranked_metrics
from leaderboard.records import RunResult
from leaderboard.states import State
from leaderboard.trust import TrustReport
from tests.evaluator.scoring.fakes import picture
from tests.evaluator.worker.rigs import DemoRig, ModelRig, drawn
from tests.kit.refusals import refused
from tests.kit.toy import Toy
from tests.kit.worker import (
    ADA,
    ASKED,
    BOB,
    MODULE,
    ROOT,
    FakeBackend,
    FakeSession,
    Rig,
    Secret,
    named,
)

TWO = {
    **MODULE,
    "assay.toml": b'name = "grey"\n[outputs.bright]\n[outputs.dark]\ndirection = "lower_is_better"',
}
METRICS = ("grey-bright", "grey-dark")


def trust(result: RunResult) -> Mapping[str, TrustReport]:
    return {name: one.trust for name, one in result.outputs.items() if one.trust is not None}


def failed(result: RunResult) -> dict[str, list[str]]:
    return {name: [check.name for check in one.failed] for name, one in trust(result).items()}


def test_each_output_is_a_metric_and_all_of_them_come_of_one_call(rig: Rig) -> None:
    name = rig.ran(TWO)
    sent = rig.status(name).submission
    assert (sent.metrics, sent.lower_is_better) == (METRICS, ("grey-dark",))
    assert {cell.entry_id: cell.value for cell in rig.cells()} == {
        f"{name}/grey-bright": 1.0,
        f"{name}/grey-dark": 10.0,
    }
    assert len(rig.backend.asked) == ASKED
    found = rig.result(name)
    assert (found.trust, found.findings) == (None, None)
    assert failed(found) == {metric: [] for metric in METRICS}
    assert {one.metric: one.blind for one in rig.shown().entries.values()} == dict.fromkeys(
        METRICS, False
    )
    said = list(about_run(found))
    assert [line for line in said if "Scored" in line] == [
        f"{metric}: Scored 3 of 3 pairs." for metric in METRICS
    ]


def test_a_fault_of_one_output_keeps_that_one_alone_from_ranking(rig: Rig) -> None:
    count = itertools.count()
    rig.backend.row = lambda grey: (float(grey), float(next(count)))
    name = rig.ran(TWO)
    distrust = {cell.entry_id.rpartition("/")[2]: cell.distrust for cell in rig.cells()}
    assert distrust["grey-bright"] == "" and "repeated" in distrust["grey-dark"]
    assert failed(rig.result(name))["grey-bright"] == []
    judging = ranked_metrics(rig.shown(), rig.ledger.statuses())
    assert [one.metric for one in judging] == ["grey-bright"]


@pytest.mark.usefixtures("many")
def test_a_lookup_is_suspected_of_one_output_and_cleared(rig: Rig) -> None:
    def row(grey: int) -> tuple[float, ...]:
        return float(grey // 6), float(np.random.default_rng(grey).normal())

    rig.backend.row = row
    name = rig.ran(TWO)
    suspected = {one.metric: one.suspected for one in rig.shown().entries.values()}
    assert suspected == {"grey-bright": False, "grey-dark": True}
    rig.clock.move(seconds=1)
    rig.acts.clear(name, ROOT, "It was looked at.")
    assert not any(one.suspected for one in rig.shown().entries.values())
    cleared = {one.metric: one.trust["toy"].pardoned for one in rig.shown().entries.values()}
    assert cleared == {"grey-bright": False, "grey-dark": True}


def test_what_one_output_lacks_is_counted_for_that_one(rig: Rig) -> None:
    rig.backend.row = lambda grey: (float(grey), np.nan if grey == 0 else 1.0)
    found = rig.result(rig.ran(TWO))
    reports = {name: one.findings for name, one in found.outputs.items()}
    assert {name: one and (one.scored, one.unscored) for name, one in reports.items()} == {
        "grey-bright": (3, {}),
        "grey-dark": (2, {"no_score": 1}),
    }
    assert {row.metric: row.n_missing for row in found.as_rows()} == {
        "grey-bright": 0,
        "grey-dark": 1,
    }


def test_an_output_without_scores_fails_the_run_by_its_name(rig: Rig) -> None:
    rig.backend.row = lambda grey: (float(grey), np.nan)
    name = rig.ran(TWO)
    assert rig.state(name) is State.FAILED
    assert "grey-dark on toy" in rig.status(name).reason


def test_a_metric_with_elements_and_outputs_is_told_to_choose(tmp_path: Path) -> None:
    both = Capability.SCORE | Capability.SCORE_ELEMENTS
    rig = Rig(tmp_path, backend=FakeBackend(capabilities=both))
    assert rig.ended(rig.ran(TWO))[1:] == ("elements_of_outputs", "submitter")


def test_opaque_ids_and_two_machines_change_nothing(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    alone, rig = Rig(tmp_path / "one"), Rig(tmp_path / "two")
    assert rig.results(rig.ran_apart(TWO)) == alone.results(alone.ran(TWO))


def test_published_scores_are_judged_again_and_come_out_the_same(rig: Rig) -> None:
    name = rig.ran(TWO)
    status, result = rig.status(name), rig.result(name)
    kept = cached_scores(rig.store, status.submission, rig.toy, None)
    assert (kept.table.metrics, kept.table.directions) == (METRICS, {"grey-dark": -1})
    assert dict(kept.outputs) == result.outputs
    again = recomputed(rig.store, status, result, {"toy": rig.toy}, None)
    assert (again.different, again.why_not) == ((), "")


def test_the_scores_of_another_are_found_in_any_output(rig: Rig) -> None:
    first = rig.ran()
    second = rig.ran(TWO, account=BOB)
    found = rig.result(second)
    assert (found.same_scores_as, found.metrics_same_as) == ((first,), {"grey-bright": (first,)})
    flagged = {one.metric: one.same_scores_as for one in rig.shown().entries.values()}
    assert flagged == {"grey": {}, "grey-bright": {"toy": (first,)}, "grey-dark": {}}


def test_withheld_answers_leave_no_figure_of_any_output(tmp_path: Path) -> None:
    rig = Rig(tmp_path, toy=Secret())
    found = rig.result(rig.ran(TWO))
    assert set(trust(found)) == set(METRICS)
    assert all(np.isnan(one.spread) for one in trust(found).values())
    assert not any(one.findings and one.findings.examples for one in found.outputs.values())


@pytest.mark.parametrize("first", [TWO, named("grey-dark")], ids=["outputs", "one"])
def test_two_metrics_of_one_name_of_an_account_are_refused(
    rig: Rig, first: Mapping[str, bytes]
) -> None:
    rig.send(first)
    second = named("grey-dark") if first is TWO else TWO
    with refused("metric_taken", "grey-dark"):
        rig.send(second)
    rig.send(second, account=BOB)
    seen = rig.desk.examine_metric(rig.module(second), ADA)
    assert [problem.code for problem in seen.problems] == ["metric_taken"]


def test_a_preview_names_the_metrics_and_where_they_are(rig: Rig) -> None:
    seen = rig.desk.examine_metric(rig.module(TWO))
    assert seen.plan is not None
    assert (seen.problems, seen.plan.metrics, seen.benchmarks) == ((), METRICS, ("toy",))


def test_an_output_that_is_nowhere_is_refused(rig: Rig) -> None:
    files = {**TWO, "assay.toml": TWO["assay.toml"] + b'\nkinds = ["quality"]'}
    with refused("output_nowhere", "dark"):
        rig.send(files)


class Further(Toy):
    """Another benchmark, of preference."""

    card = Toy.card.model_copy(update={"name": "further", "kind": "preference"})


def test_an_output_is_on_the_boards_that_its_author_chose(rig: Rig) -> None:
    both = {"toy": rig.toy, "further": Further()}
    desk = replace(rig.desk, registry=both)
    files = {**TWO, "assay.toml": TWO["assay.toml"] + b'\nkinds = ["preference"]'}
    sent = desk.submit_metric(rig.module(files), account=ADA).status.submission
    assert sent.metric_benchmarks == {
        "grey-bright": ("further", "toy"),
        "grey-dark": ("further",),
    }
    rig.worker(registry=both).run_all()
    shown = {
        name: {cell.entry_id.rpartition("/")[2] for cell in board.cells}
        for name, board in rig.shown().boards.items()
    }
    assert shown == {"toy": {"grey-bright"}, "further": set(METRICS)}
    entries = {one.metric: set(one.trust) for one in rig.shown().entries.values()}
    assert entries == {"grey-bright": {"toy", "further"}, "grey-dark": {"further"}}
    assert cached_scores(rig.store, sent, rig.toy, None).table.metrics == ("grey-bright",)


@pytest.mark.usefixtures("many")
def test_an_output_is_tried_on_the_first_benchmark_that_it_is_on(rig: Rig) -> None:
    """In a box of its own, while no other runs; one without scores on the earlier one hides nothing."""
    count = itertools.count()

    def row(grey: int) -> tuple[float, ...]:
        place = next(count)
        return float(grey), float(place) if place >= ASKED * 4 else np.nan

    rig.backend.row = row
    both = {"toy": rig.toy, "further": Further()}
    files = {**TWO, "assay.toml": TWO["assay.toml"] + b'\nkinds = ["alignment"]'}
    desk = replace(rig.desk, registry=both)
    name = desk.submit_metric(rig.module(files), account=ADA).status.submission.submission_id
    rig.worker(registry=both).run_all()
    tried = {
        one.metric: {on: report.benchmark for on, report in one.trust.items()}
        for one in rig.shown().entries.values()
    }
    assert tried == {
        "grey-bright": {"toy": "further", "further": "further"},
        "grey-dark": {"toy": "toy"},
    }
    cells = {cell.entry_id: cell for cell in rig.shown().boards["toy"].cells}
    assert cells[f"{name}/grey-bright"].rank == 1
    assert cells[f"{name}/grey-dark"].rank is None
    assert "repeated" in cells[f"{name}/grey-dark"].distrust
    assert (rig.backend.entered, rig.backend.running, rig.backend.most) == (4, set(), 1)


@pytest.mark.parametrize(
    ("outputs", "state"),
    [
        (("bright", "other"), State.PUBLISHED),
        (("dark", "bright"), State.SUPERSEDED),
        (("bright", "dark", "other"), State.SUPERSEDED),
    ],
)
def test_a_version_stays_where_a_later_one_lacks_one_of_its_outputs(
    outputs: Sequence[str], state: State, rig: Rig
) -> None:
    first = rig.ran(TWO)
    rig.clock.move(seconds=1)
    rig.backend = FakeBackend(row=lambda grey: (float(grey),) * len(outputs))
    tables = "".join(f"[outputs.{name}]\n" for name in outputs)
    later = rig.ran({**TWO, "assay.toml": f'name = "grey"\nversion = "2"\n{tables}'.encode()})
    assert (rig.state(first), rig.state(later)) == (state, State.PUBLISHED)


def test_both_outputs_judge_generations_and_each_image_is_asked_about_once(tmp_path: Path) -> None:
    rig = ModelRig(tmp_path)
    name = rig.ran(TWO)
    model = rig.received("painter", drawn(10))
    rig.backend.asked.clear()
    rig.worker().run_all()
    assert len(rig.backend.asked) == 6 + 3  # three after the change of one pixel
    given = rig.given(model)
    assert set(given) == {f"{name}/{metric}" for metric in METRICS}
    assert given[f"{name}/grey-dark"] == {
        pair: -10.0 * score for pair, score in given[f"{name}/grey-bright"].items()
    }
    runs = rig.entries()[model].judges
    assert {run.metric: run.lower_is_better for run in runs.values()} == {
        "grey-bright": False,
        "grey-dark": True,
    }


def test_a_client_of_several_outputs_refuses_to_compare() -> None:
    can = Capability.SCORE | Capability.COMPARE | Capability.ENCODE
    client = SandboxClient(FakeSession(FakeBackend(), can), outputs=2)  # type: ignore[arg-type]
    assert (client.asks_elements, client.environment["asked"]) == (False, "score")
    image = client.ready(packed(picture(1), picture(2)))
    with refused("method_missing"):
        client.ask([Item("both", image, (PairRequest("p", "t", "a dog"),))])


@pytest.mark.isolation
def test_a_packed_module_gives_all_outputs_wherever_it_is_opened(rig: Rig) -> None:
    sent = rig.send(module_files(SkeletonKind.OUTPUTS, "both")).submission
    upload = rig.folder / "upload.zip"
    rig.ledger.fetch_upload(sent, upload)
    packed = PackedModule(sent, upload, PlainProcess(), Limits(), ())
    with pickle.loads(pickle.dumps(packed)).open() as client:
        ready = client.ready(picture(1))
        ((verdict,),) = client.ask([Item("i", ready, (PairRequest("p", "t", "red"),))]).verdicts
    assert len(verdict.outputs) == 2


@pytest.mark.slow
@pytest.mark.isolation
def test_in_a_sandbox_one_output_is_blind_and_the_other_is_not(tmp_path: Path) -> None:
    rig = DemoRig(tmp_path, backend=Bubblewrap())  # type: ignore[arg-type]
    name = rig.ran(module_files(SkeletonKind.OUTPUTS, "both"))
    entries = {one.metric: one for one in rig.shown().entries.values()}
    assert {metric: one.blind for metric, one in entries.items()} == {
        "both-alignment": False,
        "both-quality": True,
    }
    assert not any(one.why_not for entry in entries.values() for one in entry.trust.values())
    plain = rig.ran(module_files(SkeletonKind.PLAIN, "plain"))
    alignment, alone = rig.overall(name)["both-alignment"], rig.overall(plain)["plain"]
    assert (alignment == alone).all()
    costs = [rig.result(one).cost for one in (name, plain)]
    assert len({(cost.calls, cost.pairs, cost.images) for cost in costs if cost}) == 1
