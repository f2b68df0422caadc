"""Synthetic prompts: six kinds, each different, with elements that stand in them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from benchmarks.evalmuse.load import SKILLS, parse_element_key
from evaluator.prompts.synthesis import KINDS, synthesised
from evaluator.scorers.questions.files import Line, Question, check_lines
from tests.evaluator.scorers.common import refusal

MANY = synthesised(2000, 7)


def test_as_many_are_made_as_are_wanted_evenly_and_none_twice() -> None:
    assert Counter(one.kind for one in MANY) == dict.fromkeys(KINDS, 333) | {
        "count": 334, "colour_and_material": 334,
    }  # fmt: skip
    assert len({one.text for one in MANY}) == len({one.prompt_id for one in MANY}) == 2000


def test_each_element_stands_in_its_prompt_with_a_type_of_evalmuse() -> None:
    for one in MANY:
        assert one.elements
        assert len({part.text for part in one.elements}) == len(one.elements)
        for part in one.elements:
            assert re.search(rf"(?<!\w){re.escape(part.text)}(?!\w)", one.text), (one, part)
            skill = parse_element_key(f"{part.text} ({part.type})").skill
            assert skill in SKILLS or part.type == "other"


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("count", {"counting", "object"}),
        ("colour_and_material", {"color", "material", "object"}),
        ("surroundings", {"object", "location", "attribute"}),
        ("activity_and_view", {"human", "animal", "activity", "attribute"}),
        ("writing", {"object", "other", "attribute"}),
        ("relation", {"object", "animal", "spatial", "attribute"}),
    ],
)
def test_a_kind_asks_about_what_it_combines(kind: str, types: set[str]) -> None:
    mine = [one for one in MANY if one.kind == kind]
    assert {part.type for one in mine for part in one.elements} == types


def test_numbers_go_from_nought_to_six_with_nouns_that_fit() -> None:
    found = Counter[str]()
    for one in MANY:
        for part in one.elements:
            if part.type == "counting":
                number, noun = part.text.split(" ", 1)
                found[number] += 1
                assert noun.endswith("s") is (number not in {"1", "one"})
                assert (part.expected == "no") is (number in {"0", "no"})
    assert set(found) == {*"0123456", "no", "one", "two", "three", "four", "five", "six"}


def test_each_element_has_a_question_of_its_own_that_names_it() -> None:
    lines = [
        Line(number, asked)
        for number, asked in enumerate((q for one in MANY for q in one.questions()), start=1)
    ]
    assert check_lines(lines) == []
    assert len(lines) == sum(len(one.elements) for one in MANY)
    for line in lines:
        asked = line.record
        assert isinstance(asked, Question)
        assert asked.question.endswith("?") and asked.choices == ("yes", "no")
        named = asked.element.split(" ", 1)[-1] if asked.expected == "no" else asked.element
        assert named in asked.question
        assert asked.expected == "yes" or asked.type == "counting"


def test_a_seed_and_a_kind_give_the_same_prompts_whatever_else_is_asked() -> None:
    assert synthesised(60, 7) == synthesised(60, 7) != synthesised(60, 8)
    alone = synthesised(10, 7, ["writing"])
    assert alone == [one for one in synthesised(60, 7) if one.kind == "writing"]


def test_no_two_counts_say_the_same_and_none_is_of_nothing() -> None:
    counts = [one for one in MANY if one.kind == "count"]
    assert len({one.content for one in counts}) == len(counts)
    assert all(any(part.expected == "yes" for part in one.elements) for one in counts)


def test_articles_fit_what_follows() -> None:
    texts = [one.text for one in MANY] + [part.question for one in MANY for part in one.elements]
    assert [text for text in texts if re.search(r"\ba [aeiou]|\ban [^aeiou]", text)] == []


def test_what_cannot_be_made_is_told() -> None:
    with refusal("unknown_kind", "rhyme", "writing"):
        synthesised(5, 0, ["rhyme", "writing"])
    with refusal("too_many_prompts", "writing"):
        synthesised(1000, 0, ["writing"])
