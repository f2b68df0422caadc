from __future__ import annotations

import pytest

from evaluator.scorers.questions.answers import (
    Parse,
    expects_yes_or_no,
    literal_choice,
    nearest_choice,
    opposite,
    same_answer,
    yes_no_correct,
)
from evaluator.scorers.questions.question import Question
from tests.evaluator.scorers.questions.fakes import FakeSimilarity


@pytest.mark.parametrize(
    ("answer", "expected", "word", "substring", "exact"),
    [
        ("yes", "yes", True, True, True),
        ("Yes, there is.", "yes", True, True, False),
        ("No, the bear's eyes are shut", "yes", False, True, False),
        ("no", "no", True, False, False),
        ("yes", "no", False, True, True),
        ("No.", "no", True, False, False),
        ("I know nothing", "no", False, False, False),
        ("", "yes", False, False, False),
        ("unanswerable", "no", False, False, False),
    ],
)
def test_the_three_readings_of_a_yes_or_no(
    answer: str, expected: str, word: bool, substring: bool, exact: bool
) -> None:
    readings: dict[Parse, bool] = {"word": word, "substring": substring, "exact": exact}
    for parse, correct in readings.items():
        assert yes_no_correct([answer], [expected], parse).tolist() == [correct], parse


def test_a_choice_is_literal_apart_from_case_spaces_and_full_stop() -> None:
    choices = ("Christmas tree", "pine tree")
    assert literal_choice(" christmas Tree.", choices) == "Christmas tree"
    assert literal_choice("christmas", choices) is None
    assert same_answer("Pine tree.", "pinetree")


def test_else_the_nearest_choice_is_meant_the_first_of_equals() -> None:
    choices = ("oak", "pine", "palm")
    assert nearest_choice("conifer", choices, FakeSimilarity({"conifer": "pine"})) == "pine"
    assert nearest_choice("car", choices, FakeSimilarity({"car": "none"})) == "oak"


def test_yes_and_no_are_opposites_and_nothing_else_is() -> None:
    assert (opposite("Yes "), opposite("no"), opposite("red")) == ("no", "yes", None)


@pytest.mark.parametrize(
    ("choices", "expected", "is_yes_no"),
    [
        (("yes", "no"), "no", True),
        (("No", "Yes"), "Yes", True),
        ((), "yes", True),
        ((), "red", False),
        (("yes", "no", "maybe"), "yes", False),
        (("man", "woman"), "man", False),
    ],
)
def test_which_questions_are_answered_by_yes_or_no(
    choices: tuple[str, ...], expected: str, is_yes_no: bool
) -> None:
    question = Question(
        prompt="p", question_id="1", question="q", choices=choices, expected=expected
    )
    assert expects_yes_or_no(question) is is_yes_no
