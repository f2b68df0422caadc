from __future__ import annotations

import pytest

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.check import check_lines
from evaluator.scorers.questions.lines import Line
from evaluator.scorers.questions.writers.by_name import Helpers, WriterName, make_writer
from evaluator.scorers.questions.writers.dsg import DsgWriter, assemble
from evaluator.scorers.questions.writers.evalmuse import EvalMuseWriter
from evaluator.scorers.questions.writers.gecko import GeckoWriter
from evaluator.scorers.questions.writers.gecko_text import parse_coverage, parse_questions
from evaluator.scorers.questions.writers.spans import BvqaWriter, ModelSpans, Vq2Writer
from evaluator.scorers.questions.writers.tifa import TifaWriter, parse_tifa
from evaluator.scorers.questions.writers.writer import Written
from tests.evaluator.scorers.questions.fakes import CannedText

P = "two red cups on a shelf"

TIFA = """\
About cups (object):
Q: are there cups?
Choices: yes, no
A: yes
About two cups (counting):
Q: how many cups are there?
Choices: 1, 2, 3, 5
A: 2.
"""


def sound(written: Written) -> bool:
    lines = [Line(n, question) for n, question in enumerate(written.questions, start=1)]
    return not [p for p in check_lines(lines) if p.severity == "error"]


def test_tifa_lines_become_questions_with_element_and_type() -> None:
    model = CannedText(TIFA)
    written = TifaWriter(model).write(P)
    assert not written.faults
    assert [(q.question_id, q.element, q.type, q.expected) for q in written.questions] == [
        ("1", "cups", "object", "yes"),
        ("2", "two cups", "counting", "2"),
    ]
    assert written.questions[1].choices == ("1", "2", "3", "5")
    assert P in model.told[0]
    assert sound(written)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Sure! Here they are:\n" + TIFA, "'Sure! Here they are:' is not of the form"),
        (TIFA + "About shelf (object):\nQ: is there a shelf?\nChoices: yes, no\n", "lacks a"),
        (TIFA + "Q: what color?\nChoices: red, blue\nA: green\n", "no answer among"),
        (TIFA + "Q: what color?\nChoices: red\nA: red\n", "no answer among"),
        (TIFA + "Q: what color?\nQ: how many?\nChoices: a, b\nA: a\n", "lacks choices, a"),
    ],
)
def test_malformed_tifa_lines_are_faults_and_the_rest_is_kept(text: str, fault: str) -> None:
    written = parse_tifa(text, P)
    assert len(written.questions) >= 2
    assert any(fault in one for one in written.faults)


def test_a_tifa_question_counts_once() -> None:
    assert len(parse_tifa(TIFA + TIFA, P).questions) == 2


def test_an_empty_question_is_a_fault() -> None:
    written = parse_tifa("About cups (object):\nQ: \nChoices: yes, no\nA: yes\n", P)
    assert not written.questions
    assert written.faults


def test_a_verifier_keeps_what_the_prompt_confirms() -> None:
    verifier = CannedText("Yes.", "3")
    written = TifaWriter(CannedText(TIFA), verifier).write(P)
    assert [q.question for q in written.questions] == ["are there cups?"]
    assert written.faults == ("'how many cups are there?' is not confirmed: '3'",)
    assert all(P in told for told in verifier.told)


TUPLES = (
    "1 | entity - whole (cups)\n2 | attribute - color (cups, red)\n3 | other - count (cups, ==2)\n"
)
ASKED = "1 | Are there cups?\n2 | Are the cups red?\n3 | Are there two cups?\n"


def test_dsg_puts_three_lists_together() -> None:
    model = CannedText(TUPLES, ASKED, "1 | 0\n2 | 1\n3 | 1, 2\n")
    written = DsgWriter(model).write(P)
    assert not written.faults
    assert [(q.question_id, q.parents) for q in written.questions] == [
        ("1", ()),
        ("2", ("1",)),
        ("3", ("1", "2")),
    ]
    assert (written.questions[1].element, written.questions[1].type) == (
        "cups, red",
        "attribute - color",
    )
    assert len(model.told) == 3
    assert "2 | attribute - color (cups, red)" in model.told[1]
    assert sound(written)


@pytest.mark.parametrize(
    ("asked", "needs", "parents", "fault"),
    [
        (ASKED, "1 | 0\n2 | 5, right\n3 | 1\n", [(), (), ("1",)], "cannot depend on 'right'"),
        (ASKED, "1 | 2\n2 | 1\n3 | 1\n", [(), (), ()], "depend on each other"),
        (ASKED, "1 | 0\n3 | 3\n", [(), (), ()], "question 2 has no line of dependencies"),
        ("1 | A?\n3 | C?\n", "1 | 0\n2 | 0\n3 | 2\n", [(), ()], "statement 2 has no question"),
        (ASKED + "oops\n", "1 | 0\n2 | 1\n3 | 1\n", [(), ("1",), ("1",)], "'oops' is not"),
        (ASKED + "1 | A?\n", "1 | 0\n2 | 1\n3 | 1\n", [(), ("1",), ("1",)], "number 1 stands"),
    ],
)
def test_malformed_dsg_lines_leave_a_sound_graph(
    asked: str, needs: str, parents: list[tuple[str, ...]], fault: str
) -> None:
    written = DsgWriter(CannedText(TUPLES, asked, needs)).write(P)
    assert [q.parents for q in written.questions] == parents
    assert any(fault in one for one in written.faults)
    assert sound(written)


