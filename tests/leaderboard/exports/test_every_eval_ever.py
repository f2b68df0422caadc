"""Records of Every Eval Ever keep the published schema, the values of the board, and what is withheld."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from benchmarks.cases import cases_path, write_cases
from leaderboard.api.source import Source
from leaderboard.exports.every_eval_ever import SCHEMA_VERSION, EvalRecord, model_record
from leaderboard.exports.exporter import Exporter
from leaderboard.text import portable_name
from tests.kit.boards import NOW, cards, keep, source_over
from tests.leaderboard.api.asking import asking, asking_of
from tests.leaderboard.exports.made_up import (
    SITE,
    exporter_of,
    faults,
    of_metrics,
    of_withheld_prompts,
    schema,
    with_lower_scores,
)
from tests.leaderboard.views import example_fixture
from tests.leaderboard.views.model_track import IDS, JUDGES, SET, filled, source_of

UUID4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
RIGHT = example_fixture.entry_id(example_fixture.RIGHT)
NO_INTERVAL = {"lower": None, "upper": None, "confidence_level": None}


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(filled())


@pytest.fixture(scope="module")
def models(source: Source) -> Exporter:
    return exporter_of(source)


@pytest.fixture(scope="module")
def metrics() -> Exporter:
    return of_metrics()


def one(exporter: Exporter, ident: str, benchmark: str = "") -> EvalRecord:
    (found,) = exporter.records(ident, benchmark)
    return found


def details(record: EvalRecord) -> dict[str, str]:
    found: dict[str, str] = record.content["source_metadata"]["additional_details"]
    return found


def results(record: EvalRecord) -> dict[str, dict[str, Any]]:
    return {row["evaluation_result_id"]: row for row in record.content["evaluation_results"]}


@pytest.mark.slow
def test_records_and_samples_keep_the_published_schema(models: Exporter, metrics: Exporter) -> None:
    assert SCHEMA_VERSION == schema("eval")["version"] == schema("instance_level_eval")["version"]
    made = [record for ident in models.model_ids() for record in models.records(ident)]
    made += [record for ident in metrics.metric_ids() for record in metrics.records(ident)]
    assert len(made) > len(IDS) and any(record.samples for record in made)
    assert faults("eval", [record.content for record in made]) == []
    # One of each kind of samples: within a record all are made alike.
    samples = [record.samples[0] for record in made if record.samples]
    assert faults("instance_level_eval", samples) == []


def test_a_record_and_its_samples_name_each_other(models: Exporter) -> None:
    record = one(models, IDS[0])
    assert re.fullmatch(rf"data/assay-{SET}/someone/model/{UUID4}\.json", str(record.path))
    files = record.files()
    about = record.content["detailed_evaluation_results"]
    content = files[about["file_path"]]
    assert about["file_path"] == str(record.samples_path)
    assert about["checksum"] == hashlib.sha256(content).hexdigest()
    rows = [json.loads(line) for line in content.splitlines()]
    assert len(rows) == about["total_rows"] > 0
    assert {row["evaluation_id"] for row in rows} == {record.content["evaluation_id"]}
    assert {row["model_id"] for row in rows} == {record.content["model_info"]["id"]}
    assert {row["evaluation_result_id"] for row in rows} <= set(results(record))
    assert one(models, IDS[0]) == record  # The same revision has the same files.
    made_at = models.reader.revision().made_at
    assert made_at is not None
    assert record.content["retrieved_timestamp"] == f"{max(made_at, NOW).timestamp():.0f}"


def test_values_of_models_are_those_of_the_api_bit_for_bit(
    models: Exporter, source: Source
) -> None:
    rows = asking_of(source).rows(f"/v1/models/{SET}")
    for ident in IDS:
        found = results(one(models, ident))
        wanted = {f"{row['skill'] or 'all'}/{row['metric']}": row for row in rows
                  if row["submission_id"] == ident and row["value"] is not None}  # fmt: skip
        assert set(found) == set(wanted)
        for name, row in wanted.items():
            made = found[name]["score_details"]
            interval = made["uncertainty"].get("confidence_interval", NO_INTERVAL)
            assert made["score"] == row["value"]
            assert (interval["lower"], interval["upper"]) == (row["ci_low"], row["ci_high"])
            assert interval["confidence_level"] in (0.95, None)
            assert made["uncertainty"]["num_samples"] == row["n_prompts"]
            assert made["details"]["n_missing_prompts"] == str(row["n_missing"])
            parameters = found[name]["metric_config"]["metric_parameters"]
            assert (parameters["judge"], parameters["qualified"]) == (row["metric"], row["trusted"])


def test_values_of_metrics_are_those_of_the_api_bit_for_bit(metrics: Exporter) -> None:
    rows = asking().rows(f"/v1/entries/{RIGHT}")
    for record in metrics.records(RIGHT):
        found = results(record)
        name = str(record.path.parts[1]).removeprefix("assay-")
        wanted = [row for row in rows if row["benchmark"] == name and row["value"] is not None]
        assert len(found) == len(wanted) > 0
        known = {(row["value"], row["ci_low"], row["ci_high"], row["n_clusters"]) for row in wanted}
        assert {
            (made["score"], interval["lower"], interval["upper"], uncertainty["num_samples"])
            for row in found.values()
            for made in [row["score_details"]]
            for uncertainty in [made["uncertainty"]]
            for interval in [uncertainty.get("confidence_interval", NO_INTERVAL)]
        } == known


def test_settings_source_and_exact_revision_are_in_a_record(models: Exporter) -> None:
    record = one(models, IDS[1])
    generation = record.content["evaluation_results"][0]["generation_config"]["additional_details"]
    assert (generation["steps"], generation["image_taken"], generation["best_of"]) == (
        "50", "best_of", "4",
    )  # fmt: skip
    revision = models.reader.revision()
    assert details(record)["store_commit"] == revision.commit
    assert details(record)["boards_sha256"] == revision.snapshot
    assert details(record)["page"] == f"{SITE}model?id={IDS[1]}"
    assert record.content["eval_library"] == {"name": "assay", "version": "1.2.3"}


def test_missing_scores_are_named_and_never_become_a_number(models: Exporter) -> None:
    record = one(models, IDS[0])
    said = json.loads(details(record)["missing_results"])
    assert [line.partition(":")[0] for line in said] == ["made-up-0003/ImageReward"]
    assert details(record)["n_missing_results"] == "1"
    about = record.content["detailed_evaluation_results"]["additional_details"]
    assert about["n_missing"] == "1"  # Of VQAScore, one image.
    of_judge = [row for row in record.samples if row["metadata"]["judge"] == JUDGES[1]]
    others = [row for row in record.samples if row["metadata"]["judge"] == JUDGES[0]]
    assert len(others) - len(of_judge) == 1
    assert all(math.isfinite(row["evaluation"]["score"]) for row in record.samples)


def test_samples_have_the_prompt_and_say_that_right_and_wrong_do_not_apply(
    models: Exporter,
) -> None:
    first = one(models, IDS[0]).samples[0]
    assert first["input"]["raw"].startswith("0 red cups")
    assert first["output"]["raw"][0].startswith(f"{SITE}v1/generations/{IDS[0]}/")
    assert first["metadata"]["is_correct_applicable"] == "false"


def test_samples_of_a_metric_are_its_cases(metrics: Exporter) -> None:
    record = one(metrics, RIGHT, "ratings")
    assert len(record.samples) == example_fixture.case_set().size
    assert {row["evaluation"]["score"] for row in record.samples} == {1.0}  # It is always right.
    assert all(row["evaluation"]["is_correct"] for row in record.samples)
    assert all(row["input"]["reference"] for row in record.samples)


def test_scores_of_a_metric_have_the_sign_it_gave_them(
    metrics: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry_id = example_fixture.entry_id(example_fixture.TURNED)
    submission_id, _, name = entry_id.partition("/")
    lower = {submission_id: (name,)}
    monkeypatch.setattr("leaderboard.exports.exporter.lower_is_better", lambda _: lower)
    record = one(metrics, entry_id, "ratings")
    given = example_fixture.scores_of(example_fixture.rated(), example_fixture.TURNED)
    said = dict(line.split(": ") for row in record.samples for line in row["output"]["raw"])
    assert {pair: float(score) for pair, score in said.items()} == given.to_dict()
    assert {row["evaluation"]["score"] for row in record.samples} == {1.0}
    assert {row["metadata"]["lower_is_better"] for row in record.samples} == {"true"}


@pytest.mark.parametrize(
    ("place", "n_missing"), [(example_fixture.RIGHT, "0"), (example_fixture.LACKS, "28")]
)
def test_cases_without_anything_to_compare_are_not_missing(place: int, n_missing: str) -> None:
    """Prompt p0 is tied; of one metric only p0 and p1 have scores."""
    tied = example_fixture.rated()
    tied.loc[tied["case_id"] == "p0", "expected"] = 3.0
    store = example_fixture.filled()
    keep(store, {cases_path("ratings", example_fixture.REVISION): write_cases(tied)})
    record = one(
        exporter_of(source_over(store, cards())), example_fixture.entry_id(place), "ratings"
    )
    about = record.content["detailed_evaluation_results"]["additional_details"]
    assert (about["n_missing"], about["n_nothing_to_compare"]) == (n_missing, "1")


def test_names_without_latin_letters_stay_apart(models: Exporter) -> None:
    results = models.model(IDS[1])
    found = [
        model_record(
            replace(results, entry=results.entry.model_copy(update=named)), models.origin
        ).content["model_info"]
        for named in (
            {"submitter": "\u5343\u554f", "model": "\u753b\u5bb6"},
            {"submitter": "\u5343\u554f", "model": "\u7d75\u5e2b"},
            {"submitter": "\u767e\u5ea6", "model": "\u753b\u5bb6"},
        )
    ]
    assert len({one["id"] for one in found}) == 3
    assert len({one["id"].partition("/")[0] for one in found}) == 2
    assert [one["developer"] for one in found] == ["\u5343\u554f", "\u5343\u554f", "\u767e\u5ea6"]
    assert found[0]["name"].startswith("\u753b\u5bb6") and found[0]["id"].isascii()


def test_a_judge_whose_scores_are_negated_is_named(models: Exporter) -> None:
    results = with_lower_scores(models.model(IDS[0]), JUDGES[0])
    rows = model_record(results, models.origin).content["evaluation_results"]
    for row in rows:
        parameters = row["metric_config"]["metric_parameters"]
        assert parameters["negated"] == (parameters["judge"] == JUDGES[0])


def test_what_is_withheld_stays_withheld() -> None:
    closed = one(of_metrics(withheld=True), RIGHT, "ratings")
    model = one(of_withheld_prompts(), IDS[0])
    for record in (closed, model):
        assert record.samples == () and "detailed_evaluation_results" not in record.content
        assert details(record)["instance_level"].startswith("withheld")
        assert list(record.files()) == [str(record.path)]
    assert "red cups" not in json.dumps(model.content)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("data", "data_"), ("CON", "CON_"), ("a b-1.0_c", "a-b-1.0_c"),
        ("../..", r"unnamed-\w{8}"), ("", r"unnamed-\w{8}"), ("a/b c", r"a-b-c-\w{8}"),
        ("caf\u00e9", r"caf-\w{8}"), ("\u753b\u5bb6", r"unnamed-\w{8}"), ("a" * 90, r"a{71}-\w{8}"),
    ],
)  # fmt: skip
def test_names_of_folders_are_fit_for_every_file_system(name: str, part: str) -> None:
    found = portable_name(name)
    assert re.fullmatch(part, found) and PurePosixPath(found).parts == (found,)
    assert portable_name(found) == found
