from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.question import Question
from evaluator.scorers.questions.readers.dsg import COLUMNS, read_dsg
from evaluator.scorers.questions.readers.evalmuse import elements_of, read_evalmuse
from evaluator.scorers.questions.readers.gecko import read_gecko
from evaluator.scorers.questions.readers.released import Released, checked, with_prompts
from evaluator.scorers.questions.readers.tifa import read_tifa
from evaluator.scorers.questions.readers.ts2 import read_ts2


def questions(released: Released) -> list[Question]:
    return [line.record for line in released.lines if isinstance(line.record, Question)]


def codes(released: Released) -> list[tuple[str, int]]:
    return [(problem.code, problem.line) for problem in released.problems]


def dsg_file(folder: Path, *rows: str) -> Path:
    path = folder / "dsg.csv"
    path.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n", encoding="utf-8")
    return path


def test_dsg_ids_dependencies_and_tuples_are_read(tmp_path: Path) -> None:
    path = dsg_file(
        tmp_path,
        "i,a red car,1,0,entity,whole,entity - whole (car),Is there a car?",
        'i,a red car,2,1,attribute,color,"attribute - color (car, red)",Is it red?',
        'i,a red car,3,"1,2",other,,other (car),Both?',
    )
    found = questions(read_dsg(path))
    assert [(q.question_id, q.parents) for q in found] == [
        ("1", ()),
        ("2", ("1",)),
        ("3", ("1", "2")),
    ]
    assert (found[1].element, found[1].type) == ("car, red", "attribute - color")
    assert (found[2].type, found[2].expected, found[0].prompt_id) == ("other", "yes", "i")
    assert found[0].source == "dsg.csv"


def test_a_dsg_prompt_with_an_unreadable_dependency_has_none(tmp_path: Path) -> None:
    path = dsg_file(
        tmp_path,
        "i,a car,1,0,e,w,e (car),Is there a car?",
        'i,a car,2,"1, right",e,w,e (car),Is it right?',
        "i,a car,3,1,e,w,e (car),Is it there?",
        "j,a dog,1,1,e,w,e (dog),Is there a dog?",
    )
    released = read_dsg(path)
    assert [q.parents for q in questions(released)] == [(), (), (), ()]
    assert codes(released) == [("unreadable_parents", 3), ("self_edge", 5)]
    assert {problem.severity for problem in released.problems} == {"warning"}


def test_prompts_with_an_error_are_left_out_and_said(tmp_path: Path) -> None:
    path = dsg_file(
        tmp_path,
        "i,a car,1,2,e,w,e (car),Is there a car?",
        "i,a car,2,1,e,w,e (car),Is it there?",
        "j,a dog,2,1,e,w,e (dog),Is it a dog?",
        "k,a cat,1,0,e,w,e (cat),Is there a cat?",
        "l,a cow,1,0,e,w,e (cow),",
    )
    found = checked(read_dsg(path))
    assert [q.prompt for q in questions(found)] == ["a cat"]
    assert codes(found) == [
        ("forward_edge", 2),
        ("cyclic_questions", 2),
        ("unknown_parent", 4),
        ("bad_line", 6),
    ]


def test_ts2_parents_and_choices_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ts2.csv"
    path.write_text(
        "id,prompt,question_id,parent_question_id,question,choices,answer\n"
        "0,a cat and dog,0,-1,Cat?,yes|no,yes\n"
        "0,a cat and dog,1,-1,Dog?,yes|no,yes\n"
        "0,a cat and dog,2,1-0,Both?,two|three|four|five,two\n"
        "1,a cow,0,x,Cow?,yes|no,yes\n",
        encoding="utf-8",
    )
    released = read_ts2(path)
    found = questions(released)
    assert found[2].parents == ("1", "0")
    assert found[2].choices == ("two", "three", "four", "five")
    assert codes(released) == [("unreadable_parents", 5)]
    assert {q.prompt for q in questions(checked(released))} == {"a cat and dog"}


