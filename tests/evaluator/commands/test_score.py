"""`score`: images and prompts of one's own, matched by a table or crossed, scored and explained."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rich.console import Console
from typer.testing import Result

from benchmarks.errors import PlatformError
from evaluator.bundled import FOLDER
from evaluator.commands.score import ScoredPair, remarks, scores_table
from evaluator.image_folder import ImagePair, PromptRow, images_below, matched
from evaluator.metric import MetricSource
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import load_rows
from evaluator.scoring.contract import Answer
from evaluator.submission.templates import SkeletonKind, module_files
from tests.evaluator.commands.submitting import code_of, typed
from tests.evaluator.scorers.tiny_models import LONG, here, pictures

NAME = "clipscore-hessel"
REPO = "openai/clip-vit-base-patch32"


pytestmark = pytest.mark.usefixtures("empty_cache")


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one.png", tmp_path / "two.png"]
    for path, one in zip(paths, pictures(2), strict=True):
        one.save(path)
    return paths


def said(*words: object) -> str:
    done = typed("score", *words)
    assert done.exit_code == 0, done.output
    return done.stdout


def record(*words: object) -> Any:
    return json.loads(said(*words, "--json"))


def refused(code: str, *words: object) -> str:
    done: Result = typed("score", *words)
    assert code_of(done) == code, done.output
    assert getattr(done.exception, "exit_code", 1) == 1
    return str(done.exception)


@pytest.mark.slow
def test_a_pair_gets_the_score_of_the_scorer_itself(clip: Path, images: list[Path]) -> None:
    from evaluator.scorers.families.dual_encoder import FAMILY

    row, prompts = load_rows()[NAME], ["two dogs", "a red cube"]
    scorer: Any = FAMILY.load(row, FAMILY.check(row), here(clip)).scorer
    prepared = [scorer.prepare(Image.open(path).convert("RGB")) for path in images]
    expected = [scorer.score([image], [text])[0] for image in prepared for text in prompts]
    asked = (
        "--prompt",
        prompts[0],
        "--prompt",
        prompts[1],
        "--cross",
        "--checkpoint",
        f"model={clip}",
    )
    content = record(NAME, *images, *asked)
    assert [pair["score"] for pair in content["pairs"]] == pytest.approx(expected, abs=1e-6)
    pairs = [(pair["image"], pair["prompt"]) for pair in content["pairs"]]
    assert pairs == [(str(image), text) for image in images for text in prompts]
    assert (content["low"], content["high"]) == (0.0, 2.5)
    environment = content["environment"]
    assert (environment["checkpoint_model"], environment["dtype"]) == (str(clip), "float32")
    text = said(NAME, *images, "--prompt", "two dogs", "--checkpoint", clip, "--offline")
    assert text.count("two dogs") == 2 and "0..2.5" in text
    assert content["own_weights"] and content["trust"], "figures of other weights are called so"
    assert "its authors' weights" in text


@pytest.mark.slow
def test_what_was_done_to_the_input_is_said(clip: Path, images: list[Path], tmp_path: Path) -> None:
    moving = tmp_path / "moving.gif"
    frames = [each.resize((40, 40)) for each in pictures(2)]
    frames[0].save(moving, save_all=True, append_images=frames[1:])
    words = (NAME, moving, "--prompt", LONG[0], "--checkpoint", clip)
    assert "first" in said(*words)
    (pair,) = record(*words)["pairs"]
    assert pair["truncated"] is True and len(pair["remarks"]) >= 2
    one = (NAME, images[0], "--prompt", "a dog", "--checkpoint", clip)
    full, half = record(*one), record(*one, "--dtype", "bfloat16")
    assert half["environment"]["dtype"] == "bfloat16"
    assert half["pairs"][0]["score"] == pytest.approx(full["pairs"][0]["score"], abs=0.05)


def test_bad_images_are_named_before_a_model_is_loaded(images: list[Path], tmp_path: Path) -> None:
    gone, text, cut = (tmp_path / name for name in ("gone.png", "text.png", "cut.png"))
    text.write_text("no image")
    cut.write_bytes(images[0].read_bytes()[:900])
    for code, given in (
        ("image_missing", [gone]), ("image_unreadable", [text]), ("image_unreadable", [images[1], tmp_path]),
        ("image_unreadable", [images[1], cut]),
    ):  # fmt: skip
        assert str(given[-1]) in refused(code, NAME, *given, "--prompt", "a dog")
    refused("prompt_missing", NAME, images[0])
    (tmp_path / "empty").mkdir()
    refused("image_missing", NAME, tmp_path / "empty", "--prompt", "a dog")


@pytest.mark.slow
def test_what_a_metric_cannot_run_with_is_named(
    clip: Path, images: list[Path], tmp_path: Path
) -> None:
    one = (NAME, images[0], "--prompt", "a dog")
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
    hps = ("hpsv2", images[0], "--prompt", "a dog", "--offline")
    assert "--allow-pickle" in refused("checkpoint_unsafe", *hps)


def test_problems_elements_and_answers_are_shown() -> None:
    answers = (
        Answer("1", "Is there a dog?", "yes", "Yes.", 1.0),
        Answer("2", "Is it brown?", "yes", "No.", math.nan, valid=False),
    )
    nothing = "there is no number"
    pair = ImagePair("a.png", "a dog")
    tried = ScoredPair(pair, math.nan, nothing, elements={"dog": 0.25}, answers=answers)
    text = "\n".join(remarks([tried, tried]))
    assert text.count(nothing) == 1
    for part in ("'dog': 0.25", answers[0].question, "'Yes.'", "'yes'", "does not count"):
        assert part in text
    told = tried.to_json()
    assert (told["score"], told["answers"][1]["value"]) == (None, None)
    json.dumps(told, allow_nan=False)


# A folder and a table ---------------------------------------------------------------------------

BUNDLED = "colour-reader"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pictures: one for a prompt, two for another, in its folder."""
    made = tmp_path / "pictures"
    (made / "b").mkdir(parents=True)
    for place, one in zip(("a.png", "b/0.png", "b/1.png"), pictures(3), strict=True):
        one.save(made / place)
    return made


