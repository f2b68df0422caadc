"""Ratings by levels: softmax of five logits, whatever the prompt; of a model, or of a table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.scorers.answering import padded_square
from evaluator.scorers.registry import Checkpoint, Runtime, ScorerRow, load_rows, load_scorer
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.scorers.questions.fakes import FakeAnswers
from tests.evaluator.scorers.tiny_models import here, picture, qwen2_vl, qwen3_vl, saved

family = later("evaluator.scorers.families.level_rating")

ROWS = {name: row for name, row in load_rows().items() if row.family == "level_rating"}
LEVELS = ("excellent", "good", "fair", "poor", "bad")
PROMPTS = ["a red ball", "two dogs", ""]
IMAGES = [picture(1, 90, 60), picture(2, 56, 112)]
LOGITS = st.lists(st.floats(-30, 30), min_size=5, max_size=5).map(np.array)


def options_of(name: str) -> Any:
    return family.FAMILY.check(ROWS[name])


@given(LOGITS, st.floats(-100, 100))
def test_deqa_is_1_and_4_times_onealign_and_both_are_means_of_levels(
    logits: Any, constant: float
) -> None:
    onealign, deqa = options_of("onealign").rating, options_of("deqa-score").rating
    shares = torch.softmax(torch.tensor(logits), dim=0)
    wanted = float(shares @ torch.tensor([5.0, 4, 3, 2, 1], dtype=torch.float64))
    assert deqa(logits) == pytest.approx(wanted, abs=1e-9)
    assert deqa(logits) == pytest.approx(1 + 4 * onealign(logits), abs=1e-9)
    assert onealign(logits + constant) == pytest.approx(onealign(logits), abs=1e-9)
    assert 0 <= onealign(logits) <= 1


def test_rows_read_the_image_only_and_reach_the_ends_of_their_range() -> None:
    for row in ROWS.values():
        rating = family.FAMILY.check(row).rating
        assert not row.reads_prompt
        ends = [rating(np.array(logits)) for logits in ([0, 0, 0, 0, 99.0], [99.0, 0, 0, 0, 0])]
        assert ends == pytest.approx([row.low, row.high], abs=1e-9)


def row_of(name: str, **reading: Any) -> ScorerRow:
    """A row whose weights are a folder's."""
    options = dict(ROWS[name].options)
    options["reading"] = {**options["reading"], **reading}
    changed = {"checkpoints": {"model": Checkpoint(id="nobody/tiny")}, "options": options}
    return ROWS[name].model_copy(update={**changed, "dtype": "float32"})


@pytest.mark.parametrize(
    ("name", "kind"), [("deqa-score", qwen2_vl), ("quality-levels-qwen3-vl-8b", qwen3_vl)]
)
def test_a_rating_is_that_of_the_librarys_logits_of_the_next_word(
    tmp_path: Path, name: str, kind: Any
) -> None:
    model, processor = kind()
    row = row_of(name, answer_space=False)
    scorer: Any = load_scorer(row, here(saved(tmp_path, model, processor))).scorer
    found = scorer.score_texts([scorer.prepare(image) for image in IMAGES], [PROMPTS, PROMPTS[:1]])
    text = row.options["reading"]["text_format"].replace("{prompt}", row.options["question"])
    inputs_of = processor(
        text=[text.replace("{image}", processor.image_token)],
        images=[padded_square(IMAGES[0])],
        return_tensors="pt",
    )
    with torch.no_grad():
        logits = model(**inputs_of).logits[0, -1].double()
    firsts = [processor.tokenizer.encode(one, add_special_tokens=False)[0] for one in LEVELS]
    wanted = torch.softmax(logits[firsts], dim=0) @ torch.tensor(row.options["weights"]).double()
    assert [one.score for one in found[0]] == pytest.approx([float(wanted)] * 3, abs=1e-5)
    assert abs(found[1][0].score - found[0][0].score) > 1e-6
    assert scorer.score_texts([], []) == []


def test_an_image_is_asked_about_once_and_nan_is_a_verdict_with_a_reason() -> None:
    known = {("x", "?", level): [-1.0] for level in LEVELS}
    known |= {("y", "?", level): [math.nan] for level in LEVELS}
    model, options = (
        FakeAnswers(logprobs=known),
        family.Options(question="?", weights=(1, 0, 0, 0, 0)),
    )
    scorer: Any = family.LevelRating(family.ModelLevels(model, options), options)
    (first, second, none) = scorer.score_texts(["x", "y", "z"], [PROMPTS, PROMPTS[:1], []])
    assert model.calls == [[["?"], ["?"]]]
    assert [one.score for one in first] == pytest.approx([0.2] * 3)
    assert math.isnan(second[0].score) and "NaN" in second[0].problem
    assert none == []


def table(folder: Path, *lines: str) -> Path:
    path = folder / "levels.csv"
    path.write_text("\n".join([",".join(("image", *LEVELS)), *lines]) + "\n")
    return path


def test_levels_of_a_table_are_looked_up_by_pixels_and_missing_ones_are_said(
    tmp_path: Path,
) -> None:
    IMAGES[0].save(tmp_path / "a.png")
    path = table(tmp_path, "a.png,1,2,3,4,5")
    made = load_scorer(ROWS["deqa-score"], Runtime(folders={"table": path}))
    scorer: Any = made.scorer
    found, missing = scorer.score_texts([scorer.prepare(image) for image in IMAGES], [["a"], ["a"]])
    weights = np.exp(np.arange(1, 6))
    wanted = weights @ np.arange(5, 0, -1) / weights.sum()
    assert [one.score for one in found] == [pytest.approx(wanted)]
    assert math.isnan(missing[0].score) and missing[0].problem
    assert made.environment["levels"].startswith("levels.csv sha256:")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("a.png,1,2,3,4,x",), "bad_score"),
        (("a.png,1,2,3,4,",), "bad_score"),
        (("a.png,1,2,3,4,inf",), "bad_score"),
        (("a.png,1,2,3,4,5", "a.png,1,2,3,4,6"), "duplicate_logits"),
        (("b.png,1,2,3,4,5",), "image_missing"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(
    tmp_path: Path, lines: tuple[str, ...], code: str
) -> None:
    IMAGES[0].save(tmp_path / "a.png")
    with refusal(code):
        load_scorer(ROWS["onealign"], Runtime(folders={"table": table(tmp_path, *lines)}))
