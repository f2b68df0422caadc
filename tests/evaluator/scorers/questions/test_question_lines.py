from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.file import load_questions
from evaluator.scorers.questions.lines import append_records, mend_end, read_lines, write_records
from evaluator.scorers.questions.question import NoQuestions, Provenance, Question
from tests.evaluator.scorers.questions.fakes import yes_no

CAT = yes_no("a cat", "1", "Is there a cat?")
DOG = yes_no("a dog", "1", "Is there a dog?")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    full = Question(
        prompt="a réd “cat”\nat dawn",
        question_id="1",
        question="Which?",
        expected="red",
        choices=("red", "blue"),
        element="red",
        type="color",
        prompt_id="7",
        entailment=0.25,
        hypothesis="Which? red",
        review="accepted",
        provenance=Provenance(writer="gecko", model="m", revision="r", wording="w"),
    )
    empty = NoQuestions(prompt="nothing", no_questions="no noun phrases")
    path = tmp_path / "q.jsonl"
    write_records(path, [full, empty])
    lines, problems = read_lines(path)
    assert not problems
    assert [line.record for line in lines] == [full, empty]
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "Expecting"),
        (b"[]", "not an object"),
        (b'{"prompt":"a","question_id":"1","question":"q?"}', "expected: Field required"),
        (b'{"prompt":"a","question_id":"1","question":" ","expected":"yes"}', "question: "),
        (b'{"prompt":"a","question_id":1,"question":"q?","expected":"yes"}', "question_id: "),
        (b'{"prompt":"a","question_id":"1","question":"q","expected":"y","extra":1}', "extra: "),
        (
            b'{"prompt":"a","question_id":"1","question":"q","expected":"y","entailment":2}',
            "entail",
        ),
    ],
)
def test_a_line_that_is_no_question_is_named_with_its_field(
    tmp_path: Path, line: bytes, said: str
) -> None:
    path = tmp_path / "q.jsonl"
    write_records(path, [CAT])
    with path.open("ab") as file:
        file.write(b"\n" + line + b"\n")
    lines, problems = read_lines(path)
    assert len(lines) == 1
    assert [(problem.line, problem.code) for problem in problems] == [(3, "bad_line")]
    assert said in problems[0].message
    with pytest.raises(SubmitterError, match="line 3") as caught:
        load_questions(path)
    assert caught.value.code == "bad_questions"


def test_a_missing_file_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SubmitterError, match="questions write") as caught:
        load_questions(tmp_path / "none.jsonl")
    assert caught.value.code == "questions_missing"


def test_a_killed_run_leaves_only_whole_prompts(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    append_records(path, [CAT])
    append_records(path, [DOG, DOG.model_copy(update={"question_id": "2"})])
    assert not mend_end(path)
    with path.open("ab") as file:
        file.write(b'{"prompt":"a dog","question_id":"3"')
    assert mend_end(path)
    assert [line.record for line in read_lines(path)[0]] == [CAT]


def test_a_file_that_is_one_unfinished_line_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'{"prompt":"a do')
    assert mend_end(path)
    assert path.read_bytes() == b""


def test_questions_are_found_by_the_exact_text_of_the_prompt(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    write_records(path, [CAT, NoQuestions(prompt="x", no_questions="no noun phrases")])
    file = load_questions(path)
    assert file.of("a cat").questions == (CAT,)
    assert not file.of("a cat ").questions
    assert not file.of("a cat ").in_file
    assert (file.of("x").in_file, file.of("x").reason) == (True, "no noun phrases")


def test_of_a_prompt_with_two_ids_the_first_questions_are_asked(tmp_path: Path) -> None:
    first = CAT.model_copy(update={"prompt_id": "1"})
    second = CAT.model_copy(update={"prompt_id": "2", "question": "Any cat?"})
    path = tmp_path / "q.jsonl"
    write_records(path, [first, second])
    assert load_questions(path).of("a cat").questions == (first,)
