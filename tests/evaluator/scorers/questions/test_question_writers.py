"""Questions written by a language model: malformed lines are faults, what is sound is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evaluator.scorers.questions import instructions, writers
from evaluator.scorers.questions.files import (
    Line,
    Provenance,
    Question,
    check_lines,
    load_questions,
    read_lines,
)
from evaluator.scorers.questions.writing import Prompt, Summary, write_questions
from evaluator.scoring.progress import Progress
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scorers.questions.fakes import CannedText, FakeEntailment, yes_no

P, CUPS = "two red cups on a shelf", "two red cups"
TIFA = """\
About cups (object):
Q: are there cups?
Choices: yes, no
A: yes
About two cups (counting):
Q: how many?
Choices: 1, 2, 3, 5
A: 2.
"""
UNANSWERED = "About shelf (object):\nQ: is there a shelf?\nChoices: yes, no\n"
TUPLES = (
    "1 | entity - whole (cups)\n2 | attribute - color (cups, red)\n3 | other - count (cups, ==2)\n"
)
ASKED = "1 | Are there cups?\n2 | Are the cups red?\n3 | Are there two cups?\n"


def sound(written: writers.Written) -> bool:
    lines = [Line(n, question) for n, question in enumerate(written.questions, start=1)]
    return not [p for p in check_lines(lines) if p.severity == "error"]


def test_tifa_lines_become_questions_with_element_and_type() -> None:
    model = CannedText(TIFA)
    written = writers.write_tifa(P, model)
    assert not written.faults
    assert [(q.question_id, q.element, q.type, q.expected) for q in written.questions] == [
        ("1", "cups", "object", "yes"),
        ("2", "two cups", "counting", "2"),
    ]
    assert written.questions[1].choices == ("1", "2", "3", "5")
    assert P in model.told[0]
    assert sound(written)
    assert len(writers.parse_tifa(TIFA + TIFA, P).questions) == 2  # each counts once


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Sure!\n" + TIFA, "'Sure!'"),
        (TIFA + UNANSWERED, "lacks a"),
        (TIFA + "Q: what color?\nChoices: red, blue\nA: green\n", "answer among"),
        (TIFA + "Q: what color?\nChoices: red\nA: red\n", "answer among"),
        (TIFA + "Q: what color?\nQ: how many?\nChoices: a, b\nA: a\n", "lacks choices"),
        (TIFA + "About cups (object):\nQ: \nChoices: yes, no\nA: yes\n", ""),
    ],
)
def test_malformed_tifa_lines_are_faults_and_the_rest_is_kept(text: str, fault: str) -> None:
    written = writers.parse_tifa(text, P)
    assert len(written.questions) >= 2
    assert all(question.question for question in written.questions)
    assert any(fault in one for one in written.faults)


def test_a_verifier_keeps_what_the_prompt_confirms() -> None:
    verifier = CannedText("Yes.", "3")
    written = writers.write_tifa(P, CannedText(TIFA), verifier)
    assert [q.element for q in written.questions] == ["cups"]
    (fault,) = written.faults
    assert "'how many?'" in fault and "'3'" in fault
    assert all(P in told for told in verifier.told)


def test_dsg_puts_three_lists_together() -> None:
    model = CannedText(TUPLES, ASKED, "1 | 0\n2 | 1\n3 | 1, 2\n")
    written = writers.write_dsg(P, model)
    assert not written.faults
    assert [(q.question_id, q.parents, q.element, q.type) for q in written.questions] == [
        ("1", (), "cups", "entity - whole"),
        ("2", ("1",), "cups, red", "attribute - color"),
        ("3", ("1", "2"), "cups, ==2", "other - count"),
    ]
    assert len(model.told) == 3
    assert TUPLES.splitlines()[1] in model.told[1]
    assert sound(written)


@pytest.mark.parametrize(
    ("asked", "needs", "parents", "fault"),
    [
        (ASKED, "1 | 0\n2 | 5, right\n3 | 1\n", [(), (), ("1",)], "'right'"),
        (ASKED, "1 | 2\n2 | 1\n3 | 1\n", [(), (), ()], "each other"),
        (ASKED, "1 | 0\n3 | 3\n", [(), (), ()], "question 2"),
        ("1 | A?\n3 | C?\n", "1 | 0\n2 | 0\n3 | 2\n", [(), ()], "statement 2"),
        (ASKED + "oops\n", "1 | 0\n2 | 1\n3 | 1\n", [(), ("1",), ("1",)], "'oops'"),
        (ASKED + "1 | A?\n", "1 | 0\n2 | 1\n3 | 1\n", [(), ("1",), ("1",)], "number 1"),
    ],
)
def test_malformed_dsg_lines_leave_a_sound_graph(
    asked: str, needs: str, parents: list[tuple[str, ...]], fault: str
) -> None:
    written = writers.write_dsg(P, CannedText(TUPLES, asked, needs))
    assert [q.parents for q in written.questions] == parents
    assert any(fault in one for one in written.faults)
    assert sound(written)


def test_without_statements_there_are_no_questions() -> None:
    model = CannedText("I cannot do that.")
    written = writers.write_dsg(P, model)
    assert (written.questions, written.none_because, len(model.told)) == ((), "", 1)
    assert "no statements" in written.faults
    assert not writers.assemble(P, {}, {}, {}).questions


def test_gecko_asks_about_each_numbered_part_and_records_entailment() -> None:
    model = CannedText(
        " {1}[two] {2}[red] cups on a shelf",
        "{1} Q: How many? Choices: one, two A: two\n{2} Q: Color? Choices: red, blue A: red\n",
    )
    nli: Any = FakeEntailment(0.75, 0.001)
    written = writers.write_gecko(P, model, nli)
    assert not written.faults
    hypotheses = ["How many? two", "Color? red"]
    assert [(q.question_id, q.element, q.entailment, q.hypothesis) for q in written.questions] == [
        ("1", "two", 0.75, hypotheses[0]),
        ("2", "red", 0.001, hypotheses[1]),
    ]
    assert nli.asked == [(P, hypothesis) for hypothesis in hypotheses]


def test_gecko_texts_that_do_not_fit_are_faults() -> None:
    assert len(writers.parse_coverage("{1}[two] blue cups", P).faults) == 1
    assert len(writers.parse_coverage(CUPS, P).faults) == 1
    asked, faults = writers.parse_questions(
        "{1} Q: ? A: x\n{3} Q: a? Choices: a, b A: a\n", {"1": "two", "2": "red"}
    )
    assert not asked
    for fault, named in zip(faults, ("{1} Q: ? A: x", "part 3", "part 1", "part 2"), strict=True):
        assert named in fault


EMPTY = "two red cups on an empty shelf, no plates"


def test_evalmuse_asks_one_question_per_element_that_may_expect_no() -> None:
    model = CannedText(
        "two red cups (counting)\nRED (Color)\nno plates (counting)\n",
        "Q: Are there two cups?\nA: yes",
        "Q: Are the cups red?\nA: Yes.",
        "Q: Are there any plates?\nA: No.",
    )
    written = writers.write_evalmuse(EMPTY, model)
    assert [(q.question_id, q.element, q.type, q.expected) for q in written.questions] == [
        ("1", "two red cups", "counting", "yes"),
        ("2", "RED", "Color", "yes"),
        ("3", "no plates", "counting", "no"),
    ]
    assert (written.faults, len(model.told)) == ((), 4)
    model = CannedText("Q: Are there cups?\nA: yes")
    known = writers.write_evalmuse(P, model, {P: ("cups (object)", "odd")})
    assert [q.element for q in known.questions] == ["cups"]
    assert len(known.faults) == len(model.told) == 1


@pytest.mark.parametrize(
    ("listed", "fault"),
    [
        ("nonsense", "nonsense"),
        ("cups (thing)", "unknown type"),
        ("three cups (counting)", "does not stand"),
        ("cup (object)", "does not stand"),
        ("two cups (counting)", "does not stand"),
    ],
)
def test_elements_of_evalmuse_that_are_none_are_asked_for_again(listed: str, fault: str) -> None:
    asked = "Q: Is there a shelf?\nA: yes"
    model = CannedText(f"shelf (object)\n{listed}", "shelf (object)\nred (color)", *[asked] * 4)
    written = writers.write_evalmuse(P, model)
    assert [q.element for q in written.questions] == ["shelf"]
    assert fault in model.told[1] and fault not in model.told[0]
    (odd,) = written.faults
    assert "'red' does not name it" in odd.replace("the question about ", "")


def test_the_try_with_most_elements_of_evalmuse_counts_and_its_faults_are_told() -> None:
    tries = ("cups (object)\nx\ny", "cups (object)\nshelf (object)\nx", "z")
    ask = "Q: Are there cups, and a shelf?\nA: yes"
    model = CannedText(*tries, ask, ask)
    written = writers.write_evalmuse(P, model)
    assert [q.element for q in written.questions] == ["cups", "shelf"]
    assert len(written.faults) == 1 and "'x'" in written.faults[0]
    assert writers.write_evalmuse(P, CannedText("", "x", "")).faults[-1] == "no elements"


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("Q: Are there cups?\nA: maybe", "form"),
        ("Q: Are there cups\nA: yes", "form"),
        ("Q: Are there cups? Or not?\nA: yes", "form"),
        ("Are there cups?", "form"),
        ("Q: Is there a table?\nA: yes", "name it"),
        ("Q: Are there cups?\nA: no", "nothing is denied"),
    ],
)
def test_a_question_of_evalmuse_that_cannot_be_used_is_asked_for_at_most_thrice(
    reply: str, fault: str
) -> None:
    elements = {P: ("cups (object)", "shelf (object)")}
    good, shelf = "Q: Are there any cups?\nA: yes", "Q: Is there a shelf?\nA: yes"
    model = CannedText(reply, shelf, reply, good)
    assert [q.element for q in writers.write_evalmuse(P, model, elements).questions] == [
        "cups",
        "shelf",
    ]
    assert [fault in told for told in model.told] == [False, False, True, True]
    model = CannedText(reply, shelf, reply, reply)
    written = writers.write_evalmuse(P, model, elements)
    assert [(q.question_id, q.element) for q in written.questions] == [("2", "shelf")]
    (odd,) = written.faults
    assert fault in odd


@pytest.mark.parametrize(
    ("prompt", "element", "reply"),
    [
        ("running dogs", "running", "Q: Do the dogs run?\nA: yes"),
        ("running dogs", "dogs", "Q: Is there a dog?\nA: yes"),
        ("three men", "three men", "Q: Is there a man?\nA: yes"),
        ("2 cups", "2", "Q: Are there exactly two cups?\nA: yes"),
        ("a man who isn't wearing a hat", "hat", "Q: Is there a hat?\nA: no"),
        ("a room lacking windows", "windows", "Q: Are there windows?\nA: no"),
        ("一只红色的猫", "猫", "Q: 图中有猫吗？\nA: yes"),
    ],
)
def test_a_question_of_evalmuse_names_its_element_in_some_form(
    prompt: str, element: str, reply: str
) -> None:
    model = CannedText(f"{element} (object)\n{element.title()} (Object)", reply)
    written = writers.write_evalmuse(prompt, model)
    assert [q.element for q in written.questions] == [element]
    assert (written.faults, len(model.told)) == ((), 2)


def test_an_article_alone_does_not_name_an_element() -> None:
    odd = "Q: Is there a house in a field?\nA: yes"
    known = writers.write_evalmuse(
        "a red car", CannedText(*[odd] * 3), {"a red car": ("a red car (object)",)}
    )
    assert (known.questions, len(known.faults)) == ((), 1)


def test_an_instruction_that_would_not_fit_with_its_faults_is_asked_as_it_was() -> None:
    first = instructions.EVALMUSE_ELEMENTS.replace("{prompt}", P)
    model = CannedText(
        "x" * 40, "cups (object)", "Q: Are there cups?\nA: yes", limit=len(first) + 20
    )
    assert [q.element for q in writers.write_evalmuse(P, model).questions] == ["cups"]
    assert model.told[1] == model.told[0] == first


def test_bvqa_asks_each_phrase_of_the_prompt() -> None:
    written = writers.write_bvqa(
        P, partial(writers.model_phrases, model=CannedText(f"{CUPS}\na shelf\na table\n"))
    )
    assert [(q.question, q.element) for q in written.questions] == [
        (f"{CUPS}?", CUPS),
        ("a shelf?", "a shelf"),
    ]
    (fault,) = written.faults
    assert "'a table'" in fault
    assert writers.write_bvqa(
        "!", partial(writers.model_phrases, model=CannedText(""))
    ).none_because


def test_vq2_asks_for_each_phrase_at_most_five_times() -> None:
    lists = CannedText("\n".join(f"Q{n}?" for n in range(7)), "no question\n")
    written = writers.write_vq2(
        P, lists, partial(writers.model_phrases, model=CannedText(f"{CUPS}\na shelf"))
    )
    assert [(q.question, q.expected) for q in written.questions] == [
        (f"Q{n}?", CUPS) for n in range(5)
    ]
    odd, none = written.faults
    assert "'no question'" in odd and "'a shelf'" in none


@pytest.mark.parametrize("name", ["tifa", "dsg", "gecko", "evalmuse", "bvqa", "vq2"])
def test_every_writer_says_that_it_needs_a_language_model(name: writers.WriterName) -> None:
    with refusal("writer_needs_model"):
        writers.make_writer(name, writers.Helpers())
    assert callable(writers.make_writer(name, writers.Helpers(model=CannedText())))


# Writing a file

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
FROM = Provenance(writer="dsg", model="owner/llm", revision="abc", wording="assay-1")


class Counting:
    """Writes one question per prompt; stops at `stop`, has none for `empty`."""

    def __init__(self, stop: str = "") -> None:
        self.stop = stop
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> writers.Written:
        if prompt == self.stop:
            raise KeyboardInterrupt
        self.asked.append(prompt)
        if prompt == "empty":
            return writers.Written(none_because="none found")
        if prompt == "bad":
            return writers.Written(faults=("faulty",))
        return writers.Written((yes_no(prompt, "1", f"{prompt}?"),), ("odd line",))


def run(
    out: Path,
    writer: Counting,
    *prompts: str,
    seen: list[Progress] | None = None,
    provenance: Provenance = FROM,
) -> Summary:
    return write_questions(
        [Prompt(prompt, f"id of {prompt}") for prompt in prompts],
        writer,
        out,
        provenance=provenance,
        clock=lambda: NOON,
        listener=None if seen is None else seen.append,
    )


def test_each_question_says_where_it_comes_from(tmp_path: Path) -> None:
    out = tmp_path / "q.jsonl"
    seen: list[Progress] = []
    summary = run(out, Counting(), "a", "empty", "bad", "a", seen=seen)
    first, second = [line.record for line in read_lines(out)[0]]
    assert isinstance(first, Question)
    assert first.provenance == FROM.model_copy(update={"written_at": NOON})
    assert (first.prompt_id, second.prompt) == ("id of a", "empty")
    assert (summary.written, summary.n_questions) == (2, 1)
    assert (summary.failed, summary.faults) == ({"bad": ("faulty",)}, {"a": ("odd line",)})
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 3, 3)
    assert load_questions(out).of("empty").reason == "none found"


def test_a_stopped_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    out, straight = tmp_path / "q.jsonl", tmp_path / "straight.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(out, Counting(stop="c"), "a", "b", "c", "d")
    with out.open("ab") as file:
        file.write(b'{"prompt":"b","question_')  # as if the write itself had been cut off
    again = Counting()
    seen: list[Progress] = []
    summary = run(out, again, "a", "b", "c", "d", seen=seen)
    assert again.asked == ["b", "c", "d"]
    assert (summary.kept, summary.written, seen[0].done) == (1, 3, 1)
    run(straight, Counting(), "a", "b", "c", "d")
    assert out.read_bytes() == straight.read_bytes()


@pytest.mark.parametrize(
    "other", [{"writer": "tifa"}, {"model": "x/y"}, {"revision": "d"}, {"wording": "assay-2"}]
)
def test_a_file_of_another_writer_is_not_gone_on_with(
    tmp_path: Path, other: dict[str, str]
) -> None:
    out = tmp_path / "q.jsonl"
    run(out, Counting(), "a")
    with refusal("other_writer", "line 1"):
        run(out, Counting(), "b", provenance=FROM.model_copy(update=other))
