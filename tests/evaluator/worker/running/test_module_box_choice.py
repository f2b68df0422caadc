"""Which backend a module is run by, and what is recorded of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.errors import PlatformError
from evaluator.bundled import bundled_hashes
from evaluator.doctoring.machine import isolation_rows
from evaluator.doctoring.rows import Row
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.bubblewrap.backend import Bubblewrap
from evaluator.isolation.containers import backends as containers
from evaluator.isolation.gate import IsolationChoice, choice_of, unsandboxed
from evaluator.isolation.layers import LEGEND, Layer
from evaluator.isolation.limits import Limits
from evaluator.isolation.plain import PlainProcess
from evaluator.worker.running.module_box import OWN_CODE, Boxes
from evaluator.worker.running.scorer_role import ScorerRole
from leaderboard.ranking.cells import UNSANDBOXED, kept_from_ranking
from leaderboard.records import Kind, Submission

NOTHING = IsolationStatus(
    None, (("bubblewrap", Probe(ok=False, reason="Not here.", remedy="Do.")),)
)


def module(content_sha256: str) -> Submission:
    return Submission(
        submission_id="mine-00000000",
        kind=Kind.METRIC,
        name="mine",
        metrics=("mine",),
        benchmarks=("toy",),
        submitter="ada",
        content_sha256=content_sha256,
        archive="uploads/0",
        received_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


STRANGERS = module("0" * 64)


def test_without_isolation_strangers_code_is_refused() -> None:
    with pytest.raises(PlatformError) as caught:
        Boxes(NOTHING, PlainProcess(), Limits()).choose(STRANGERS)
    assert caught.value.code == "isolation_unavailable"
    assert caught.value.hint == "Do."


def test_an_operator_who_turns_isolation_off_gets_results_that_are_never_ranked() -> None:
    backend, layers = Boxes(unsandboxed(), PlainProcess(), Limits()).choose(STRANGERS)
    assert backend.name == "plain"
    assert layers == (UNSANDBOXED,)
    assert kept_from_ranking("", layers)


@pytest.mark.parametrize("status", [NOTHING, unsandboxed()])
def test_our_own_modules_are_ranked_wherever_nothing_isolates(status: IsolationStatus) -> None:
    ours = module(sorted(bundled_hashes())[0])
    _, layers = Boxes(status, PlainProcess(), Limits()).choose(ours)
    assert layers == (OWN_CODE,)
    assert not kept_from_ranking("", layers)


def test_the_doctor_says_what_each_layer_stops_and_how_to_get_hard_bounds() -> None:
    layers = (str(Layer.PID), str(Layer.MEMORY_WATCHDOG))
    probe = Probe(ok=True, layers=layers, notes=("Landlock 7 is there, and not used",))
    rows = list(isolation_rows(IsolationStatus(Bubblewrap(), (("bubblewrap", probe),))))
    assert rows[0] == Row("isolation of code", "by bubblewrap")
    assert Row("  pid", LEGEND[Layer.PID]) in rows
    assert any(r.part == "  memory: watchdog" and "cgroup" in r.advice for r in rows)
    assert rows[-1][1] == "Landlock 7 is there, and not used"


def test_the_doctor_says_why_nothing_isolates_and_what_to_do() -> None:
    assert list(isolation_rows(NOTHING)) == [Row("isolation of code", "Not here.", "Do.")]


@pytest.mark.parametrize(
    ("account", "operator", "may"),
    [("local:ada", "local:ada", True), ("hub:eve", "local:ada", False), ("", "", False)],
)
def test_without_isolation_a_worker_runs_the_code_of_its_own_operator_only(
    tmp_path: Path, account: str, operator: str, may: bool
) -> None:
    own = PlainProcess()
    role = ScorerRole(unsandboxed(), own, tmp_path, Limits(), operator=operator)
    sent = STRANGERS.model_copy(update={"account": account})
    assert role.can_run(sent) is may
    assert not ScorerRole(NOTHING, own, tmp_path, Limits(), operator=operator).can_run(sent)


def test_another_machine_is_to_isolate_as_this_one_does() -> None:
    probed = (("bubblewrap", Probe(ok=True, layers=("pid",))),)
    assert choice_of(IsolationStatus(Bubblewrap(), probed)) is IsolationChoice.BUBBLEWRAP
    assert choice_of(unsandboxed()) is IsolationChoice.NONE
    assert choice_of(NOTHING) is IsolationChoice.AUTO
    for engine in (containers.docker({}), containers.podman({}), containers.gvisor({})):
        status = IsolationStatus(engine, ((engine.name, Probe(ok=True, layers=("pid",))),))
        assert choice_of(status) is IsolationChoice(engine.name)
