"""TIFA: questions with choices in one call, then confirmed from the prompt by another model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evaluator.scorers.questions.answers import literal_choice, same_answer
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.questions.question import Question
from evaluator.scorers.questions.writers import wording
from evaluator.scorers.questions.writers.writer import (
    WritesText,
    Written,
    lines_of,
    listed,
    make_questions,
)

_ABOUT = re.compile(r"About\s+(?P<element>.+?)\s*\((?P<type>[^()]*)\)\s*:?$", re.IGNORECASE)
_FIELD = re.compile(r"(?P<key>Q|Choices|A)\s*:\s*(?P<value>.*)$", re.IGNORECASE)


@dataclass(frozen=True)
class TifaWriter:
    """Writes TIFA questions.

    Attributes:
        model: writes them.
        verifier: answers each from the prompt; a question that it answers otherwise is left out
            (Hu et al. 2023). None: all are kept, as T2IScoreScore does.
        max_new_tokens: of the list of questions.
    """

    model: WritesText
    verifier: WritesText | None = None
    max_new_tokens: int = 1024

    def write(self, prompt: str) -> Written:
        """One call; one more per question with a verifier, all of them together."""
        text = self.model.generate([filled(wording.TIFA, prompt=prompt)], self.max_new_tokens)[0]
        found = parse_tifa(text, prompt)
        if self.verifier is None or not found.questions:
            return found
        return _confirmed(found, prompt, self.verifier)


def parse_tifa(text: str, prompt: str) -> Written:
    """Read `About element (type):` headings, each followed by `Q:`, `Choices:` and `A:` lines.

    A question that is not whole, or whose answer is none of its choices, is a fault; one that
    stands there twice counts once.
    """
    fields: list[dict[str, object]] = []
    faults: list[str] = []
    element, kind = "", ""
    current: dict[str, str] = {}
    for line in [*lines_of(text), "Q:"]:
        about, field = _ABOUT.match(line), _FIELD.match(line)
        if not about and not field:
            faults.append(f"line {line!r} is not of the form asked for")
            continue
        if current and (about or (field and field["key"].lower() == "q")):
            _finish(current, element, kind, fields, faults)
            current = {}
        if about:
            element, kind = about["element"], about["type"].strip().lower()
        elif field and (field["value"].strip() or current):
            current[field["key"].lower()] = field["value"].strip()
    questions, bad = make_questions(prompt, fields)
    return Written(questions, (*faults, *bad))


def _finish(
    current: dict[str, str],
    element: str,
    kind: str,
    fields: list[dict[str, object]],
    faults: list[str],
) -> None:
    missing = [key for key in ("q", "choices", "a") if not current.get(key)]
    if missing:
        faults.append(f"question {current.get('q', '')!r} lacks {', '.join(missing)}")
        return
    choices = listed(current["choices"])
    expected = literal_choice(current["a"], choices)
    if expected is None or len(choices) < 2:
        faults.append(f"question {current['q']!r} has no answer among two or more choices")
        return
    asked = {"question": current["q"], "expected": expected}
    if any(asked.items() <= one.items() for one in fields):
        return
    number = str(len(fields) + 1)
    extra = {"question_id": number, "choices": choices, "element": element, "type": kind}
    fields.append({**asked, **extra})


def _confirmed(found: Written, prompt: str, verifier: WritesText) -> Written:
    asked = [
        filled(
            wording.TIFA_VERIFY,
            prompt=prompt,
            question=question.question,
            choices=", ".join(question.choices),
        )
        for question in found.questions
    ]
    answers = verifier.generate(asked, 32)
    kept: list[Question] = []
    faults = list(found.faults)
    for question, answer in zip(found.questions, answers, strict=True):
        if same_answer(answer, question.expected):
            kept.append(question)
        else:
            faults.append(f"{question.question!r} is not confirmed: {answer.strip()!r}")
    return Written(tuple(kept), tuple(faults))
