from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.lines import write_records
from evaluator.scorers.questions.question import Question
from evaluator.scorers.questions.scorer import QuestionScorer
from evaluator.scorers.registry import load_rows, load_scorer
from evaluator.scorers.runtime import Runtime
from evaluator.scoring.contract import Verdict
from tests.evaluator.scorers.questions.fakes import FakeAnswers, FakeSimilarity, file_of, yes_no

if TYPE_CHECKING:
    from evaluator.scorers.families.question_answering import QuestionAnswering

P = "a red car without wheels"
COLOR = Question(
    prompt=P,
    question_id="1",
    question="what color is it?",
    choices=("red", "blue", "green", "black"),
    expected="red",
    element="red",
)


def verdict(metric: QuestionAnswering, words: dict[str, str], *questions: Question) -> Verdict:
    model = FakeAnswers({("x", asked): answer for asked, answer in words.items()})
    return QuestionScorer(metric, model, file_of(*questions)).score_texts(["x"], [[P]])[0][0]


@pytest.mark.parametrize(("answer", "right"), [("Red.", 1.0), ("crimson", 1.0), ("navy", 0.0)])
def test_tifa_takes_the_literal_choice_else_the_nearest(answer: str, right: float) -> None:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    similarity = FakeSimilarity({"crimson": "red", "navy": "blue"})
    metric = QuestionAnswering(Options(parse="choice"), similarity)
    assert verdict(metric, {"what color is it?": answer}, COLOR).score == right


def test_tifa_is_the_mean_over_questions_with_expected_no() -> None:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    asked = (COLOR, yes_no(P, "2", "wheels?", expected="no"), yes_no(P, "3", "a car?"))
    words = {"what color is it?": "red", "wheels?": "No, there are none", "a car?": "no"}
    nearest = FakeSimilarity({"No, there are none": "no"})
    found = verdict(QuestionAnswering(Options(parse="choice"), nearest), words, *asked)
    assert found.score == pytest.approx(2 / 3)
    assert [answer.value for answer in found.answers] == [1.0, 1.0, 0.0]


def test_as_in_ts2_yes_is_right_whatever_is_expected() -> None:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    asked = yes_no(P, "1", "wheels?", expected="no")
    other = Question(
        prompt=P, question_id="2", question="who?", choices=("man", "woman"), expected="man"
    )
    words = {"wheels?": "yes", "who?": "a man"}
    found = verdict(QuestionAnswering(Options(parse="substring")), words, asked, other)
    assert [answer.value for answer in found.answers] == [1.0, 0.0]


def test_dsg_keeps_a_question_behind_a_closed_gate_in_the_mean() -> None:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    asked = (
        yes_no(P, "1", "a car?"),
        yes_no(P, "2", "red?", "1"),
        yes_no(P, "3", "dark red?", "2"),
    )
    words = {"a car?": "no", "red?": "yes", "dark red?": "yes"}
    official = verdict(QuestionAnswering(Options(gate="onehop")), words, *asked)
    ts2 = verdict(QuestionAnswering(Options(gate="recursive", parse="substring")), words, *asked)
    assert official.score == pytest.approx(1 / 3)
    assert ts2.score == 0.0
    assert [(a.value, a.valid, a.raw) for a in official.answers] == [
        (0.0, True, "no"),
        (0.0, False, "yes"),
        (1.0, True, "yes"),
    ]


def test_a_question_without_choices_wants_the_expected_words() -> None:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    asked = Question(prompt=P, question_id="1", question="what?", expected="A car")
    assert verdict(QuestionAnswering(Options()), {"what?": "a car."}, asked).score == 1.0


def test_the_template_tells_question_and_choices() -> None:
    from evaluator.scorers.families.question_answering import Options, QuestionAnswering

    metric = QuestionAnswering(Options(template="{question} ({choices})", parse="choice"))
    words = {"what color is it? (red, blue, green, black)": "red"}
    found = verdict(metric, words, COLOR)
    assert found.answers[0].question == "what color is it? (red, blue, green, black)"


def test_without_a_question_file_the_row_says_who_writes_one() -> None:
    rows = load_rows()
    for name, writer in (("tifa-blip", "tifa"), ("dsg-blip", "dsg"), ("bvqa", "bvqa")):
        with pytest.raises(SubmitterError, match=f"--writer {writer}") as caught:
            load_scorer(rows[name], Runtime())
        assert caught.value.code == "questions_missing"


@pytest.mark.parametrize("name", ["dsg-qwen25vl", "dsg-table", "dsg-ts2-table"])
def test_a_table_of_answers_takes_the_place_of_the_model(tmp_path: Path, name: str) -> None:
    image = Image.new("RGB", (4, 4), "red")
    image.save(tmp_path / "car.png")
    (tmp_path / "answers.csv").write_text(
        "image,question,answer\ncar.png,a car?,yes\ncar.png,red?,no\n", encoding="utf-8"
    )
    write_records(tmp_path / "q.jsonl", [yes_no(P, "1", "a car?"), yes_no(P, "2", "red?", "1")])
    runtime = Runtime(
        folders={"table": tmp_path / "answers.csv"}, questions=tmp_path / "q.jsonl", offline=True
    )
    # The first row's template is for its model; the table is asked in the file's own words.
    loaded = load_scorer(load_rows()[name], runtime)
    prepared = loaded.scorer.prepare(image)  # type: ignore[attr-defined]
    assert loaded.scorer.score([prepared, prepared], [P, "unknown"])[0] == 0.5
    assert math.isnan(loaded.scorer.score([prepared], ["unknown"])[0])
    assert set(loaded.environment) == {"answers", "questions"}
