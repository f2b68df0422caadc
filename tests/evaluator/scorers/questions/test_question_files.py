"""Question files: what is written is read back, and what is wrong is named at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.scorers.questions.check import check_lines
from evaluator.scorers.questions.file import load_questions
from evaluator.scorers.questions.lines import (
    Line,
    append_records,
    mend_end,
    read_lines,
    write_records,
)
from evaluator.scorers.questions.question import NoQuestions, Provenance, Record
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.questions.fakes import yes_no

P = "a white cat"
CAT, DOG = yes_no("a cat", "1", "Cat?"), yes_no("a dog", "1", "Dog?")
NONE = NoQuestions(prompt=P, no_questions="none found")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "q.jsonl"


def test_what_is_written_is_read_back(path: Path) -> None:
    full = yes_no(
        "a réd “cat”\nat dawn", "1", "Which?", choices=("red", "blue"), expected="red",
        element="red", type="color", prompt_id="7", entailment=0.25, hypothesis="Which? red",
        review="accepted",
        provenance=Provenance(writer="gecko", model="m", revision="r", wording="w"),
    )  # fmt: skip
    write_records(path, [full, NONE])
    lines, problems = read_lines(path)
    assert (problems, [line.record for line in lines]) == ([], [full, NONE])
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"{", "Expecting"),
        (b"[]", "object"),
        (b'{"prompt":"a","question_id":"1","question":"q?"}', "expected: "),
        (b'{"prompt":"a","question_id":"1","question":" ","expected":"yes"}', "question: "),
        (b'{"prompt":"a","question_id":1,"question":"q?","expected":"yes"}', "question_id: "),
        (b'{"prompt":"a","question_id":"1","question":"q","expected":"y","extra":1}', "extra: "),
        (b'{"prompt":"a","question_id":"1","question":"q","expected":"y","entailment":2}', "enta"),
    ],
)
def test_a_line_that_is_no_question_is_named_with_its_field(
    path: Path, line: bytes, named: str
) -> None:
    write_records(path, [CAT])
    path.write_bytes(path.read_bytes() + b"\n" + line + b"\n")
    lines, problems = read_lines(path)
    assert [line.record for line in lines] == [CAT]
    assert [(problem.line, problem.code) for problem in problems] == [(3, "bad_line")]
    assert named in problems[0].message
    with refusal("bad_questions", "line 3"):
        load_questions(path)


def test_a_missing_file_says_how_to_get_one(path: Path) -> None:
    with refusal("questions_missing", "questions write"):
        load_questions(path)


def test_a_killed_run_leaves_only_whole_prompts(path: Path) -> None:
    append_records(path, [CAT])
    append_records(path, [DOG, DOG.model_copy(update={"question_id": "2"})])
    assert not mend_end(path)
    path.write_bytes(path.read_bytes() + b'{"prompt":"a dog","question_id":"3"')
    assert mend_end(path)
    assert [line.record for line in read_lines(path)[0]] == [CAT]
    path.write_bytes(b'{"prompt":"a do')
    assert mend_end(path)
    assert path.read_bytes() == b""


def test_questions_are_found_by_the_exact_text_and_the_first_id_of_a_prompt(path: Path) -> None:
    first = CAT.model_copy(update={"prompt_id": "1"})
    second = CAT.model_copy(update={"prompt_id": "2", "question": "Any cat?"})
    write_records(path, [first, second, NONE])
    file = load_questions(path)
    assert file.of("a cat").questions == (first,)
    assert (file.of("a cat ").questions, file.of("a cat ").in_file) == ((), False)
    assert (file.of(P).in_file, file.of(P).reason) == (True, NONE.no_questions)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([yes_no(P, "1", "A cat?"), yes_no(P, "2", "White?", "1")], []),
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
        ([yes_no(P, "1", "a?"), yes_no("x", "2", "b?", "1")], [("error", "unknown_parent", 2)]),
        ([yes_no(P, "1", "a?"), yes_no(P, "1", "b?")], [("error", "duplicate_question", 2)]),
        ([yes_no(P, "1", "a?"), yes_no(P, "2", "a?")], [("warning", "repeated_question", 2)]),
        (
            [yes_no(P, "1", "q", choices=("a", "b"), expected="c")],
            [("warning", "expected_not_a_choice", 1)],
        ),
        (
            [yes_no(P, "1", "q", choices=("a",), expected="a")],
            [("warning", "single_choice", 1)],
        ),
        ([yes_no(P, "1", "a?"), NONE], [("error", "questions_and_none", 2)]),
        (
            [yes_no(P, "1", "a?", prompt_id="x"), yes_no(P, "1", "b?", prompt_id="y")],
            [("warning", "prompt_twice", 2)],
        ),
    ],
)
def test_each_problem_is_found_at_its_line(
    records: list[Record], expected: list[tuple[str, str, int]]
) -> None:
    found = check_lines([Line(n, record) for n, record in enumerate(records, start=1)])
    assert [(problem.severity, problem.code, problem.line) for problem in found] == expected
    assert all(repr(P) in problem.message or repr("x") in problem.message for problem in found)
