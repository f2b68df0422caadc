"""`scorers`: what there is, what each computes and costs, one tried on images, one checked."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import Result

from evaluator.commands.scorers import remarks
from evaluator.scorers.preview import PairPreview, try_out
from evaluator.scorers.registry import load_rows
from evaluator.scoring.contract import Answer
from leaderboard.trust import TrustReport
from tests.conftest import REPOSITORY
from tests.evaluator.commands.submitting import code_of, typed
from tests.evaluator.scorers.tiny_models import LONG, here, pictures, save_clip

NAME = "clipscore-hessel"
REPO = "openai/clip-vit-base-patch32"


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one.png", tmp_path / "two.png"]
    for path, one in zip(paths, pictures(2), strict=True):
        one.save(path)
    return paths


def said(*words: object) -> str:
    done = typed("scorers", *words)
    assert done.exit_code == 0, done.output
    return done.stdout


def record(*words: object) -> Any:
    return json.loads(said(*words, "--json"))


def refused(code: str, *words: object) -> str:
    done: Result = typed("scorers", *words)
    assert code_of(done) == code, done.output
    assert getattr(done.exception, "exit_code", 1) == 1
    return str(done.exception)


def test_every_metric_is_listed_and_described_whole() -> None:
    listed, rows = record("list"), load_rows()
    assert [one["name"] for one in listed] == list(rows)
    assert all(name in said("list") for name in rows)
    assert [one["needs"] for one in listed if one["name"] == "hpsv2"] == [["--allow-pickle"]]
    family = record("list", "--family", "blip2_itc")
    assert {one["family"] for one in family} == {"blip2_itc"}
    assert "dual_encoder" in refused("unknown_family", "list", "--family", "dual")
    row, text, content = rows[NAME], said("describe", NAME), record("describe", NAME)
    parts = (
        row.formula, row.source, row.notes[0], REPO, "licence: not verified", "0..2.5", "float32",
        "not in the cache", "truncation='end_kept'", "151 M",
    )  # fmt: skip
    assert [part for part in parts if part not in text] == []
    assert (content["formula"], content["options"]["truncation"]) == (row.formula, "end_kept")
    checkpoint = content["checkpoints"]["model"]
    assert (checkpoint["place"], checkpoint["revision"]) == (None, None)
    for words in (("describe", "clipscore-hesel"), ("score", "clipscore-hesel", "a.png", "a dog")):
        assert NAME in refused("unknown_scorer", *words)


def test_describing_names_the_commit_that_is_in_the_cache(tmp_path: Path) -> None:
    commit = "a" * 40
    snapshot = tmp_path / "hub" / f"models--{REPO.replace('/', '--')}" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"w")
    (tmp_path / "assay_checkpoints.json").write_text(json.dumps({REPO: commit}))
    assert commit in said("describe", NAME)


def test_a_pair_gets_the_score_of_the_scorer_itself(clip: Path, images: list[Path]) -> None:
    from evaluator.scorers.families.dual_encoder import FAMILY

    row, prompts = load_rows()[NAME], ["two dogs", "a red cube"]
    scorer: Any = FAMILY.load(row, FAMILY.check(row), here(clip)).scorer
    prepared = [scorer.prepare(Image.open(path).convert("RGB")) for path in images]
    expected = [scorer.score([image], [text])[0] for image in prepared for text in prompts]
    asked = ("--prompt", prompts[0], "--prompt", prompts[1], "--checkpoint", f"model={clip}")
    content = record("score", NAME, *images, *asked)
    assert [pair["score"] for pair in content["pairs"]] == pytest.approx(expected, abs=1e-6)
    pairs = [(pair["image"], pair["prompt"]) for pair in content["pairs"]]
    assert pairs == [(str(image), text) for image in images for text in prompts]
    assert (content["low"], content["high"]) == (0.0, 2.5)
    environment = content["environment"]
    assert (environment["checkpoint_model"], environment["dtype"]) == (str(clip), "float32")
    text = said("score", NAME, *images, "two dogs", "--checkpoint", clip, "--offline")
    assert text.count("two dogs") == 2 and "0..2.5" in text  # the last argument


@pytest.mark.slow
def test_what_was_done_to_the_input_is_said(clip: Path, images: list[Path], tmp_path: Path) -> None:
    moving = tmp_path / "moving.gif"
    frames = [each.resize((40, 40)) for each in pictures(2)]
    frames[0].save(moving, save_all=True, append_images=frames[1:])
    words = ("score", NAME, moving, LONG[0], "--checkpoint", clip)
    assert "first" in said(*words)
    (pair,) = record(*words)["pairs"]
    assert pair["truncated"] is True and len(pair["remarks"]) >= 2
    one = ("score", NAME, images[0], "a dog", "--checkpoint", clip)
    full, half = record(*one), record(*one, "--dtype", "bfloat16")
    assert half["environment"]["dtype"] == "bfloat16"
    assert half["pairs"][0]["score"] == pytest.approx(full["pairs"][0]["score"], abs=0.05)
    assert try_out(load_rows()[NAME], here(clip), [], ["a dog"]).pairs == ()


def test_bad_images_are_named_before_a_model_is_loaded(images: list[Path], tmp_path: Path) -> None:
    gone, text, cut = (tmp_path / name for name in ("gone.png", "text.png", "cut.png"))
    text.write_text("no image")
    cut.write_bytes(images[0].read_bytes()[:900])
    for code, given in (
        ("image_missing", [gone]), ("image_unreadable", [text]), ("image_unreadable", [tmp_path]),
        ("image_unreadable", [images[1], cut]),
    ):  # fmt: skip
        assert str(given[-1]) in refused(code, "score", NAME, *given, "a dog")
    refused("prompt_missing", "score", NAME, images[0])


def test_what_a_metric_cannot_run_with_is_named(
    clip: Path, images: list[Path], tmp_path: Path
) -> None:
    one = ("score", NAME, images[0], "a dog")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    for code, named, more in (
        ("checkpoint_missing", REPO, ("--offline",)),
        ("checkpoint_missing", "no", ("--checkpoint", tmp_path / "no")),
        ("checkpoint_wrong_class", "bert", ("--checkpoint", tmp_path)),
        ("unknown_role", "model", ("--checkpoint", f"llm={clip}")),
        ("unknown_role", "llm", ("--revision", "llm=abc")),
        ("unknown_device", "gpu", ("--checkpoint", clip, "--device", "gpu")),
        ("device_missing", "cuda:99", ("--checkpoint", clip, "--device", "cuda:99")),
        ("no_elements", NAME, ("--element", "dog")),
    ):
        assert named in refused(code, *one, *more)
    hps = ("score", "hpsv2", images[0], "a dog", "--offline")
    assert "--allow-pickle" in refused("checkpoint_unsafe", *hps)


def test_problems_elements_and_answers_are_shown() -> None:
    answers = (
        Answer("1", "Is there a dog?", "yes", "Yes.", 1.0),
        Answer("2", "Is it brown?", "yes", "No.", math.nan, valid=False),
    )
    nothing = "there is no number"
    tried = PairPreview(
        "a.png", "a dog", math.nan, nothing, elements={"dog": 0.25}, answers=answers
    )  # fmt: skip
    text = "\n".join(remarks([tried, tried]))
    assert text.count(nothing) == 1
    for part in ("'dog': 0.25", answers[0].question, "'Yes.'", "'yes'", "does not count"):
        assert part in text
    told = tried.to_json()
    assert (told["score"], told["answers"][1]["value"]) == (None, None)
    json.dumps(told, allow_nan=False)


@pytest.mark.slow
def test_the_trust_checks_of_a_metric_and_of_another_precision(clip: Path) -> None:
    words = ("check", "clipscore-ts2", "--benchmark", "demo_croc", "--images", "4")
    given = ("--checkpoint", f"model={clip}")
    shown = said(*words, *given)
    assert "Passed" in shown and "float32" not in shown
    report = TrustReport.model_validate(record(*words, *given, "--dtype", "bfloat16"))
    assert report.precision is not None and report.precision.largest is not None
    assert 0.0 < report.precision.largest < 0.5  # of cosines times about 100
    dtypes = report.environment["dtype"], report.precision.reference["dtype"]
    assert (dtypes, report.limit) == (("bfloat16", "float32"), 0.05)


# Costs ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_document_holds_the_table_of_costs_with_what_each_rests_on(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "gpu-and-cluster.md").read_text()
    command = "scorers cost --gpu a100 --markdown"
    assert f"python -m evaluator {command}" in text
    table = said(*command.split()[1:], "--rates", tmp_path / "none.json").strip()
    shown = re.search(r"<!-- costs -->\n(.*?)\n<!-- end of costs -->", text, re.DOTALL)
    assert shown is not None and shown[1].strip() == table, f"write what `{command}` prints"
    lines = [line.split("|") for line in table.splitlines()[2:]]
    assert sorted(n.strip() for line in lines for n in line[1].split(",")) == sorted(load_rows())
    cells = [cell.strip() for line in lines for cell in line[2:-1]]
    assert all(re.fullmatch(r"–|(<0\.01|[\d.]+)–(<0\.01|[\d.]+) [mep]", cell) for cell in cells)


@pytest.mark.slow
def test_programs_get_hours_prices_and_reasons(tmp_path: Path) -> None:
    words = ("cost", "--metric", "pickscore", "--benchmark", "ts2", "--gpu-rate", "2")
    (one,) = record(*words, "--rates", tmp_path / "none.json")["costs"]
    assert (one["metric"], one["benchmark"]) == ("pickscore", "ts2")
    assert [each["basis"] for each in one["estimates"]] == ["estimated", "published"]
    for each in one["estimates"]:
        assert each["price"] == [2 * hours for hours in each["hours"]]
        assert each["why"]


@pytest.mark.slow
def test_a_metric_is_measured_and_kept(clip: Path, tmp_path: Path) -> None:
    kept = ("cost", "--rates", tmp_path / "rates.json", "--benchmark", "ts2")
    words = ("--measure", NAME, "--device", "cpu", "--offline", "--images", 2)
    assert "measured on cpu" in said(*kept, *words, "--checkpoint", f"model={clip}")
    assert " m " in said(*kept, "--metric", NAME)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--gpu", "abacus"), "unknown_gpu"),
        (("--metric", "nothing"), "unknown_scorer"),
        (("--benchmark", "croc_syn"), "size_unknown"),
    ],
)
def test_what_cannot_be_reckoned_is_refused(words: tuple[str, ...], code: str) -> None:
    refused(code, "cost", *words)
