"""Logs of Inspect have the fields that its reader takes, the values of the board, and every image."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from benchmarks.errors import SubmitterError
from leaderboard.exports.exporter import Exporter
from leaderboard.exports.inspect_log import inspect_log
from tests.leaderboard.exports.made_up import (
    SITE,
    of_models,
    of_withheld_prompts,
    with_lower_scores,
)
from tests.leaderboard.views.model_track import IDS, JUDGES, N_PROMPTS, SET

EVAL_LOG = {"version", "status", "eval", "plan", "results", "stats", "samples"}
EVAL_SPEC = {"eval_id", "run_id", "created", "task", "task_id", "task_version", "dataset", "model",
             "config", "packages", "metadata", "scorers"}  # fmt: skip
EVAL_SAMPLE = {"id", "epoch", "uuid", "input", "target", "messages", "output", "scores", "metadata"}


def log_of(exporter: Exporter, ident: str = IDS[0]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(exporter.log(ident)[1])
    return found


@pytest.fixture(scope="module")
def models() -> Exporter:
    return of_models()


@pytest.fixture(scope="module")
def log(models: Exporter) -> dict[str, Any]:
    return log_of(models)


def test_the_fields_are_those_of_inspect(log: dict[str, Any]) -> None:
    assert set(log) == EVAL_LOG and (log["version"], log["status"]) == (2, "success")
    assert set(log["eval"]) >= EVAL_SPEC
    assert {"name", "samples", "sample_ids", "location", "shuffled"} == set(log["eval"]["dataset"])
    assert (log["eval"]["task"], log["eval"]["model"]) == ("assay-made-up-prompts", "someone/model")
    assert all(len(log["eval"][name]) == 22 for name in ("eval_id", "run_id", "task_id"))
    for sample in log["samples"]:
        assert set(sample) == EVAL_SAMPLE
        assert [one["role"] for one in sample["messages"]] == ["user", "assistant"]
        (choice,) = sample["output"]["choices"]
        assert choice["message"]["role"] == "assistant" and choice["stop_reason"] == "stop"


def test_every_image_is_a_sample_with_its_picture(log: dict[str, Any]) -> None:
    found = {(one["id"], one["epoch"]): one for one in log["samples"]}
    assert len(found) == len(log["samples"]) == 3 * N_PROMPTS
    assert log["eval"]["config"]["epochs"] == 3
    assert log["eval"]["dataset"]["samples"] == N_PROMPTS
    (picture,) = found["p001", 2]["messages"][1]["content"]
    assert picture == {
        "type": "image", "image": f"{SITE}v1/generations/{IDS[0]}/p001/41?w=320",
    }  # fmt: skip
    assert found["p001", 2]["metadata"] == {"seed": 41, "split": "real", "skills": ["spatial"]}


def test_results_are_the_board_and_stderr_follows_from_the_samples(
    models: Exporter, log: dict[str, Any]
) -> None:
    means = {(one.skill, one.judge.entry_id): one.mean for one in models.model(IDS[0]).means}
    assert len(log["results"]["scores"]) == len(means)
    for score in log["results"]["scores"]:
        mean = means[score["params"]["skill"], score["scorer"]]
        values = {name: one["value"] for name, one in score["metrics"].items()}
        assert (values["mean"], values.get("ci_low"), values.get("ci_high")) == (
            mean.value, mean.ci_low, mean.ci_high,
        )  # fmt: skip
    by_prompt: dict[str, list[float]] = {}
    for sample in log["samples"]:
        by_prompt.setdefault(sample["id"], []).append(sample["scores"][JUDGES[0]]["value"])
    own = np.array([np.mean(scores) for scores in by_prompt.values()])
    whole = next(one for one in log["results"]["scores"] if one["name"] == JUDGES[0])
    assert whole["metrics"]["mean"]["value"] == pytest.approx(own.mean(), abs=1e-12)
    error = own.std(ddof=1) / math.sqrt(N_PROMPTS)
    assert whole["metrics"]["stderr"]["value"] == pytest.approx(error, abs=1e-12)


def test_a_missing_score_is_unscored_and_counted(log: dict[str, Any]) -> None:
    lacking = [
        (one["id"], one["epoch"], judge, score["reason"])
        for one in log["samples"]
        for judge, score in one["scores"].items()
        if math.isnan(score["value"])
    ]
    assert lacking == [("p005", 1, JUDGES[1], "scoring_failed")]
    whole = {
        one["name"]: one for one in log["results"]["scores"] if one["params"]["skill"] == "all"
    }
    assert [whole[judge]["unscored_samples"] for judge in JUDGES] == [0, 1, 0]
    assert list(log["results"]["metadata"]["failed_metrics"]) == ["made-up-0003/ImageReward"]


def test_the_revision_is_in_the_log(models: Exporter, log: dict[str, Any]) -> None:
    revision, about = models.reader.revision(), log["eval"]["metadata"]
    assert (about["store_commit"], about["boards_sha256"]) == (revision.commit, revision.snapshot)
    assert about["page"] == f"{SITE}model?id={IDS[0]}"
    assert revision.made_at is not None
    assert about["boards_made_at"] == revision.made_at.isoformat()
    assert models.log(IDS[0])[0] == models.log(IDS[0])[0] and SET not in models.log(IDS[0])[0]


def test_a_scorer_says_whether_its_scores_are_negated(models: Exporter) -> None:
    log = inspect_log(with_lower_scores(models.model(IDS[0]), JUDGES[0]), models.origin)
    found = {one["name"]: one["metadata"]["negated"] for one in log["eval"]["scorers"]}
    assert (found[JUDGES[0]], found[JUDGES[1]]) == (True, False)


@pytest.mark.slow
def test_of_withheld_prompts_only_results_are_in_the_log() -> None:
    log = log_of(of_withheld_prompts())
    assert log["samples"] is None and log["eval"]["dataset"]["sample_ids"] is None
    assert log["eval"]["config"]["log_samples"] is False
    assert log["results"]["scores"] and "red cups" not in json.dumps(log)


def test_an_unknown_model_is_refused(models: Exporter) -> None:
    with pytest.raises(SubmitterError) as refused:
        models.log("nobody")
    assert refused.value.code == "unknown_model"