def test_prompts_that_lost_commas_get_their_text_back_by_id(tmp_path: Path) -> None:
    path = tmp_path / "ts2.csv"
    path.write_text(
        "id,prompt,question_id,question,choices,answer\n7,a cat a dog,0,Cat?,yes|no,yes\n",
        encoding="utf-8",
    )
    found = with_prompts(read_ts2(path), {"7": "a cat, a dog "})
    assert questions(found)[0].prompt == "a cat, a dog "
    with pytest.raises(SubmitterError, match="'7'") as caught:
        with_prompts(read_ts2(path), {"8": "a cow"})
    assert caught.value.code == "unknown_prompts"


def test_tifa_questions_are_numbered_within_their_caption(tmp_path: Path) -> None:
    path = tmp_path / "tifa.json"
    record = {
        "id": "coco_1",
        "caption": "a red car",
        "question": "what color is the car?",
        "choices": ["red", "blue"],
        "answer": "red",
        "element_type": "color",
        "element": "red",
    }
    other = {**record, "id": "coco_2", "caption": "a cat", "question": ""}
    path.write_text(json.dumps([record, record, other]), encoding="utf-8")
    released = read_tifa(path)
    assert [q.question_id for q in questions(released)] == ["1", "2"]
    assert questions(released)[0].type == "color"
    assert codes(released) == [("bad_line", 3)]


@pytest.mark.parametrize("content", ["{", '{"a": 1}', "[1]"])
def test_a_file_that_is_no_tifa_list_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tifa.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SubmitterError) as caught:
        read_tifa(path)
    assert caught.value.code == "unreadable_file"


def test_evalmuse_elements_get_their_question_or_one_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "elements.json"
    record = {
        "prompt": "two cups",
        "element_score": {"two cups (counting)": None, "cups (object)": 1},
    }
    asked = {**record, "questions": {"cups (object)": "Are there cups?"}}
    path.write_text(json.dumps([asked, record]), encoding="utf-8")
    found = questions(read_evalmuse(path))
    assert [(q.element, q.type, q.question) for q in found] == [
        ("two cups", "counting", "Does the image show two cups?"),
        ("cups", "object", "Are there cups?"),
    ]
    assert elements_of(path) == {"two cups": ("two cups (counting)", "cups (object)")}


def test_gecko_blocks_are_read_with_their_parts(tmp_path: Path) -> None:
    path = tmp_path / "gecko.txt"
    path.write_text(
        "Prompt: A red colored dog.\n"
        "Coverage: A {1}[red colored] {2}[dog].\n"
        "{1} Q: What color is it? Choices: red, blue A: red\n"
        "{2} Q: What is it? Choices: dog, cat A: cow\n"
        "\n"
        "Prompt: A cat.\n"
        "{1} Q: ...\n",
        encoding="utf-8",
    )
    released = read_gecko(path)
    (found,) = questions(released)
    assert (found.prompt, found.element, found.choices) == (
        "A red colored dog.",
        "red colored",
        ("red", "blue"),
    )
    assert [line.number for line in released.lines] == [3]
    assert {number for _, number in codes(released)} == {1, 6}


@pytest.mark.paper
def test_the_released_dsg_1k_graphs_are_read_as_documented(assay_data: Path) -> None:
    """1,060 prompts, two of one text; eight lose their dependencies, four cannot be asked."""
    released = read_dsg(assay_data / "dsg_tifa160" / "dsg-1k-anns.csv")
    found = checked(released)
    counted = {code: 0 for code, _ in codes(found)}
    for code, _ in codes(found):
        counted[code] += 1
    assert counted["unreadable_parents"] == 8
    assert counted["forward_edge"] + counted["self_edge"] == 92
    assert counted["cyclic_questions"] == 3
    assert len({q.prompt for q in questions(released)}) == 1059
    assert len({q.prompt for q in questions(found)}) == 1055


@pytest.mark.paper
def test_the_released_evalmuse_elements_are_read(assay_data: Path) -> None:
    found = questions(checked(read_evalmuse(assay_data / "evalmuse" / "prompt_t2i.json")))
    assert (len(found), len({q.prompt for q in found})) == (970, 199)
