"""Tables in place of a model: images known by their pixels, answers and scores looked up."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaluator.scorers.answering import pixel_hash
from evaluator.scorers.questions.files import write_records
from evaluator.scorers.questions.table import load_table_answers
from evaluator.scorers.registry import Runtime, load_rows, load_scorer
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.questions.fakes import yes_no

RED = Image.new("RGB", (3, 2), (255, 0, 0))
BLUE = Image.new("RGB", (2, 3), (0, 0, 255))
HASH = pixel_hash(RED)


def answers(folder: Path, *rows: str) -> Path:
    path = folder / "answers.csv"
    path.write_text("\n".join(["image,question,answer", *rows]) + "\n", encoding="utf-8")
    return path


def scorer_of(folder: Path, *rows: str) -> Any:
    path = folder / "scores.csv"
    path.write_text("\n".join(["image,prompt,score", *rows]) + "\n", encoding="utf-8")
    return load_scorer(load_rows()["score-table"], Runtime(folders={"table": path})).scorer


def test_an_image_is_known_by_size_and_pixels() -> None:
    assert hashlib.sha256(b"3x2:" + bytes([255, 0, 0] * 6)).hexdigest() == HASH
    assert pixel_hash(RED.convert("RGBA")) == HASH != pixel_hash(RED.resize((2, 3)))


def test_answers_are_found_by_file_or_by_hash(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    RED.save(tmp_path / "images" / "red.png")
    model = load_table_answers(
        answers(tmp_path, "images/red.png,Red?,yes", f"{pixel_hash(BLUE)},Red?,")
    )
    images = [model.prepare(BLUE), model.prepare(RED)]
    assert model.generate(images, [["Red?"], ["Red?"]], 8) == [[""], ["yes"]]
    assert model.environment["answers"].startswith("answers.csv sha256:")
    with refusal("answer_missing", "'Blue?'"):
        model.generate(images, [["Blue?"], []], 8)
    with refusal("table_without_probabilities"):
        model.answer_logprobs([], [], [])


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        (["none.png,Red?,yes"], "image_missing"),
        (["answers.csv,Red?,yes"], "image_unreadable"),
        (["0" * 64 + ",Red?,yes", "0" * 64 + ",Red?,no"], "duplicate_answers"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, rows: list[str], code: str) -> None:
    with refusal(code):
        load_table_answers(answers(tmp_path, *rows))


@pytest.mark.parametrize("name", ["dsg-qwen25vl", "dsg-table", "dsg-ts2-table"])
def test_a_table_of_answers_takes_the_place_of_the_model(tmp_path: Path, name: str) -> None:
    """The first row's template is for its model; the table is asked in the file's own words."""
    table = answers(tmp_path, f"{HASH},a car?,yes", f"{HASH},red?,no")
    path = tmp_path / "q.jsonl"
    write_records(path, [yes_no("p", "1", "a car?"), yes_no("p", "2", "red?", "1")])
    runtime = Runtime(folders={"table": table}, questions=path, offline=True)
    loaded = load_scorer(load_rows()[name], runtime)
    scorer: Any = loaded.scorer
    known, unknown = scorer.score([scorer.prepare(RED)] * 2, ["p", "unknown"])
    assert (known, math.isnan(unknown)) == (0.5, True)
    assert set(loaded.environment) == {"answers", "questions"}


def test_scores_are_looked_up_by_pixels_and_prompt(tmp_path: Path) -> None:
    scorer = scorer_of(tmp_path, f"{HASH},a leaf,0.25", f"{HASH},a frog,")
    prepared = scorer.prepare(RED)
    found = scorer.score([prepared] * 3, ["a leaf", "a frog", "a tree"])
    assert found[0] == 0.25
    assert all(math.isnan(score) for score in found[1:])
    assert scorer.score_texts([prepared], [["a tree"]])[0][0].problem


@pytest.mark.parametrize("score", ["inf", "nan", "high"])
def test_a_score_that_is_no_finite_number_is_refused(tmp_path: Path, score: str) -> None:
    with refusal("bad_score"):
        scorer_of(tmp_path, f"{HASH},a leaf,{score}")


def test_without_another_the_table_is_the_one_that_the_row_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = load_rows()["score-table"]
    with refusal("file_missing", "scores.csv"):
        load_scorer(row, Runtime())
    scorer_of(tmp_path, f"{HASH},a leaf,0.5")
    scorer: Any = load_scorer(row, Runtime()).scorer
    assert scorer.score([HASH], ["a leaf"]) == [0.5]
