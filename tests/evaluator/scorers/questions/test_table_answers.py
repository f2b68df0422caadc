from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.pixel_hash import pixel_hash
from evaluator.scorers.questions.table import load_table_answers

RED = Image.new("RGB", (3, 2), (255, 0, 0))
BLUE = Image.new("RGB", (2, 3), (0, 0, 255))


def table(folder: Path, *rows: str) -> Path:
    path = folder / "answers.csv"
    path.write_text("\n".join(["image,question,answer", *rows]) + "\n", encoding="utf-8")
    return path


def test_an_image_is_known_by_size_and_pixels() -> None:
    assert pixel_hash(RED) == hashlib.sha256(b"3x2:" + bytes([255, 0, 0] * 6)).hexdigest()
    assert pixel_hash(RED) == pixel_hash(RED.convert("RGBA"))
    assert pixel_hash(RED) != pixel_hash(RED.resize((2, 3)))


def test_answers_are_found_by_file_or_by_hash(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    RED.save(tmp_path / "images" / "red.png")
    path = table(tmp_path, "images/red.png,Red?,yes", f"{pixel_hash(BLUE)},Red?,")
    model = load_table_answers(path)
    images = [model.prepare(BLUE), model.prepare(RED)]
    assert model.generate(images, [["Red?"], ["Red?"]], 8) == [[""], ["yes"]]
    assert model.environment["answers"].startswith("answers.csv sha256:")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        (["none.png,Red?,yes"], "image_missing"),
        (["answers.csv,Red?,yes"], "image_unreadable"),
        (["0" * 64 + ",Red?,yes", "0" * 64 + ",Red?,no"], "duplicate_answers"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, rows: list[str], code: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        load_table_answers(table(tmp_path, *rows))
    assert caught.value.code == code


def test_an_answer_that_is_not_there_is_named(tmp_path: Path) -> None:
    model = load_table_answers(table(tmp_path, f"{pixel_hash(RED)},Red?,yes"))
    with pytest.raises(SubmitterError, match=r"'Blue\?'") as caught:
        model.generate([model.prepare(RED)], [["Blue?"]], 8)
    assert caught.value.code == "answer_missing"
    with pytest.raises(SubmitterError) as without:
        model.answer_logprobs([], [], [])
    assert without.value.code == "table_without_probabilities"