def table(folder: Path, text: str, name: str = "prompts.csv") -> Path:
    place = folder.parent / name
    place.write_text(text, encoding="utf-8")
    return place


BY_ID = "prompt_id,prompt\na,a red cube\nb,two dogs\n"
BY_FILE = "file,prompt\na.png,a red cube\nb/0.png,two dogs\nb/1.png,two dogs\n"
BY_LINE = """{"images": 1, "image": "a.png", "prompt": "a red cube"}
{"file": ["b/0.png", "b/1.png"], "prompt": "two dogs"}
"""
MATCHED = [("a.png", "a red cube"), ("b/0.png", "two dogs"), ("b/1.png", "two dogs")]


@pytest.mark.first_quick
@pytest.mark.isolation
@pytest.mark.parametrize(
    ("text", "name"), [(BY_ID, "p.csv"), (BY_FILE, "p.csv"), (BY_LINE, "p.jsonl")]
)
def test_images_are_scored_with_their_own_prompts_and_no_others(
    folder: Path, text: str, name: str
) -> None:
    out = folder.parent / "scores.csv"
    shown = said(BUNDLED, folder, "--prompts", table(folder, text, name), "--out", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["image"], row["prompt"]) for row in rows] == MATCHED
    assert all(math.isfinite(float(row["score"])) for row in rows)
    assert "nothing says how far it may be trusted" in shown
    assert [path.name for path in folder.parent.glob("scores*")] == ["scores.csv"]
    assert refused("file_exists", BUNDLED, folder, "--prompts", folder.parent / name, "--out", out)


