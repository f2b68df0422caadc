"""UniGenBench's judge and EvalAlign: test points and rated questions, and replies that are odd."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.models.judge_replies import LONGEST_KEPT
from evaluator.scorers.questions.files import Question, write_records
from evaluator.scorers.questions.metric import QuestionScorer
from evaluator.scorers.registry import Checkpoint, Runtime, load_rows, load_scorer
from tests.evaluator.scorers.common import later, refusal
from tests.evaluator.scorers.questions.fakes import FakeAnswers, file_of, yes_no
from tests.evaluator.scorers.tiny_models import qwen2_5_vl, saved

points = later("evaluator.scorers.families.checkpoint_judge")
rated = later("evaluator.scorers.families.rated_questions")

ROWS = load_rows()
P = "two {prompt} pandas"
STYLE = yes_no(P, "1", "ink painting", expected="1", type="Style", choices=())
COUNT = yes_no(P, "2", "two pandas", expected="1", type="Attribute - Quantity", choices=())
FIRST = yes_no(P, "1", "All there? Answer: 0, none. 1, some. 2, all.", expected="2", choices=())
SECOND = yes_no(P, "2", "Are colours right?", expected="2", choices=())


def options_of(name: str) -> Any:
    family = points if ROWS[name].family == "checkpoint_judge" else rated
    return family.FAMILY.check(ROWS[name])


def judged(reply: str, *asked: Question) -> tuple[Any, FakeAnswers]:
    model = FakeAnswers(lambda *_: reply, longest=100_000)
    metric = points.CheckpointJudge(options_of("unigenbench-qwen-72b"))
    (verdict,) = QuestionScorer(metric, model, file_of(*asked)).score_texts(["x"], [[P]])[0]
    return verdict, model


def test_the_instruction_is_that_of_the_authors_program() -> None:
    options = options_of("unigenbench-qwen-72b")
    _, model = judged("<score>[1, 0]</score>", STYLE, COUNT)
    types = ["Style", "Attribute - Quantity"]
    defined, described = "Checkpoints Defination:\u300c", "Checkpoints Description:\u300c"
    for kind, text in zip(types, ("ink painting", "two pandas"), strict=True):
        defined += f"\n{kind}: {options.definitions[kind]}"
        described += f"\n{kind}: {text}"
    (asked,) = model.asked
    for part in (f"{defined}\n\u300d", f"{described}\n\u300d", f"\u300c{P}\u300d"):
        assert asked.count(part) == 1
    assert asked.count(str(types)) == 2 and "{types}" not in asked
    assert asked.count(P) == 2


@pytest.mark.parametrize("flags", ["[1, 0]", "[0,0]", "[1,\n1]"])
def test_the_score_is_the_share_of_ones_and_each_test_point_has_its_own(flags: str) -> None:
    verdict, _ = judged(
        f"<analysis>['it\\'s', 'x']</analysis><score> {flags} </score>", STYLE, COUNT
    )
    wanted = ast.literal_eval(flags)
    assert verdict.score == sum(wanted) / 2 and not verdict.problem
    assert [(one.question_id, one.value) for one in verdict.answers[1:]] == [
        ("1", wanted[0]), ("2", wanted[1]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        "", "[1, 0]", "<score>[1, 0]", "<score></score>", "<score>[1]</score>", "<score>[1, 2]</score>",
        "<score>[1, 0, 1]</score>", "<score>1, 0</score>", "<score>[0.5, 1]</score>",
        "<score>[True, False]</score>", "<score>[1, 0]</score><score>[1, 1]</score>",
        "<think><score>[1, 0]</score>", '{"score": [1, 0]}', "<score>[１, 0]</score>",
        "<score>['1', '0']</score>", "<score>" * 15_000, "z" * 100_000,
    ],
    ids=lambda value: value[:24],
)  # fmt: skip
def test_a_list_that_cannot_be_read_is_a_missing_score_with_its_reply(reply: str) -> None:
    verdict, _ = judged(reply, STYLE, COUNT)
    assert math.isnan(verdict.score) and verdict.problem
    (answer,) = verdict.answers
    assert not answer.valid and answer.raw[:LONGEST_KEPT] == reply[:LONGEST_KEPT]
    assert len(answer.raw) < LONGEST_KEPT + 100


def test_every_row_defines_the_27_types() -> None:
    for name in ("unigenbench-qwen-72b", "unigenbench-qwen3vl-32b"):
        assert len(options_of(name).definitions) == 27


# EvalAlign


def aligned(*said: str) -> Any:
    words = dict(zip((FIRST.question, SECOND.question), said, strict=True))
    model = FakeAnswers(lambda _, put: words[put])
    metric = rated.RatedQuestions(options_of("evalalign-alignment"))
    scorer = QuestionScorer(metric, model, file_of(FIRST, SECOND))
    return scorer.score_texts(["x"], [[P]])[0][0]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (("2", "1"), 3.0), (("0, None objects are included.", "2."), 2.0), (("0", "0"), 0.0),
        (("2", "fine"), None), (("3", "1"), None), (("2", ""), None), (("1 or 2", "1"), None),
        (("-1", "1"), None), (("2", "٢"), None), (("2", "y" * 100_000), None),
    ],
)  # fmt: skip
def test_the_sum_of_ratings_needs_all_of_them(said: tuple[str, str], wanted: float | None) -> None:
    verdict = aligned(*said)
    assert verdict.score == pytest.approx(math.nan if wanted is None else wanted, nan_ok=True)
    assert bool(verdict.problem) == (wanted is None)
    assert [len(one.raw) < LONGEST_KEPT + 100 for one in verdict.answers] == [True, True]


# Small random models


def tiny(name: str, folder: Path, made: Any, *asked: Question) -> tuple[Any, Runtime]:
    """A row with a model in a folder, and how it is run."""
    options = {**ROWS[name].options, "max_new_tokens": 4}
    changed = {"checkpoints": {"model": Checkpoint(id="nobody/tiny")}, "dtype": "float32"}
    row = ROWS[name].model_copy(update={**changed, "options": options})
    write_records(folder / "questions.jsonl", list(asked))
    folders = {"model": saved(folder / "model", *made)}
    return row, Runtime(folders=folders, questions=folder / "questions.jsonl")


def test_questions_of_another_kind_and_none_at_all_are_refused(tmp_path: Path) -> None:
    other = STYLE.model_copy(update={"type": "Taste"})
    row, runtime = tiny("unigenbench-qwen-72b", tmp_path, qwen2_5_vl(), other)
    with refusal("questions_unfit", "Taste"):
        load_scorer(row, runtime)
    with refusal("questions_missing", "import unigenbench"):
        load_scorer(row, Runtime(folders=runtime.folders))
