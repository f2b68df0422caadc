"""The two texts of Gecko: a prompt with numbered parts, and a question for each number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluator.scorers.questions.answers import literal_choice
from evaluator.scorers.questions.writers.writer import listed

_PART = re.compile(r"\{(\d+)\}\s*\[([^\[\]]*)\]")
_LINE = re.compile(
    r"\{(?P<number>\d+)\}\s*Q:\s*(?P<question>.*?)\s*Choices:\s*(?P<choices>.*?)\s*A:\s*(?P<a>.*\S)"
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The parts of a prompt that a picture can show.

    Attributes:
        text: the prompt with its parts marked.
        parts: number to words.
        faults: one sentence each.
    """

    text: str
    parts: dict[str, str]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartQuestion:
    """A question about one part; `row` is its line in the text, from 0."""

    row: int
    number: str
    question: str
    choices: tuple[str, ...]
    expected: str


@dataclass(frozen=True, slots=True)
class PartQuestions:
    """The questions about the parts of a prompt, and what could not be read."""

    questions: tuple[PartQuestion, ...]
    faults: tuple[str, ...] = ()


def parse_coverage(text: str, prompt: str) -> Coverage:
    """Read `A {1}[red colored] {2}[dog].`; the words must be the prompt's own, spaces aside."""
    parts: dict[str, str] = {}
    faults: list[str] = []
    for number, words in _PART.findall(text):
        if number in parts:
            faults.append(f"part {number} is marked twice")
        elif words.strip():
            parts[number] = words.strip()
    if not parts:
        faults.append("no part is marked")
    plain = _PART.sub(lambda part: part[2], text)
    if parts and _bare(plain) != _bare(prompt):
        faults.append(f"the marked text says {plain.strip()!r}, which is not the prompt")
    return Coverage(text.strip(), parts, tuple(faults))


def parse_questions(text: str, parts: dict[str, str]) -> PartQuestions:
    """Read lines `{1} Q: ... Choices: a, b A: a`, one for each part.

    Args:
        text: of a language model, or of a file.
        parts: number to words; see `parse_coverage`.
    """
    found: dict[str, PartQuestion] = {}
    faults: list[str] = []
    for row, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        match = _LINE.match(line.strip())
        if match is None:
            faults.append(f"line {line.strip()!r} is not of the form asked for")
            continue
        choices = listed(match["choices"])
        expected = literal_choice(match["a"], choices)
        if match["number"] not in parts:
            faults.append(f"there is no part {match['number']}")
        elif match["number"] in found:
            faults.append(f"part {match['number']} is asked about twice")
        elif expected is None or len(choices) < 2 or not match["question"]:
            faults.append(f"the answer to part {match['number']} is not one of several choices")
        else:
            found[match["number"]] = PartQuestion(
                row, match["number"], match["question"], choices, expected
            )
    faults += [f"part {number} has no question" for number in parts if number not in found]
    return PartQuestions(tuple(found.values()), tuple(faults))


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text)
