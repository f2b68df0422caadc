"""Checklists: what answers count, masks, what is absent, the alignment beside, and odd replies."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator.scorers.models.judge_replies import LONGEST_KEPT
from evaluator.scorers.registry import Runtime, find_row, load_rows, load_scorer
from tests.evaluator.scorers.common import later, refusal
from tests.evaluator.scorers.questions.fakes import FakeAnswers
from tests.evaluator.scorers.tiny_models import clip_flant5_folders, picture

family = later("evaluator.scorers.families.checklist")

ROWS = load_rows()
NAMES = [name for name, row in ROWS.items() if row.family == "checklist"]
IMAGES = [picture(1, 60, 40), picture(2, 56, 56)]


def options_of(name: str) -> Any:
    return family.FAMILY.check(ROWS[name])


def questions_of(name: str) -> list[str]:
    return [check.question for check in options_of(name).checks]


# Scores


def of_visionreward(said: list[str], alignment: float) -> float:
    """As the authors compute it: 1 or -1, times 0 behind a mask, masks left out, dot weights."""
    options = options_of("visionreward")
    reward = np.array([1 if one == "yes" else -1 for one in said])
    for mask, places in {0: [22, 23, 24, 28, 29], 1: [25, 26], 2: [27]}.items():
        reward[places] *= int(reward[mask] > 0)
    weights = [options.alignment_weight, *(check.weight for check in options.checks[3:])]
    return float(np.dot([alignment, *reward[3:]], weights))


class Aligned:
    """An alignment that is known."""

    def __init__(self, value: float) -> None:
        self.value = value

    def prepare(self, image: Any) -> Any:
        return image

    def score_texts(self, images: Any, prompts: Any) -> list[list[float]]:
        return [[self.value] * len(its) for its in prompts]

    def truncated(self, prompts: list[str]) -> list[bool]:
        return [len(prompt) > 100 for prompt in prompts]


def judged(name: str, said: list[str], alignment: Any = None) -> tuple[Any, FakeAnswers]:
    words = dict(zip(questions_of(name), said, strict=True))
    judge = FakeAnswers(lambda _, question: words[question])
    return family.Checklist(judge, options_of(name), alignment), judge


@pytest.mark.parametrize("seed", range(8))
def test_visionreward_is_what_the_authors_compute(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said = rng.choice(["yes", "no"], 30, p=[seed / 7, 1 - seed / 7]).tolist()
    alignment = float(rng.random())
    scorer, _ = judged("visionreward", said, Aligned(alignment))
    (found,) = scorer.score([scorer.prepare(IMAGES[0])], ["a cat"])
    assert found == pytest.approx(of_visionreward(said, alignment), abs=1e-12)
    row = ROWS["visionreward"]
    assert row.low is not None and row.high is not None and row.low <= found <= row.high


def test_the_ends_of_visionreward_are_reached() -> None:
    row = ROWS["visionreward"]
    worst = ["yes"] * 3 + ["no"] * 27
    assert of_visionreward(worst, 0.0) == pytest.approx(row.low, abs=1e-12)
    assert of_visionreward(["yes"] * 30, 1.0) == pytest.approx(row.high, abs=1e-12)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (["4", "4", "4", "4", "4"], 4.0), (["-1", "-1", "-1", "3", "0"], 1.5),
        (["0.The body is unbearable", "1", "2", "3", "4"], 2.0), (["-1"] * 5, None),
        (["-1", "-1", "-1", "3", "fine"], None),
    ],
)  # fmt: skip
def test_faithfulness_is_the_mean_of_ratings_that_apply(
    said: list[str], wanted: float | None
) -> None:
    scorer, judge = judged("evalalign-faithfulness", said)
    (first, second) = scorer.score_texts([scorer.prepare(IMAGES[0])], [["a", "b"]])[0]
    assert first.score == pytest.approx(math.nan if wanted is None else wanted, nan_ok=True)
    assert bool(first.problem) == bool(second.problem) == (wanted is None)
    assert len(judge.asked) == 5  # Once for both prompts.
    assert [one.valid for one in first.answers] == [one[0] in "01234" for one in said]
    assert scorer.truncated(["a" * 1000]) == [False]


def test_what_cannot_be_read_is_no_no_unless_it_stands_behind_a_closed_mask() -> None:
    said = ["no"] * 30
    said[27] = "unsure"  # about hands, of which there are none
    scorer, _ = judged("visionreward", said, Aligned(0.5))
    prepared = [scorer.prepare(IMAGES[0])]
    assert scorer.score(prepared, ["a"]) == [pytest.approx(of_visionreward(said, 0.5))]
    said[5] = "x" * 3000
    scorer, _ = judged("visionreward", said, Aligned(0.5))
    ((verdict,),) = scorer.score_texts(prepared, [["a"]])
    assert math.isnan(verdict.score) and questions_of("visionreward")[5] in verdict.problem
    assert len(verdict.answers) == 31
    assert LONGEST_KEPT < len(verdict.answers[5].raw) < LONGEST_KEPT + 100
    assert scorer.truncated(["a", "a" * 101]) == [False, True]


def test_a_missing_alignment_is_a_missing_score() -> None:
    scorer, judge = judged("visionreward", ["yes"] * 30, Aligned(math.nan))
    found = scorer.score_texts([scorer.prepare(one) for one in IMAGES], [["a"], []])
    assert math.isnan(found[0][0].score) and found[0][0].problem and found[1] == []
    assert len(judge.asked) == 30


# Rows and models


def test_visionreward_adds_vqascore_to_a_table_of_answers(tmp_path: Path) -> None:
    folders = clip_flant5_folders(tmp_path)
    IMAGES[0].save(tmp_path / "a.png")
    said = ["yes", "no"] * 15
    with (tmp_path / "answers.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("image", "question", "answer"))
        writer.writerows(zip(["a.png"] * 30, questions_of("visionreward"), said, strict=True))
    vqa = find_row("vqascore-t5", ROWS).model_copy(update={"dtype": "float32"})
    other: Any = load_scorer(vqa, Runtime(folders=folders)).scorer
    (alignment,) = other.score([other.prepare(IMAGES[0])], ["a cat"])
    own = {**folders, "alignment": folders["model"], "table": tmp_path / "answers.csv"}
    row = ROWS["visionreward"].model_copy(update={"dtype": "float32"})
    made = load_scorer(row, Runtime(folders={k: v for k, v in own.items() if k != "model"}))
    scorer: Any = made.scorer
    (found,) = scorer.score([scorer.prepare(IMAGES[0])], ["a cat"])
    assert found == pytest.approx(of_visionreward(said, alignment), abs=1e-9)
    assert made.environment["judge_answers"].startswith("answers.csv sha256:")
    with refusal("answer_missing"):
        scorer.score([scorer.prepare(IMAGES[1])], ["a cat"])


@pytest.mark.parametrize("name", NAMES)
def test_rows_read_the_prompt_by_the_alignment_alone(name: str) -> None:
    assert ROWS[name].reads_prompt == (options_of(name).alignment is not None)
