"""`croc`: from a taxonomy to prompts, images, a benchmark and the rows of its board."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from starlette.responses import JSONResponse

from benchmarks.croc_syn.protocol import CrocSyn
from benchmarks.registry import load_registry
from evaluator.commands.common import INTERRUPTED
from evaluator.croc.taxonomy import EXAMPLE
from tests.evaluator.commands import submitting
from tests.evaluator.commands.submitting import code_of, typed
from tests.evaluator.croc.croc_writer import served
from tests.evaluator.generation import tiny_pipelines
from tests.evaluator.scorers.chat_server import MODEL, chat_server, completion, endpoints_file

run = partial(typed, "croc")
record = partial(submitting.record, "croc")
refused = partial(submitting.refused)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines") / "tiny"
    tiny_pipelines.sd15().save_pretrained(folder)
    return folder


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that writes, and the words of a small run."""
    with chat_server() as (server, address):
        server.behaviour = served
        file = endpoints_file(tmp_path, address, attempts=3)
        monkeypatch.setenv("ASSAY_ENDPOINTS", str(file))
        monkeypatch.setattr("time.sleep", lambda _: None)
        words: tuple[object, ...] = (
            "prompts",
            "--model",
            MODEL,
            "--endpoint",
            "here",
            "--n",
            1,
            "--text-model",
            "toy",
        )
        words += ("--taxonomy", EXAMPLE, "--image-model", "flux")
        yield server, (*words, "--out", tmp_path / "boards" / "my_croc")


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.slow
def test_a_taxonomy_becomes_a_board(asked: Any, tmp_path: Path, model: Path) -> None:
    server, words = asked
    folder = tmp_path / "boards" / "my_croc"
    figures = record(*words)
    assert figures["asked"] == 42 == len(server.bodies)
    assert {"cut", "no_object", "refused"} & figures["dropped"].keys()
    assert figures == json.loads((folder / "report.json").read_text())

    draw = ("images", folder, "--model", model, "--n", 2, "--steps", 1, "--safety-checker", "off")
    before = load_registry(cards=[str(folder)])["my_croc"].card
    assert "flux (not drawn yet)" in before.description
    assert figures["files"]["flux_toy"]["drawn_by"] is None
    drawn = record(*draw, "--batch-size", 8)
    benchmark = load_registry(cards=[str(folder)])["my_croc"]
    by = drawn["files"]["flux_toy"]["drawn_by"]
    assert (by["model"], by["steps"], by["revision"][:7]) == (model.name, 1, "sha256:")
    assert f"flux ({by['model']}@{by['revision']}, steps 1, guidance" in benchmark.card.description
    assert benchmark.card.revision != before.revision
    assert isinstance(benchmark, CrocSyn) and benchmark.has_questions(None)
    answers, questions = benchmark.answers(None), benchmark.questions(None)
    assert drawn["kept"] == len(answers.prompts) == len(answers.pair_ids) / 8
    first = [image for image in questions.images if image.endswith("_image_0")]
    assert len(first) == len(questions.images) / 2
    with Image.open(folder / "images" / f"{first[0]}.png") as image:
        assert image.size == (16, 16)
    there = files(folder)
    assert record(*draw) == drawn
    assert files(folder) == there

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_BENCHMARKS", str(folder))
        assert "My croc" in submitting.said("bench", "describe", "my_croc")
        submitting.said("bench", "pairs", "my_croc", "--out", tmp_path / "pairs.csv")
        scores = pd.read_csv(tmp_path / "pairs.csv")[["pair_id"]]
        drawn_for = scores.pair_id.str.contains("/contrast_prompts/")
        scores["knows"] = (drawn_for == scores.pair_id.str.endswith("|contrast")).astype(float)
        scores["alike"] = 0.0
        scores.to_csv(tmp_path / "scores.csv", index=False)
        told = submitting.record("meta", "my_croc", "--scores", tmp_path / "scores.csv", "--skills")
    values = {
        (row["metric"], row["skill"]): row["value"]
        for row in told
        if row["measure"] == "scaled_accuracy" and row["split"] is None and row["facet"] is None
    }
    assert values == {("knows", None): 1.0, ("alike", None): -1.0}


def test_a_plan_asks_nothing(asked: Any, tmp_path: Path) -> None:
    server, words = asked
    plan = record(*words, "--plan", "--kind", "entity_placement", "--n", 3)
    assert (plan["requests"], plan["completions"], plan["there"]) == (15, 45, 0)
    assert plan["usd"] == pytest.approx(
        (2 * plan["read_tokens"] + 8 * plan["written_tokens"]) / 1e6
    )
    assert run(*words, "--plan").exit_code == 0
    assert not server.bodies and not (tmp_path / "boards").exists()