def test_without_statements_there_are_no_questions() -> None:
    model = CannedText("I cannot do that.")
    written = DsgWriter(model).write(P)
    assert (written.questions, written.none_because) == ((), "")
    assert "no statements" in written.faults
    assert len(model.told) == 1
    assert not assemble(P, {}, {}, {}).questions


class Entailing:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def probabilities(self, premises: list[str], hypotheses: list[str]) -> list[float]:
        self.asked += zip(premises, hypotheses, strict=True)
        return [0.75, 0.001][: len(premises)]


def test_gecko_asks_about_each_numbered_part_and_records_entailment() -> None:
    model = CannedText(
        " {1}[two] {2}[red] cups on a shelf",
        "{1} Q: How many? Choices: one, two A: two\n{2} Q: Color? Choices: red, blue A: red\n",
    )
    nli = Entailing()
    written = GeckoWriter(model, nli).write(P)  # type: ignore[arg-type]
    assert not written.faults
    assert [(q.question_id, q.element, q.entailment) for q in written.questions] == [
        ("1", "two", 0.75),
        ("2", "red", 0.001),
    ]
    assert nli.asked[0] == (P, "How many? two")
    assert written.questions[0].hypothesis == "How many? two"


def test_gecko_texts_that_do_not_fit_are_faults() -> None:
    changed = parse_coverage("{1}[two] blue cups", P)
    assert "is not the prompt" in changed.faults[0]
    assert parse_coverage("two red cups", P).faults == ("no part is marked",)
    parsed = parse_questions(
        "{1} Q: ? A: x\n{3} Q: a? Choices: a, b A: a\n", {"1": "two", "2": "red"}
    )
    assert not parsed.questions
    assert parsed.faults == (
        "line '{1} Q: ? A: x' is not of the form asked for",
        "there is no part 3",
        "part 1 has no question",
        "part 2 has no question",
    )


def test_evalmuse_asks_one_question_per_element_that_may_expect_no() -> None:
    model = CannedText(
        "two cups (counting)\nred (color)\nnonsense\n",
        "Q: Are there two cups?\nA: yes",
        "Q: Is there a nun?\nA: No.",
    )
    written = EvalMuseWriter(model).write(P)
    assert [(q.element, q.type, q.expected) for q in written.questions] == [
        ("two cups", "counting", "yes"),
        ("red", "color", "no"),
    ]
    assert any("nonsense" in fault for fault in written.faults)


def test_known_elements_are_not_asked_for() -> None:
    model = CannedText("Q: Are there cups?\nA: maybe")
    written = EvalMuseWriter(model, {P: ("cups (object)",)}).write(P)
    assert not written.questions
    assert written.faults == ("the question about 'cups' is not of the form asked for",)
    assert len(model.told) == 1


def test_bvqa_asks_each_phrase_of_the_prompt() -> None:
    written = BvqaWriter(ModelSpans(CannedText("two red cups\na shelf\na table\n"))).write(P)
    assert [(q.question, q.element) for q in written.questions] == [
        ("two red cups?", "two red cups"),
        ("a shelf?", "a shelf"),
    ]
    assert written.faults == ("'a table' is not in the prompt",)


def test_a_prompt_without_phrases_is_known_to_have_none() -> None:
    assert BvqaWriter(ModelSpans(CannedText(""))).write("!").none_because == "no noun phrases"


def test_vq2_asks_for_each_phrase_at_most_five_times() -> None:
    lists = ("\n".join(f"Q{n}?" for n in range(7)), "no question\n")
    written = Vq2Writer(CannedText(*lists), ModelSpans(CannedText("two red cups\na shelf"))).write(
        P
    )
    assert [q.question for q in written.questions] == [f"Q{n}?" for n in range(5)]
    assert {q.expected for q in written.questions} == {"two red cups"}
    assert written.faults == ("'no question' is no question", "'a shelf' has no question")


@pytest.mark.parametrize("name", ["tifa", "dsg", "gecko", "evalmuse", "bvqa", "vq2"])
def test_every_writer_says_that_it_needs_a_language_model(name: WriterName) -> None:
    with pytest.raises(SubmitterError) as caught:
        make_writer(name, Helpers())
    assert caught.value.code == "writer_needs_model"
    assert make_writer(name, Helpers(model=CannedText()))
