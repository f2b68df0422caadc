"""`reevaluate`, `moved` and `report --revision`, from a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import typer

from benchmarks.command_line import run as run_app
from evaluator.commands.operate import policy
from evaluator.commands.reevaluate import moved, reevaluate
from evaluator.commands.report import report
from leaderboard.governance.policy import read_policy
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.publisher import Publisher
from leaderboard.states import State
from leaderboard.store.folder import folder_store
from tests.evaluator.commands.submitting import Ended
from tests.evaluator.revised import Revised, publish
from tests.evaluator.rig import Rig

Command = Callable[..., Ended]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    (tmp_path / "work").mkdir()
    return Rig(tmp_path / "work", store=folder_store(tmp_path / "store"))


@pytest.fixture
def command(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    for module in ("reevaluate", "report"):
        monkeypatch.setattr(f"evaluator.commands.{module}.load_registry", lambda: {"toy": rig.toy})
    monkeypatch.setenv("ASSAY_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setenv("ASSAY_USER", "root")

    def called(*words: str) -> Ended:
        app = typer.Typer(pretty_exceptions_enable=False)
        for one in (reevaluate, moved, report, policy):
            app.command()(one)
        monkeypatch.setattr("sys.argv", ["x", *words])
        try:
            code = run_app(app)
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return called


def rerun(rig: Rig) -> None:
    # Commands have the time of this machine, and the rig stands still before it.
    rig.clock.time = max(s.since for s in Ledger(rig.store).statuses()) + timedelta(minutes=1)
    Publisher(rig.store, {"toy": rig.toy.card}).publish_cards(rig.clock())
    rig.worker("second").run_all()


def test_a_dry_run_says_what_would_be_done_and_does_nothing(rig: Rig, command: Command) -> None:
    (name,) = publish(rig, ["grey"]).values()
    assert "Nothing is outdated." in command("reevaluate", "--all", "--dry-run").out
    rig.toy = Revised()
    head = rig.store.public.head()
    done = command("reevaluate", "--all", "--dry-run")
    assert done.code == 0, done.err
    assert name in done.out
    assert "now at revision 2 (was revision 1)" in done.out
    assert rig.store.public.head() == head


def test_it_needs_a_reason_and_exactly_one_choice(rig: Rig, command: Command) -> None:
    publish(rig, ["grey"])
    assert command("reevaluate", "--all").code == 1
    assert command("reevaluate", "--reason", "x").code == 2
    assert command("reevaluate", "--all", "--benchmark", "toy", "--reason", "x").code == 2
    unknown = command("reevaluate", "--benchmark", "nothing", "--reason", "x")
    assert unknown.code == 1
    assert "toy" in unknown.err


def test_what_is_outdated_is_queued_with_the_operators_reason(rig: Rig, command: Command) -> None:
    (name,) = publish(rig, ["grey"]).values()
    rig.toy = Revised()
    done = command("reevaluate", "--benchmark", "toy", "--reason", "new labels", "--json")
    record = json.loads(done.out)
    assert (record["found"][0]["submission_id"], record["found"][0]["act"]) == (name, "rerun")
    queued = Ledger(rig.store).status(name)
    assert (queued.state, queued.code) == (State.QUEUED, "new_revision")
    assert queued.reason.endswith("new labels")
    again = command("reevaluate", "--all", "--reason", "again", "--json")
    assert json.loads(again.out)["found"] == []


def test_what_moved_is_printed_for_people_and_for_programs(rig: Rig, command: Command) -> None:
    publish(rig, ["grey", "white"])
    nothing = command("moved", "toy")
    assert nothing.code == 1
    assert "No board of an earlier revision" in nothing.err
    rig.toy = Revised(3.0)
    command("reevaluate", "--all", "--reason", "new labels")
    rerun(rig)
    shown = command("moved", "toy")
    assert shown.code == 0, shown.err
    assert "From 1 to 2: 2 metrics on both boards." in shown.out
    assert "+2.000" in shown.out
    record = json.loads(command("moved", "toy", "--json").out)
    assert (record["from"], record["to"], record["measure"]) == ("1", "2", "mean")
    assert [one["difference"] for one in record["moved"]] == [2.0, 2.0]
    assert command("moved", "toy", "--from", "../x").code == 1
    assert command("moved", "toy", "--measure", "nothing").code == 1


def test_old_results_are_reported_by_their_revision(rig: Rig, command: Command) -> None:
    (name,) = publish(rig, ["grey"]).values()
    rig.toy = Revised(3.0)
    command("reevaluate", "--all", "--reason", "new labels")
    rerun(rig)
    old = json.loads(command("report", name, "--revision", "1", "--json").out)
    assert [one["rows"][0]["value"] for one in old["results"]] == [1.0]
    now = json.loads(command("report", name, "--json").out)
    assert [one["rows"][0]["value"] for one in now["results"]] == [3.0]
    same = json.loads(command("report", name, "--revision", "2", "--json").out)
    assert same["results"] == now["results"]
    assert "toy (revision 1)" in command("report", name, "--revision", "1").out
    unknown = command("report", name, "--revision", "9")
    assert unknown.code == 1
    assert "1, 2" in unknown.err
    assert command("report", name, "--revision", "1", "--recompute").code == 2


def test_the_policy_is_switched_and_keeps_everything_else(rig: Rig, command: Command) -> None:
    before = read_policy(rig.store.public)
    assert before.reevaluate
    done = command("policy", "--no-reevaluate", "--reason", "one GPU")
    assert done.code == 0, done.err
    assert read_policy(rig.store.public) == before.model_copy(update={"reevaluate": False})
    command("policy", "--days", "3", "--reason", "shorter")
    assert not read_policy(rig.store.public).reevaluate