def test_a_plan_of_other_settings_is_refused_as_the_run_is(asked: Any) -> None:
    _, words = asked
    words = (*words, "--kind", "subject_property")
    record(*words)
    for more in (("--n", 2), ("--seed", 1), ("--kind", "entity_placement")):
        told = [
            refused("other_settings", "croc", *words, *more, *plan) for plan in ((), ("--plan",))
        ]
        assert told[0] == told[1]
    plan = record(*words, "--plan")
    assert (plan["there"], plan["most_usd"]) == (plan["completions"], 0.0)


@pytest.mark.slow
def test_a_busy_endpoint_changes_nothing_and_one_that_stays_busy_is_gone_on_with(
    asked: Any, tmp_path: Path
) -> None:
    server, words = asked
    folder = tmp_path / "boards" / "my_croc"
    whole = (*words[:-1], tmp_path / "whole" / "my_croc", "--kind", "subject_property")
    server.first = [JSONResponse({}, 429), JSONResponse({}, 503)]
    record(*whole)
    told, calls = {body["messages"][0]["content"][0]["text"] for body in server.bodies}, []
    assert len(told) == 12

    def busy(body: Any) -> Any:
        calls.append(body)
        return served(body) if len(calls) < 6 else JSONResponse({}, 429)

    (tmp_path / "replies.sqlite").unlink()
    server.behaviour = busy
    words = (*words, "--kind", "subject_property")
    assert code_of(run(*words)) == "endpoint_unavailable"
    server.behaviour = served
    asked_before = len(server.bodies)
    record(*words)
    assert len(server.bodies) - asked_before < 12, "replies are kept, too"
    assert files(folder) == files(tmp_path / "whole" / "my_croc")


@pytest.mark.slow
def test_what_a_writer_gets_wrong_all_the_time_is_told(asked: Any, tmp_path: Path) -> None:
    server, words = asked
    server.behaviour = lambda body: completion("Sorry.")
    assert "no_object" in refused("nothing_written", "croc", *words)
    report = json.loads((tmp_path / "boards" / "my_croc" / "report.json").read_text())
    assert report["kept"] == 0 and report["dropped"] == {"no_object": 42}


def test_names_that_are_no_names_of_files_are_wrong_usage(asked: Any) -> None:
    for more in (("--image-model", "FLUX.1"), ("--text-model", "a_b")):
        assert run(*asked[1], *more).exit_code == 2


@pytest.mark.slow
def test_every_image_model_has_its_prompts_and_images(
    asked: Any, tmp_path: Path, model: Path
) -> None:
    _, words = asked
    folder = tmp_path / "boards" / "my_croc"
    few = (*words, "--kind", "subject_property")
    for name in ("flux", "tiny"):
        record(*few, "--image-model", name)
    draw = ("images", folder, "--model", model, "--steps", 1, "--n", 1, "--safety-checker", "off")
    refused("unknown_image_model", "croc", *draw)
    refused("unknown_image_model", "croc", *draw, "--image-model", "sd")
    for name in ("tiny", "flux"):
        record(*draw, "--image-model", name, "--batch-size", 8)
    refused("other_count", "croc", *draw[:-4], "--n", 2, "--image-model", "flux")
    refused("other_settings", "croc", *draw, "--guidance", 1, "--image-model", "flux")
    benchmark = load_registry(cards=[str(folder)])["my_croc"]
    assert isinstance(benchmark, CrocSyn)
    assert set(benchmark.answers(None).prompts["image_model"]) == {"flux", "tiny"}
    assert len(benchmark.questions(None).images) == 2 * len(benchmark.answers(None).prompts)


@pytest.mark.slow
def test_drawing_is_gone_on_with_and_a_pair_without_an_image_is_dropped(
    asked: Any, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluator.generation.pipelines import draw as honest

    _, words = asked
    folder = tmp_path / "boards" / "my_croc"
    written = record(*words, "--kind", "subject_property")
    draw = ("images", folder, "--model", model, "--steps", 1, "--n", 2, "--safety-checker", "off")
    calls: list[Any] = []

    def stopped(pipe: Any, batch: Any, *rest: Any) -> Any:
        calls.append(batch)
        if len(calls) == 4:
            raise KeyboardInterrupt
        drawn = honest(pipe, batch, *rest)
        return (
            [replace(one, image=None, problem="black") for one in drawn]
            if len(calls) == 1
            else drawn
        )

    monkeypatch.setattr("evaluator.generation.run.draw", stopped)
    assert run(*draw).exit_code == INTERRUPTED
    figures = record(*draw)
    assert figures["dropped"]["image_withheld"] == 1
    assert figures["kept"] == written["kept"] - 1
    benchmark = load_registry(cards=[str(folder)])["my_croc"]
    assert isinstance(benchmark, CrocSyn)
    assert len(benchmark.answers(None).prompts) == figures["kept"]
    assert len(benchmark.questions(None).images) == 4 * figures["kept"]
