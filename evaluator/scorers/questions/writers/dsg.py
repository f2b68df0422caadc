"""DSG: statements, questions and dependencies, in three calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from evaluator.scorers.questions.metric import filled
from evaluator.scorers.questions.writers import wording
from evaluator.scorers.questions.writers.writer import (
    WritesText,
    Written,
    lines_of,
    make_questions,
)

_NUMBERED = re.compile(r"(?P<number>\d+)\s*\|\s*(?P<content>.*\S)\s*$")
_STATEMENT = re.compile(r"(?P<kind>[^()]*?)\s*\((?P<words>.*)\)$")


@dataclass(frozen=True)
class DsgWriter:
    """Writes DSG questions (Cho et al. 2024).

    Attributes:
        model: asked for the statements, then for their questions, then for their dependencies.
        max_new_tokens: of each list.
    """

    model: WritesText
    max_new_tokens: int = 1024

    def write(self, prompt: str) -> Written:
        """Three calls, two where no statement is found."""
        tuples, faults = numbered(self._call(wording.DSG_TUPLES, prompt=prompt), "statements")
        if not tuples:
            return Written(faults=(*faults, "no statements"))
        listed = "\n".join(f"{number} | {content}" for number, content in tuples.items())
        asked, bad = numbered(
            self._call(wording.DSG_QUESTIONS, prompt=prompt, tuples=listed), "questions"
        )
        needs, odd = numbered(
            self._call(wording.DSG_DEPENDENCIES, prompt=prompt, tuples=listed), "dependencies"
        )
        return assemble(prompt, tuples, asked, needs, (*faults, *bad, *odd))

    def _call(self, instruction: str, **parts: str) -> str:
        return self.model.generate([filled(instruction, **parts)], self.max_new_tokens)[0]


def numbered(text: str, what: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read lines `number | content`.

    Args:
        text: of the language model.
        what: the lines hold, for messages.

    Returns:
        Content by number, and a sentence for each line that is none or has a number again.
    """
    found: dict[str, str] = {}
    faults: list[str] = []
    for line in lines_of(text):
        match = _NUMBERED.match(line)
        if match is None:
            faults.append(f"{what}: line {line!r} is not of the form `number | text`")
        elif str(int(match["number"])) in found:
            faults.append(f"{what}: number {match['number']} stands there twice")
        else:
            found[str(int(match["number"]))] = match["content"]
    return found, tuple(faults)


def assemble(
    prompt: str,
    tuples: dict[str, str],
    asked: dict[str, str],
    needs: dict[str, str],
    faults: tuple[str, ...] = (),
) -> Written:
    """Put the three lists together.

    A statement without a question is left out. A dependency that is no number, or on a question
    that is not there, is left out; where questions depend on each other, all dependencies of the
    prompt are. Each is a fault.
    """
    said = list(faults)
    kept = [number for number in tuples if number in asked]
    said += [f"statement {number} has no question" for number in tuples if number not in asked]
    said += [f"question {number} has no statement" for number in asked if number not in tuples]
    parents = {number: _parents(number, needs.get(number), kept, said) for number in kept}
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        said.append(f"questions depend on each other: {' > '.join(error.args[1])}")
        parents = dict.fromkeys(kept, ())
    questions, bad = make_questions(
        prompt, (_fields(number, tuples[number], asked[number], parents[number]) for number in kept)
    )
    return Written(questions, (*said, *bad))


def _parents(number: str, cell: str | None, kept: list[str], said: list[str]) -> tuple[str, ...]:
    if cell is None:
        said.append(f"question {number} has no line of dependencies")
        return ()
    found: dict[str, None] = {}
    for part in (part.strip() for part in cell.split(",")):
        if part in kept and part != number:
            found[part] = None
        elif part != "0":
            said.append(f"question {number} cannot depend on {part!r}")
    return tuple(found)


def _fields(
    number: str, statement: str, question: str, parents: tuple[str, ...]
) -> dict[str, object]:
    match = _STATEMENT.match(statement)
    return {
        "question_id": number,
        "question": question,
        "choices": ("yes", "no"),
        "expected": "yes",
        "parents": parents,
        "element": match["words"].strip() if match else statement,
        "type": match["kind"].strip() if match else "",
    }