@pytest.mark.slow
@pytest.mark.isolation
def test_one_output_of_a_module_is_named(folder: Path) -> None:
    place = folder.parent / "mine"
    place.mkdir()
    for name, content in module_files(SkeletonKind.OUTPUTS, "mine").items():
        (place / name).write_bytes(content)
    words = (place, folder, "--prompts", table(folder, BY_ID))
    assert "alignment, quality" in refused("output_missing", *words)
    assert refused("no_elements", *words, "--output-name", "quality", "--element", "cube")
    every = {
        name: [pair["score"] for pair in record(*words, "--output-name", name)["pairs"]]
        for name in ("alignment", "quality")
    }
    assert every["alignment"] != every["quality"]
    assert all(math.isfinite(score) for scores in every.values() for score in scores)


@pytest.mark.isolation
@pytest.mark.slow
def test_crossing_is_asked_for_and_lines_hold_what_a_table_does_not(folder: Path) -> None:
    prompts, out = table(folder, BY_ID), folder.parent / "scores.jsonl"
    said(FOLDER / "colour_reader", folder, "--prompts", prompts, "--cross", "--out", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 6 and {row["prompt_id"] for row in rows} == {"a", "b"}
    assert set(rows[0]) >= {"score", "problem", "remarks", "elements", "truncated"}


@pytest.mark.isolation
def test_all_that_is_wrong_with_images_and_prompts_is_said_at_once(folder: Path) -> None:
    (folder / "extra.png").write_bytes((folder / "a.png").read_bytes())
    (folder / "b/1.png").write_bytes(b"no image")
    text = BY_FILE + "gone.png,a cat\na.png,a red cube\n"
    words = (BUNDLED, folder, "--prompts", table(folder, text))
    told = refused("several_problems", *words)
    for named in ("gone.png", "extra.png", "b/1.png", "row 5", "4 things"):
        assert named in told
    kept = record(*words, "--partial")
    assert [pair["image"] for pair in kept["pairs"]] == ["a.png", "b/0.png"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("bad_prompt_row", "file,prompt\na.png,\n"),
        ("bad_prompt_row", "prompt\na red cube\n"),
        ("bad_prompts", "file,prompt\na.png,a red, cube\n"),
        ("bad_prompts", 'file,prompt\na.png,"a red cube\n'),
        ("no_prompts", "file,prompt\n"),
        ("several_problems", "id,prompt\nnone,a cat\n"),
        ("prompt_unmatched", "id,prompt\na,x\nb,x\nnone,a cat\n"),
        ("bad_prompts", "file;prompt\na.png;a red cube\n"),
        ("bad_prompts", "File,Prompt\na.png,a red cube\n"),
        ("bad_prompts", "prompt,file,prompt\na cat,a.png,a red cube\n"),
    ],
)
def test_a_table_that_says_too_little_is_refused(folder: Path, code: str, text: str) -> None:
    refused(code, BUNDLED, folder, "--prompts", table(folder, text))


def test_a_column_that_is_missing_is_told_with_those_that_are_there(folder: Path) -> None:
    told = refused("bad_prompts", BUNDLED, folder, "--prompts", table(folder, "id,text\na,x\n"))
    assert "`prompt`" in told and "`id`, `text`" in told


@pytest.mark.parametrize("named", ["e\u0301.png", "\u00e9.png"])
def test_a_name_is_the_same_however_its_accents_are_written(tmp_path: Path, named: str) -> None:
    places = {"\u00e9.png": tmp_path, "e\u0301/1.png": tmp_path}
    rows = [
        PromptRow("row 1", "a", files=(named,)),
        PromptRow("row 2", "b", prompt_id="\u00e9"),
    ]
    found = matched(dict.fromkeys(places, tmp_path), rows)
    assert {(pair.image, pair.prompt) for pair in found.pairs} >= {
        ("\u00e9.png", "a"),
        ("\u00e9.png", "b"),
        ("e\u0301/1.png", "b"),
    }
    assert not found.problems


def test_linked_folders_are_looked_into_and_rings_are_left(folder: Path) -> None:
    before = set(images_below(folder))
    other = folder.parent / "other"
    other.mkdir()
    (folder / "a.png").rename(other / "c.png")
    (other / "back").symlink_to(folder)
    (folder / "linked").symlink_to(other)
    assert set(images_below(folder)) == before - {"a.png"} | {"linked/c.png"}


