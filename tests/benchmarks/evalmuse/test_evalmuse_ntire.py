"""The board of NTIRE 2025 track 1, whose label file an operator supplies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import benchmarks.evalmuse
from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.protocol import EvalMuseNtire
from benchmarks.registry import load_registry
from benchmarks.scores import parse_scores
from tests.benchmarks.evalmuse.evalmuse_tree import image_bytes, write_images, write_json

EVAL = "eval.json"
FORMAT = Path(benchmarks.evalmuse.__file__).parent / "FORMAT.md"


def item(img_path: str, *keys: str, **changes: Any) -> dict[str, Any]:
    return {
        "img_path": img_path,
        "total_score": 3.0,
        "element_score": dict.fromkeys(keys or ("cup (object)",), 0.666667),
    } | changes


def test_the_example_of_the_format_page_is_accepted(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", FORMAT.read_text(encoding="utf-8"), re.DOTALL)
    answers = EvalMuseNtire().answers(write_json(tmp_path, EVAL, json.loads(example)))
    assert answers.pair_ids == ("Kolors/02011.png", "SDXL-Turbo/00805.png")
    assert answers.images["label"].tolist() == [4.0, 3.333333]
    assert answers.elements["label"].tolist() == [0.666667, 0.666667, 1.0]
    assert answers.elements["skill"].tolist() == ["color", "counting", "object"]
    assert set(answers.sources) == {"evalmuse/eval.json"}


def test_images_with_the_same_elements_are_of_one_prompt(tmp_path: Path) -> None:
    items = [
        item("c.png", "a (color)", "b (food)"),
        item("a.png", "b (food)", "a (color)"),
        item("b.png", "a (color)"),
        item("d.png") | {"element_score": {}},
        item("e.png") | {"element_score": {}},
    ]
    answers = EvalMuseNtire().answers(write_json(tmp_path, EVAL, items))
    prompts = dict(zip(answers.pair_ids, answers.images["prompt_id"], strict=True))
    assert prompts["a.png"] == prompts["c.png"]
    assert len(answers.clusters) == len(set(prompts.values())) == 4


def test_prompts_are_taken_where_they_are_given(tmp_path: Path) -> None:
    items = [
        item("a.png", prompt="a cup"),
        item("b.png", prompt="A cup "),
        item("c.png", prompt="x"),
    ]
    answers = EvalMuseNtire().answers(write_json(tmp_path, EVAL, items))
    assert len(answers.clusters) == 2


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (item("a.png", total_score=0.5), "total_score holds 0.5"),
        (item("a.png", total_score=[]), "empty list"),
        (item("a.png", element_score={"cup (object)": 1.5}), "expected numbers in 0..1"),
        ({"img_path": "a.png", "total_score": 3}, "it has no element_score"),
        (item("z.png"), "image 'z.png' a second time in item 1"),
    ],
)
def test_a_wrong_label_file_is_refused_by_item(
    tmp_path: Path, bad: dict[str, Any], says: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        EvalMuseNtire().answers(write_json(tmp_path, EVAL, [item("z.png"), bad]))
    assert caught.value.code == "data_malformed"
    assert "eval.json" in caught.value.message
    assert "item 1" in caught.value.message
    assert says in caught.value.message


def test_without_the_file_the_error_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match=r"eval\.json") as caught:
        EvalMuseNtire().answers(tmp_path)
    assert caught.value.code == "data_missing"
    assert "FORMAT.md" in caught.value.hint


def labelled(tmp_path: Path, **changes: Any) -> Path:
    items = [
        item(f"img_{n:04d}.png", "cup (object)", f"{n // 2} (counting)", **changes)
        | {"total_score": 1 + n % 5}
        for n in range(20)
    ]
    return write_json(tmp_path, EVAL, items)


def test_a_scores_file_gets_the_final_score_as_the_headline(tmp_path: Path) -> None:
    board = EvalMuseNtire()
    answers = board.answers(labelled(tmp_path))
    lines = ["pair_id,score,element_id,element_score"]
    lines += [f"{p},{n % 5 + n % 3 / 10},," for n, p in enumerate(answers.pair_ids)]
    lines += [f"{e.pair_id},,{e.element_id},0.9" for e in answers.elements.itertuples()]
    scores = parse_scores("\n".join(lines).encode(), "s.csv", board, answers, metric="m")
    measured = board.evaluate(scores, answers, 50)
    (row,) = (r for r in measured.rows if board.card.headline.matches(r) and r.skill is None)
    assert row.value == pytest.approx(0.25 * 2 + 0.5, abs=0.1)
    assert (row.benchmark, row.measure, row.variant) == ("evalmuse_ntire", "ntire_track1", "code")
    assert (row.n_items, row.n_clusters) == (20, 10)
    assert row.ci_low <= row.value


def test_code_can_be_run_where_prompts_and_images_are_there(tmp_path: Path) -> None:
    folder = labelled(tmp_path, prompt="a cup")
    board = EvalMuseNtire()
    assert not board.has_questions(folder)
    with pytest.raises(SubmitterError) as caught:
        board.questions(folder)
    assert caught.value.code == "images_missing"
    names = [f"img_{n:04d}.png" for n in range(20)]
    write_images(folder, "ntire_images", names)
    assert board.has_questions(folder)
    questions = board.questions(folder)
    assert questions.images["img_0003.png"]() == image_bytes("img_0003.png")
    assert set(questions.texts.values()) == {"a cup"}


def test_images_without_prompts_are_no_questions(tmp_path: Path) -> None:
    folder = write_images(
        labelled(tmp_path), "ntire_images", [f"img_{n:04d}.png" for n in range(20)]
    )
    assert not EvalMuseNtire().has_questions(folder)
    with pytest.raises(SubmitterError, match="no prompt for 20 of 20 images"):
        EvalMuseNtire().questions(folder)


def test_per_pair_data_of_the_challenge_stay_private() -> None:
    assert not load_registry()["evalmuse_ntire"].card.answers_public
