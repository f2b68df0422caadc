from __future__ import annotations

import pytest

from evaluator.scorers.questions.check import check_lines
from evaluator.scorers.questions.lines import Line
from evaluator.scorers.questions.question import NoQuestions, Question, Record
from tests.evaluator.scorers.questions.fakes import yes_no

P = "a white cat"


def problems(*records: Record) -> list[tuple[str, str, int]]:
    found = check_lines([Line(n, record) for n, record in enumerate(records, start=1)])
    return [(problem.severity, problem.code, problem.line) for problem in found]


def test_questions_in_order_have_no_problem() -> None:
    assert problems(yes_no(P, "1", "A cat?"), yes_no(P, "2", "White?", "1")) == []


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (
            [yes_no(P, "1", "White?", "2"), yes_no(P, "2", "A cat?")],
            [("warning", "forward_edge", 1)],
        ),
        (
            [yes_no(P, "0", "?"), yes_no(P, "1", "a?", "2"), yes_no(P, "2", "b?", "1")],
            [("warning", "forward_edge", 2), ("error", "cyclic_questions", 2)],
        ),
        ([yes_no(P, "1", "a?", "1")], [("error", "cyclic_questions", 1)]),
        ([yes_no(P, "1", "a?", "9")], [("error", "unknown_parent", 1)]),
        (
            [yes_no(P, "1", "a?"), yes_no("other", "2", "b?", "1")],
            [("error", "unknown_parent", 2)],
        ),
        ([yes_no(P, "1", "a?"), yes_no(P, "1", "b?")], [("error", "duplicate_question", 2)]),
        ([yes_no(P, "1", "a?"), yes_no(P, "2", "a?")], [("warning", "repeated_question", 2)]),
        (
            [Question(prompt=P, question_id="1", question="q", choices=("a", "b"), expected="c")],
            [("warning", "expected_not_a_choice", 1)],
        ),
        (
            [Question(prompt=P, question_id="1", question="q", choices=("a",), expected="a")],
            [("warning", "single_choice", 1)],
        ),
        (
            [yes_no(P, "1", "a?"), NoQuestions(prompt=P, no_questions="none found")],
            [("error", "questions_and_none", 2)],
        ),
        (
            [
                yes_no(P, "1", "a?").model_copy(update={"prompt_id": "x"}),
                yes_no(P, "1", "b?").model_copy(update={"prompt_id": "y"}),
            ],
            [("warning", "prompt_twice", 2)],
        ),
    ],
)
def test_each_problem_is_found_at_its_line(
    records: list[Record], expected: list[tuple[str, str, int]]
) -> None:
    assert problems(*records) == expected


def test_a_message_names_prompt_question_and_parent() -> None:
    lines = [Line(4, yes_no(P, "2", "White?", "9"))]
    message = check_lines(lines)[0].message
    assert (
        message
        == "Question '2' of prompt 'a white cat' depends on question '9', which is not there."
    )
    circle = [Line(1, yes_no(P, "1", "a?", "2")), Line(2, yes_no(P, "2", "b?", "1"))]
    assert "'a white cat' depend on each other: " in check_lines(circle)[-1].message
