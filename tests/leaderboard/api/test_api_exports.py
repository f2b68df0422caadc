"""The API answers results in the forms of others, and withholds what is withheld."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
import yaml

from tests.kit.boards import NOW, cards
from tests.leaderboard.api.asking import Asking, asking, asking_of
from tests.leaderboard.exports.made_up import faults
from tests.leaderboard.views import example_fixture
from tests.leaderboard.views.model_track import IDS, SET, filled, source_of

MODEL = f"/v1/exports/models/{IDS[0]}"
RIGHT = example_fixture.entry_id(example_fixture.RIGHT)
METRIC = f"/v1/exports/metrics/ratings/{RIGHT}"


@pytest.fixture(scope="module")
def models() -> Asking:
    times = (NOW + timedelta(seconds=n) for n in count())
    return asking_of(replace(source_of(filled(2)), clock=lambda: next(times)))


def lines(api: Asking, address: str) -> list[dict[str, Any]]:
    answer = api.client.get(address)
    assert answer.status_code == 200 and "attachment" in answer.headers["Content-Disposition"]
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_model_comes_in_every_form(models: Asking) -> None:
    record = models.table(f"{MODEL}/every-eval-ever.json")
    samples = lines(models, f"{MODEL}/every-eval-ever-samples.jsonl")
    content = models.client.get(f"{MODEL}/every-eval-ever-samples.jsonl").content
    about = record["detailed_evaluation_results"]
    assert about["checksum"] == hashlib.sha256(content).hexdigest()
    assert {one["evaluation_id"] for one in samples} == {record["evaluation_id"]}
    assert faults("eval", [record]) == faults("instance_level_eval", samples[:3]) == []
    assert len(samples) == about["total_rows"]
    # The address of the site is that of the request.
    assert samples[0]["output"]["raw"][0].startswith("http://made.up/v1/generations/")
    first, again = (models.client.get(f"{MODEL}/inspect.json") for _ in range(2))
    assert first.headers["ETag"] == again.headers["ETag"]
    log = json.loads(first.content)
    assert (log["version"], log["eval"]["model"]) == (2, "someone/model")
    answer = models.client.get(f"{MODEL}/eval-results.yaml")
    assert f"assay-{SET}-{IDS[0]}.yaml" in answer.headers["Content-Disposition"]
    results = answer.text
    # Its prompt set is no dataset of the Hub, which the file says.
    assert yaml.safe_load(results) is None and "# All prompts: left out" in results


def test_a_metric_comes_with_its_cases() -> None:
    api = asking()
    record = api.table(f"{METRIC}/every-eval-ever.json")
    assert faults("eval", [record]) == []
    samples = lines(api, f"{METRIC}/every-eval-ever-samples.jsonl")
    assert len(samples) == record["detailed_evaluation_results"]["total_rows"]


def test_what_is_withheld_or_not_there_is_refused(models: Asking) -> None:
    known = cards()
    known["ratings"] = known["ratings"].model_copy(update={"answers_public": False})
    closed = asking(example_fixture.filled(), known)
    record = closed.table(f"{METRIC}/every-eval-ever.json")
    assert "detailed_evaluation_results" not in record
    assert closed.refused(f"{METRIC}/every-eval-ever-samples.jsonl", 404) == "no_samples"
    wrong = "/v1/exports/metrics/unused/made-up-0000/CLIPScore/every-eval-ever.json"
    assert closed.refused(wrong, 404) == "unknown_entry"
    for form in ("every-eval-ever.json", "inspect.json", "eval-results.yaml"):
        assert models.refused(f"/v1/exports/models/nobody/{form}", 404) == "unknown_model"
