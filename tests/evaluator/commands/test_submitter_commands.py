"""What a submitter does from a terminal: submit, follow, read, count, withdraw, publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leaderboard.governance.policy import Allowance, Policy
from leaderboard.records import Kind
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import transact
from tests.evaluator.commands.submitting import SCORES, Run, id_of, sent


def test_a_scores_file_is_scored_and_reported(run: Run, tmp_path: Path) -> None:
    status = sent(run, tmp_path)
    assert status["state"] == "published"
    assert status["submission"]["account"] == "local:ada"
    told = run("report", id_of(status))
    assert told.code == 0
    assert "mean" in told.out
    assert "scores as submitted, not re-run" in told.out
    assert "no rank" in told.out or "rank " in told.out


def test_every_published_row_comes_out_again_from_the_published_scores(
    run: Run, tmp_path: Path
) -> None:
    status = sent(run, tmp_path)
    told = run("report", id_of(status), "--recompute", "--json")
    assert told.code == 0
    (again,) = told.json["recomputed"]
    assert again["same"]
    assert again["rows"] == len(told.json["results"][0]["rows"]) == 2


def test_a_row_that_does_not_follow_from_its_scores_is_told(run: Run, tmp_path: Path) -> None:
    status = sent(run, tmp_path)
    public = folder_store(tmp_path / "store").public
    path = f"results/{id_of(status)}/toy.json"
    result = json.loads(public.read(path))
    result["rows"][0]["value"] += 0.001
    transact(public, lambda: {path: json.dumps(result).encode()}, "tampered")
    told = run("report", id_of(status), "--recompute")
    assert told.code == 3
    assert "1 of 2 rows come out otherwise: m mean: value 2.001 is 2.0." in told.out


def test_sending_the_same_again_is_said_and_adds_nothing(run: Run, tmp_path: Path) -> None:
    first = sent(run, tmp_path)
    path = tmp_path / "s.csv"
    again = run("submit", path, "--kind", "scores", "--benchmark", "toy")
    assert again.code == 0
    assert "which you sent before" in again.err
    assert run("status", "--json").json == [first]


def test_a_private_submission_has_its_name_for_its_author_only(run: Run, tmp_path: Path) -> None:
    status = sent(run, tmp_path, "--private", "--name", "secret-metric")
    assert status["state"] == "held"
    assert "secret-metric" in run("status").out
    others = run("status", user="bob")
    assert "secret-metric" not in others.out
    assert "private submission" in others.out
    assert "secret-metric" not in run("logs", id_of(status), user="bob").out
    assert run("status", "--mine", "--json", user="bob").json == []


def test_a_private_submission_is_reported_then_published_by_its_author_alone(
    run: Run, tmp_path: Path
) -> None:
    own_id = id_of(sent(run, tmp_path, "--private"))
    assert "mean" in run("report", own_id, "--recompute").out
    assert run("report", own_id, user="bob").code == 1
    refused = run("publish", own_id, user="bob")
    assert refused.code == 1
    assert run("publish", own_id).code == 0
    assert run("status", own_id, "--json", user="bob").json[0]["state"] == "published"
    assert run("report", own_id, "--recompute", user="bob").code == 0


def test_only_ones_own_submissions_can_be_withdrawn(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    refused = run("withdraw", own_id, "--yes", user="bob")
    assert refused.code == 1
    assert "not_yours" in refused.err
    assert run("withdraw", own_id, "--yes", "--reason", "a bug").code == 0
    (status,) = run("status", own_id, "--json").json
    assert (status["state"], status["reason"]) == ("withdrawn", "a bug")


def test_withdrawing_asks_first(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    assert run("withdraw", own_id).code != 0
    assert run("status", own_id, "--json").json[0]["state"] == "published"


@pytest.mark.slow
def test_a_quota_is_visible_before_and_counts_what_was_scored(run: Run, tmp_path: Path) -> None:
    before = {line["kind"]: line for line in run("quota", "--json").json["standings"]}
    sent(run, tmp_path)
    after = {line["kind"]: line for line in run("quota", "--json").json["standings"]}
    assert after["scores"]["left"] == before["scores"]["left"] - 1
    assert after["metric"] == before["metric"]
    assert "local:ada" in run("quota").out


def test_a_quota_that_is_used_up_is_told_and_costs_nothing(run: Run, tmp_path: Path) -> None:
    tight = {Kind.SCORES: Allowance(scored=1, unfinished=1)}
    policy = Policy(allowances=Policy().allowances | tight)
    public = folder_store(tmp_path / "store").public
    transact(public, lambda: {"policy.json": policy.model_dump_json().encode()}, "tight")
    sent(run, tmp_path)
    path = tmp_path / "t.csv"
    path.write_text(SCORES.replace("1", "9"))
    refused = run("submit", path, "--kind", "scores", "--benchmark", "toy")
    assert refused.code == 1
    assert "quota_exceeded" in refused.err
    assert len(run("status", "--json").json) == 1


def test_following_ends_with_the_submission_and_its_exit_code(run: Run, tmp_path: Path) -> None:
    own_id = id_of(sent(run, tmp_path))
    followed = run("status", own_id, "--follow", "--json")
    assert followed.code == 0
    last = json.loads(followed.out.splitlines()[-1])
    assert last["status"]["state"] == "published"
    assert last["progress"] is None
    told = run("logs", own_id, "--follow")
    assert [line.split()[2] for line in told.out.splitlines()] == [
        "received", "queued", "claimed", "scoring", "scored", "judging", "published",
    ]  # fmt: skip


def test_what_is_not_there_is_an_input_error(run: Run, tmp_path: Path) -> None:
    folder_store(tmp_path / "store")
    for words in (("report", "no-such-0123456789"), ("logs", "no-such-0123456789")):
        ended = run(*words)
        assert ended.code == 1, words
        assert "no-such" in ended.err or "no submission" in ended.err


@pytest.mark.parametrize("words", [("submit", "scores.csv"), ("submit", "x", "--kind", "scores")])
def test_a_kind_that_does_not_fit_is_a_usage_error(run: Run, words: tuple[str, ...]) -> None:
    assert run(*words).code == 2