def test_an_image_whose_name_is_no_text_is_told_with_the_others(folder: Path) -> None:
    name = os.fsdecode(b"bad\xff.png")
    (folder / name).write_bytes((folder / "a.png").read_bytes())
    told = refused("image_unreadable", BUNDLED, folder, "--prompt", "a dog")
    assert "not UTF-8" in told and told.isprintable()


def test_what_would_move_the_cursor_is_not_printed(folder: Path) -> None:
    escape = "a \x1b[31mcat\x07"
    pair = ScoredPair(ImagePair("a.png", escape), math.nan, "no \x1b[2J score")
    row = load_rows()[NAME]
    known = MetricSource(NAME, row.title, 0.0, 2.5, True, ModelSource(row, here(folder)))
    shown = Console(width=120, file=io.StringIO(), force_terminal=False)
    with shown.capture() as captured:
        shown.print(scores_table(known, [pair]))
    assert "a [31mcat" in captured.get() and "\x1b" not in captured.get()
    text = table(folder, 'id,prompt\n"no\x1b[31mne",x\n')
    assert "\x1b" not in refused("several_problems", BUNDLED, folder, "--prompts", text)


def test_several_prompts_are_not_crossed_unless_that_is_said(images: list[Path]) -> None:
    refused("prompts_crossed", NAME, images[0], "--prompt", "a dog", "--prompt", "a cat")
    words = (BUNDLED, images[0], "--prompt", "a dog", "--dtype", "bfloat16")
    assert "device" in refused("not_built_in", *words)
    refused("unknown_scorer", "clipscore-hesel", images[0], "--prompt", "a dog")


@pytest.mark.parametrize(
    ("code", "name"), [("no_prompts", "gone.csv"), ("unknown_format", "prompts.xlsx")]
)
def test_a_table_is_a_file_of_csv_or_json_lines(folder: Path, code: str, name: str) -> None:
    table(folder, BY_ID, "prompts.xlsx")
    assert name in refused(code, BUNDLED, folder, "--prompts", folder.parent / name)


def test_a_store_that_cannot_be_read_is_told_before_anything_is_scored(
    clip: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any, **__: Any) -> Any:
        raise PlatformError("hub_unreachable", "The Hub does not answer.")

    monkeypatch.setattr("evaluator.commands.score.trust_of", unreachable)
    monkeypatch.setattr("evaluator.commands.score.run_plan", lambda *_: pytest.fail("it was run"))
    words = (NAME, folder, "--prompts", table(folder, BY_ID), "--checkpoint", clip)
    assert code_of(typed("score", *words)) == "hub_unreachable"


@pytest.mark.slow
def test_a_data_set_may_hold_the_prompts(clip: Path, folder: Path) -> None:
    (folder.parent / "set").mkdir()
    (folder.parent / "set/train.csv").write_text(BY_ID)
    found = record(NAME, folder, "--prompts", folder.parent / "set", "--checkpoint", clip)
    assert [(pair["image"], pair["prompt"]) for pair in found["pairs"]] == MATCHED
    refused("unknown_split", NAME, folder, "--prompts", f"{folder.parent / 'set'}:test")
    refused("no_prompts", NAME, folder, "--prompts", folder.parent / "nothing")
    (folder.parent / "set/train.csv").write_text("id,text\na,a red cube\n")
    refused("bad_prompts", NAME, folder, "--prompts", folder.parent / "set")


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_and_leaves_its_file_alone(
    clip: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = folder.parent / "scores.csv"
    words = (NAME, folder, "--prompts", table(folder, BY_ID), "--out", out, "--checkpoint", clip)
    seen: list[int] = []

    work = folder.parent / "scores.csv.work"

    def stop(*_: Any) -> None:
        seen.append(len(list(work.glob("*"))))
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("evaluator.commands.score.write_whole", stop)
        done = typed("score", *words)
    assert done.exit_code == 130 and seen == [1] and not out.exists()
    assert work.is_dir()
    said(*words)
    assert out.is_file() and not work.exists()
