"""What an operator does from a terminal, and that everybody can read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leaderboard.ledger.held import read_marks
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from tests.benchmarks.toy import Toy
from tests.evaluator.commands.submitting import SCORES, Run, id_of, sent


def states(run: Run) -> list[str]:
    return [status["state"] for status in run("status", "--json").json]


@pytest.mark.slow
def test_a_hidden_submission_is_shown_again(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    assert run("hide", own_id, "--reason", "copied", user="root").code == 0
    assert states(run) == ["hidden"]
    assert "copied" in run("status", own_id).out
    assert run("show", own_id, user="root").code == 0
    assert states(run) == ["published"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["hide", "rerun"])
def test_an_act_of_an_operator_needs_a_reason(run: Run, tmp_path: Path, command: str) -> None:
    own_id = id_of(sent(run, tmp_path))
    assert run(command, own_id).code == 2
    empty = run(command, own_id, "--reason", " ")
    assert empty.code == 1
    assert states(run) == ["published"]


@pytest.mark.slow
def test_a_rerun_is_queued_and_stays_on_the_boards(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    assert run("rerun", own_id, "--reason", "new data").code == 0
    (status,) = run("status", own_id, "--json").json
    assert (status["state"], status["on_boards"]) == ("queued", True)


@pytest.mark.slow
def test_a_banned_account_is_told_why_until_the_ban_is_lifted(run: Run, tmp_path: Path) -> None:
    assert run("ban", "local:mallory", "--reason", "labels in the weights").code == 0
    path = tmp_path / "s.csv"
    path.write_text(SCORES)
    words = ("submit", path, "--kind", "scores", "--benchmark", "toy")
    refused = run(*words, user="mallory")
    assert refused.code == 1
    assert "labels in the weights" in refused.err
    assert run("unban", "local:mallory", "--reason", "a mistake").code == 0
    assert run(*words, user="mallory").code == 0


def test_a_policy_is_changed_with_a_reason_and_read_by_everyone(run: Run) -> None:
    assert run("policy", "--scored", "metric=2").code == 1
    changed = run("policy", "--scored", "metric=2", "--days", "30", "--reason", "one GPU")
    assert changed.code == 0
    policy = run("policy", "--json", user="bob").json
    assert policy["period_days"] == 30
    assert policy["allowances"]["metric"] == {"scored": 2, "unfinished": 3}
    wrong = run("policy", "--scored", "metrics=2", "--reason", "x")
    assert wrong.code == 1
    assert "bad_allowance" in wrong.err


@pytest.mark.slow
def test_the_ledger_tells_all_of_it_in_order(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    run("hide", own_id, "--reason", "copied", user="root")
    run("ban", "local:ada", "--reason", "copied twice", user="root")
    told = run("ledger", "--json").json
    assert told["problems"] == []
    lines = [(line["action"], line["subject"]) for line in told["lines"]]
    assert lines[-2:] == [("hidden", own_id), ("ban", "local:ada")]
    assert "The chain holds." in run("ledger", "--subject", own_id).out


def test_a_ledger_that_was_tampered_with_is_told(run: Run, tmp_path: Path) -> None:
    sent(run, tmp_path)
    public = folder_store(tmp_path / "store").public
    (path,) = public.list("chronicle/")
    lines = public.read(path).splitlines()
    first = json.loads(lines[0]) | {"reason": "nothing happened"}
    changed = b"\n".join([json.dumps(first).encode(), *lines[1:]]) + b"\n"
    transact(public, lambda: {path: changed}, "tampered")
    told = run("ledger")
    assert told.code == 3
    assert "The chain holds." not in told.out


@pytest.mark.slow
def test_a_worker_that_starts_marks_what_no_submission_needs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator.commands.work.load_registry", lambda: {"toy": Toy()})
    sent(run, tmp_path)
    private = folder_store(tmp_path / "store").private
    transact(private, lambda: {"uploads/left.csv": b"x"}, "of a request that crashed")
    assert run("worker", "--once").code == 0
    assert set(read_marks(private)) == {"uploads/left.csv"}
