"""`scorers`: what there is, what each computes, and one tried on images."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from benchmarks.errors import SubmitterError
from evaluator.commands.scorers import scorers_app
from evaluator.commands.scorers_shown import remarks
from evaluator.scorers.registry import load_rows
from evaluator.scorers.trying import Tried, try_out
from evaluator.scoring.contract import Answer
from tests.evaluator.scorers.tiny_dual import LONG, here, pictures, save_clip

NAME = "clipscore-hessel"


@dataclass(frozen=True)
class Ran:
    """What a command printed, or the error it ended with."""

    text: str
    error: SubmitterError | None

    @property
    def content(self) -> Any:
        return json.loads(self.text)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one.png", tmp_path / "two.png"]
    for path, picture in zip(paths, pictures(2), strict=True):
        picture.save(path)
    return paths


@pytest.fixture
def run() -> Callable[..., Ran]:
    def command(*arguments: object) -> Ran:
        done = CliRunner().invoke(scorers_app(), [str(each) for each in arguments])
        if isinstance(done.exception, SubmitterError):
            return Ran(done.stdout, done.exception)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return Ran(done.stdout, None)

    return command


def refused(ran: Ran, code: str) -> SubmitterError:
    assert ran.error is not None
    assert ran.error.code == code
    assert ran.error.exit_code == 1
    return ran.error


def test_every_metric_is_listed(run: Callable[..., Ran]) -> None:
    listed = run("list", "--json").content
    assert [row["name"] for row in listed] == list(load_rows())
    text = run("list").text
    assert {"list", "describe", "score", "run"} <= set(run("--help").text.split())
    assert all(name in text for name in load_rows())
    (hps,) = [row for row in listed if row["name"] == "hpsv2"]
    assert hps["needs"] == ["--allow-pickle"]


def test_one_family_is_listed(run: Callable[..., Ran]) -> None:
    listed = run("list", "--family", "blip2_itc", "--json").content
    assert {row["family"] for row in listed} == {"blip2_itc"}
    assert "dual_encoder" in refused(run("list", "--family", "dual"), "unknown_family").hint


def test_a_metric_is_described_whole(run: Callable[..., Ran]) -> None:
    text = run("describe", NAME).text
    row = load_rows()[NAME]
    for part in (row.formula, row.source, "openai/clip-vit-base-patch32", "licence: not verified"):
        assert part in text
    for part in (
        "0..2.5",
        "float32",
        "not in the cache",
        "truncation='end_kept'",
        "151 M",
        row.notes[0],
    ):
        assert part in text
    content = run("describe", NAME, "--json").content
    assert content["options"]["truncation"] == "end_kept"
    assert content["checkpoints"]["model"]["place"] is None
    assert content["checkpoints"]["model"]["revision"] is None
    assert content["formula"] == row.formula


def test_describing_names_the_commit_that_is_in_the_cache(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    commit = "a" * 40
    snapshot = tmp_path / "hub" / "models--openai--clip-vit-base-patch32" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"w")
    (tmp_path / "assay_checkpoints.json").write_text(
        json.dumps({"openai/clip-vit-base-patch32": commit})
    )
    text = run("describe", NAME).text
    assert commit in text
    assert "not in the cache" not in text


def test_an_unknown_metric_suggests_others(run: Callable[..., Ran]) -> None:
    for command in (
        ("describe", "clipscore-hesel"),
        ("score", "clipscore-hesel", "a.png", "a dog"),
    ):
        assert NAME in refused(run(*command), "unknown_scorer").hint


def test_a_pair_gets_the_score_of_the_scorer_itself(
    run: Callable[..., Ran], clip: Path, images: list[Path]
) -> None:
    from evaluator.scorers.families.dual_encoder import FAMILY

    row = load_rows()[NAME]
    scorer: Any = FAMILY.load(row, FAMILY.check(row), here(clip)).scorer
    prepared = [scorer.prepare(Image.open(path).convert("RGB")) for path in images]
    prompts = ["two dogs", "a red cube"]
    expected = [scorer.score([image], [text])[0] for image in prepared for text in prompts]
    content = run(
        "score", NAME, *images, "--prompt", prompts[0], "--prompt", prompts[1],
        "--checkpoint", f"model={clip}", "--json",
    ).content  # fmt: skip
    assert [pair["score"] for pair in content["pairs"]] == pytest.approx(expected, abs=1e-6)
    assert [(pair["image"], pair["prompt"]) for pair in content["pairs"]] == [
        (str(image), text) for image in images for text in prompts
    ]
    assert (content["low"], content["high"]) == (0.0, 2.5)
    assert content["environment"]["checkpoint_model"] == str(clip)
    assert content["environment"]["dtype"] == "float32"


def test_the_last_argument_is_the_prompt(
    run: Callable[..., Ran], clip: Path, images: list[Path]
) -> None:
    text = run("score", NAME, *images, "two dogs", "--checkpoint", clip, "--offline").text
    assert text.count("two dogs") == 2
    assert "0..2.5" in text
    assert refused(run("score", NAME, images[0]), "prompt_missing").code == "prompt_missing"


@pytest.mark.slow
def test_what_was_done_to_image_and_prompt_is_said(
    run: Callable[..., Ran], clip: Path, tmp_path: Path
) -> None:
    moving = tmp_path / "moving.gif"
    frames = [each.resize((40, 40)) for each in pictures(2)]
    frames[0].save(moving, save_all=True, append_images=frames[1:])
    command = ("score", NAME, moving, LONG[0], "--checkpoint", clip)
    text = " ".join(run(*command).text.split())
    assert "the first one is scored" in text
    assert "to its end" in text
    (pair,) = run(*command, "--json").content["pairs"]
    assert pair["truncated"] is True
    assert len(pair["remarks"]) >= 2


def test_bad_images_are_named_before_a_model_is_loaded(
    run: Callable[..., Ran], images: list[Path], tmp_path: Path
) -> None:
    gone = tmp_path / "gone.png"
    assert str(gone) in refused(run("score", NAME, gone, "a"), "image_missing").message
    text = tmp_path / "text.png"
    text.write_text("no image")
    assert str(text) in refused(run("score", NAME, text, "a"), "image_unreadable").message
    refused(run("score", NAME, tmp_path, "a"), "image_unreadable")
    cut = tmp_path / "cut.png"
    cut.write_bytes(images[0].read_bytes()[:900])
    refused(run("score", NAME, images[1], cut, "a"), "image_unreadable")


def test_a_checkpoint_that_cannot_be_used_is_named(
    run: Callable[..., Ran], clip: Path, images: list[Path], tmp_path: Path
) -> None:
    one = ("score", NAME, images[0], "a dog")
    error = refused(run(*one, "--offline"), "checkpoint_missing")
    assert "openai/clip-vit-base-patch32" in error.message
    assert "--checkpoint" in error.hint
    refused(run(*one, "--checkpoint", tmp_path / "no"), "checkpoint_missing")
    assert "model" in refused(run(*one, "--checkpoint", f"llm={clip}"), "unknown_role").hint
    refused(run(*one, "--revision", "llm=abc"), "unknown_role")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    error = refused(run(*one, "--checkpoint", tmp_path), "checkpoint_wrong_class")
    assert "bert" in error.message
    hps = ("score", "hpsv2", images[0], "a dog", "--offline")
    assert "--allow-pickle" in refused(run(*hps), "checkpoint_unsafe").hint


def test_a_device_that_is_not_there_is_named(
    run: Callable[..., Ran], clip: Path, images: list[Path]
) -> None:
    command = ("score", NAME, images[0], "a dog", "--checkpoint", clip, "--device")
    refused(run(*command, "gpu"), "unknown_device")
    assert "cuda:99" in refused(run(*command, "cuda:99"), "device_missing").message


def test_elements_are_for_metrics_that_score_them(
    run: Callable[..., Ran], images: list[Path]
) -> None:
    command = ("score", NAME, images[0], "a dog", "--element", "dog")
    refused(run(*command), "no_elements")


@pytest.mark.slow
def test_a_lower_precision_is_close_and_recorded(
    run: Callable[..., Ran], clip: Path, images: list[Path]
) -> None:
    command = ("score", NAME, images[0], "a dog", "--checkpoint", clip, "--json")
    full, half = run(*command).content, run(*command, "--dtype", "bfloat16").content
    assert half["environment"]["dtype"] == "bfloat16"
    assert half["pairs"][0]["score"] == pytest.approx(full["pairs"][0]["score"], abs=0.05)


def test_problems_elements_and_answers_are_shown() -> None:
    answers = (
        Answer("1", "Is there a dog?", "yes", "Yes.", 1.0),
        Answer("2", "Is it brown?", "yes", "No.", math.nan, valid=False),
    )
    tried = Tried(
        "a.png",
        "a brown dog",
        math.nan,
        "there is no number",
        elements={"dog": 0.25},
        answers=answers,
    )
    text = "\n".join(remarks([tried, tried]))
    assert text.count("there is no number") == 1
    for part in ("'dog': 0.25", "Is there a dog?", "'Yes.'", "expected 'yes'", "does not count"):
        assert part in text
    told = tried.to_json()
    assert told["score"] is None
    assert told["answers"][1]["value"] is None
    json.dumps(told, allow_nan=False)


@pytest.mark.slow
def test_nothing_is_scored_without_an_image(clip: Path) -> None:
    assert try_out(load_rows()[NAME], here(clip), [], ["a dog"]).pairs == ()
