"""Question files, ours and released ones: read back, checked, and what is wrong named at its line."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from evaluator.scorers.questions import readers
from evaluator.scorers.questions.files import (
    Line,
    NoQuestions,
    Provenance,
    Question,
    Record,
    append_records,
    check_lines,
    load_questions,
    mend_end,
    read_lines,
    write_records,
)
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
        ([yes_no(P, "1", "q", choices=("a",), expected="a")], [("warning", "single_choice", 1)]),
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


# Released question files become ours

TS2 = "id,prompt,question_id,parent_question_id,question,choices,answer"


def questions(released: readers.Released) -> list[Question]:
    return [line.record for line in released.lines if isinstance(line.record, Question)]


def codes(released: readers.Released) -> list[tuple[str, int]]:
    return [(problem.code, problem.line) for problem in released.problems]


def released_file(folder: Path, *lines: str) -> Path:
    (folder / "released").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "released"


def dsg(folder: Path, *rows: str) -> readers.Released:
    return readers.read_dsg(released_file(folder, ",".join(readers.DSG_COLUMNS), *rows))


def test_dsg_ids_dependencies_and_tuples_are_read(tmp_path: Path) -> None:
    found = questions(
        dsg(
            tmp_path,
            "i,a red car,1,0,entity,whole,entity - whole (car),A car?",
            'i,a red car,2,1,attribute,color,"attribute - color (car, red)",Red?',
            'i,a red car,3,"1,2",other,,other (car),Both?',
        )
    )
    assert [(q.question_id, q.parents, q.type) for q in found] == [
        ("1", (), "entity - whole"),
        ("2", ("1",), "attribute - color"),
        ("3", ("1", "2"), "other"),
    ]
    assert (found[1].element, found[2].expected) == ("car, red", "yes")
    assert (found[0].prompt_id, found[0].source) == ("i", "released")


def test_a_dsg_prompt_with_an_unreadable_dependency_has_none(tmp_path: Path) -> None:
    released = dsg(
        tmp_path,
        "i,a car,1,0,e,w,e (car),Is there a car?",
        'i,a car,2,"1, right",e,w,e (car),Is it right?',
        "i,a car,3,1,e,w,e (car),Is it there?",
        "j,a dog,1,1,e,w,e (dog),Is there a dog?",
    )
    assert [q.parents for q in questions(released)] == [(), (), (), ()]
    assert codes(released) == [("unreadable_parents", 3), ("self_edge", 5)]
    assert {problem.severity for problem in released.problems} == {"warning"}


def test_prompts_with_an_error_are_left_out_and_said(tmp_path: Path) -> None:
    found = readers.checked(
        dsg(
            tmp_path,
            "i,a car,1,2,e,w,e (car),Is there a car?",
            "i,a car,2,1,e,w,e (car),Is it there?",
            "j,a dog,2,1,e,w,e (dog),Is it a dog?",
            "k,cat,1,0,e,w,e (cat),Is there a cat?",
            "l,a cow,1,0,e,w,e (cow),",
        )
    )
    assert [q.prompt for q in questions(found)] == ["cat"]
    assert codes(found) == [
        ("forward_edge", 2), ("cyclic_questions", 2), ("unknown_parent", 4), ("bad_line", 6),
    ]  # fmt: skip


def test_ts2_parents_and_choices_are_read(tmp_path: Path) -> None:
    rows = (
        "0,both,0,-1,Cat?,yes|no,yes",
        "0,both,1,-1,Dog?,yes|no,yes",
        "0,both,2,1-0,Both?,two|three|four|five,two",
        "1,a cow,0,x,Cow?,yes|no,yes",
    )
    released = readers.read_ts2(released_file(tmp_path, TS2, *rows))
    found = questions(released)[2]
    assert (found.parents, found.choices) == (("1", "0"), ("two", "three", "four", "five"))
    assert codes(released) == [("unreadable_parents", 5)]
    assert {q.prompt for q in questions(readers.checked(released))} == {"both"}


def test_prompts_that_lost_commas_get_their_text_back_by_id(tmp_path: Path) -> None:
    released = readers.read_ts2(released_file(tmp_path, TS2, "7,a cat a dog,0,,Cat?,yes|no,yes"))
    whole = "a cat, a dog "
    assert [q.prompt for q in questions(readers.with_prompts(released, {"7": whole}))] == [whole]
    with refusal("unknown_prompts", "'7'"):
        readers.with_prompts(released, {"8": "a cow"})


def test_tifa_questions_are_numbered_within_their_caption(tmp_path: Path) -> None:
    record = {
        "id": "coco_1", "caption": "a red car", "question": "what color is the car?",
        "choices": ["red", "blue"], "answer": "red", "element_type": "color", "element": "red",
    }  # fmt: skip
    other = {**record, "id": "coco_2", "caption": "a cat", "question": ""}
    released = readers.read_tifa(released_file(tmp_path, json.dumps([record, record, other])))
    assert [(q.question_id, q.type) for q in questions(released)] == [
        ("1", "color"),
        ("2", "color"),
    ]
    assert codes(released) == [("bad_line", 3)]


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[1]"])
def test_a_file_that_is_no_tifa_list_is_refused(tmp_path: Path, content: str) -> None:
    with refusal("unreadable_file"):
        readers.read_tifa(released_file(tmp_path, content))


def test_evalmuse_elements_get_their_question_or_one_of_ours(tmp_path: Path) -> None:
    scores = {"two cups (counting)": None, "cups (object)": 1}
    record = {"prompt": "two cups", "element_score": scores}
    asked = {**record, "questions": {"cups (object)": "Cups?"}}
    path = released_file(tmp_path, json.dumps([asked, record]))
    counting, cups = questions(readers.read_evalmuse(path))
    assert (counting.element, counting.type) == ("two cups", "counting")
    assert "two cups" in counting.question
    assert (cups.element, cups.type, cups.question) == ("cups", "object", "Cups?")
    assert readers.elements_of(path) == {"two cups": tuple(scores)}


def test_gecko_blocks_are_read_with_their_parts(tmp_path: Path) -> None:
    released = readers.read_gecko(
        released_file(
            tmp_path,
            "Prompt: A red dog.",
            "Coverage: A {1}[red] {2}[dog].",
            "{1} Q: What color is it? Choices: red, blue A: red",
            "{2} Q: What is it? Choices: dog, cat A: cow",
            "",
            "Prompt: A cat.",
            "{1} Q: ...",
        )
    )
    (found,) = questions(released)
    assert (found.element, found.choices) == ("red", ("red", "blue"))
    assert found.prompt.endswith("red dog.")
    assert [line.number for line in released.lines] == [3]
    assert {number for _, number in codes(released)} == {1, 6}


def test_geneval2_questions_are_numbered_within_their_prompt(tmp_path: Path) -> None:
    asked = [["How many cats are in the image?", "two"], ["Are the cats red?", "Yes"]]
    record = {"prompt": "two red cats", "vqa_list": asked, "skills": ["count", "attribute"]}
    plain = {"prompt": "a cat", "vqa_list": asked[1:]}
    broken = {"prompt": "a dog", "vqa_list": asked, "skills": ["count"]}
    none = {"prompt": "a fox", "vqa_list": []}
    given = [record, plain, broken, {"prompt": "a cow"}, [1], none]
    released = readers.read_geneval2(released_file(tmp_path, *map(json.dumps, given), "", "{"))
    assert [(q.prompt, q.question_id, q.expected, q.type) for q in questions(released)] == [
        ("two red cats", "1", "two", "count"),
        ("two red cats", "2", "Yes", "attribute"),
        ("a cat", "1", "Yes", ""),
    ]
    assert codes(released) == [("bad_line", line) for line in (3, 4, 5, 6, 8)]


def test_unigenbench_questions_are_test_points_with_what_they_are(tmp_path: Path) -> None:
    points = json.dumps({"Testpoints": ["Style", "Action"], "Testpoint Description": ["ink", " "]})
    odd = json.dumps({"Testpoints": ["Style"], "Testpoint Description": []})
    path = tmp_path / "prompts.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("index", "prompt_en", "sub_dims_en"))
        writer.writerows([(0, "two pandas", points), (1, "a cat", odd), (2, "a dog", "{")])
        writer.writerows([(3, "a cow", "[]"), (4, "a fox", "{}")])
        for kinds, texts in (([], []), ("Style", "abcde"), (["Style"], "a"), ("a", ["Style"])):
            both = json.dumps({"Testpoints": kinds, "Testpoint Description": texts})
            writer.writerow((5, "a hen", both))
    released = readers.read_unigenbench(path)
    (first,) = questions(released)
    told = (first.prompt, first.prompt_id, first.question_id, first.type, first.question)
    assert told == ("two pandas", "0", "1", "Style", "ink")
    assert codes(released) == [("bad_line", line) for line in (*range(3, 11), 2)]


def test_evalalign_questions_are_put_as_they_stand(tmp_path: Path) -> None:
    record = {
        "prompt": "a cat",
        "prompt_id": "9",
        "question_info": {"Color": "<image>\nIs it red?"},
    }
    given = [record, {"prompt": "a dog"}, record | {"question_info": {"Color": 3}}, 5]
    given.append(record | {"question_info": {}})
    released = readers.read_evalalign(released_file(tmp_path, json.dumps(given)))
    (first,) = questions(released)
    told = (first.prompt_id, first.question_id, first.type, first.question, first.expected)
    assert told == ("9", "1", "Color", "Is it red?", "2")
    assert codes(released) == [("bad_line", line) for line in (2, 3, 4, 5)]
    with refusal("unreadable_file"):
        readers.read_evalalign(released_file(tmp_path, "{}"))


@pytest.mark.paper
def test_the_released_dsg_1k_graphs_are_read_as_documented(assay_data: Path) -> None:
    """1,060 prompts, two of one text; eight lose their dependencies, four cannot be asked."""
    released = readers.read_dsg(assay_data / "dsg_tifa160" / "dsg-1k-anns.csv")
    found = readers.checked(released)
    counted = Counter(code for code, _ in codes(found))
    assert counted["unreadable_parents"] == 8
    assert counted["forward_edge"] + counted["self_edge"] == 92
    assert counted["cyclic_questions"] == 3
    assert len({q.prompt for q in questions(released)}) == 1059
    assert len({q.prompt for q in questions(found)}) == 1055


@pytest.mark.paper
def test_the_released_evalmuse_elements_are_read(assay_data: Path) -> None:
    found = questions(
        readers.checked(readers.read_evalmuse(assay_data / "evalmuse" / "prompt_t2i.json"))
    )
    assert (len(found), len({q.prompt for q in found})) == (970, 199)
