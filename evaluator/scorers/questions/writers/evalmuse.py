"""EvalMuse: the elements of a prompt, and one yes/no question for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.evalmuse.load import ElementKey, parse_element_key
from evaluator.scorers.questions.answers import YES_NO, said
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.questions.writers import wording
from evaluator.scorers.questions.writers.writer import (
    WritesText,
    Written,
    lines_of,
    make_questions,
)

_PAIR = re.compile(r"Q:\s*(?P<q>.*\S)\s*\n\s*A:\s*(?P<a>.*\S)", re.IGNORECASE)


@dataclass(frozen=True)
class EvalMuseWriter:
    """Writes a yes/no question for each element, as PN-VQA asks them (Han et al. 2024).

    Attributes:
        model: lists the elements, then writes each question.
        elements: of prompts whose elements are known, as `two cups (counting)`.
        max_new_tokens: of the list of elements.
    """

    model: WritesText
    elements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_new_tokens: int = 512

    def write(self, prompt: str) -> Written:
        """One call for the elements, and one for each of them."""
        keys, faults = self._elements(prompt)
        if not keys:
            return Written(faults=(*faults, "no elements"))
        asked = [
            filled(wording.EVALMUSE_QUESTION, prompt=prompt, element=f"{key.text} ({key.kind})")
            for key in keys
        ]
        fields: list[dict[str, object]] = []
        for number, (key, text) in enumerate(
            zip(keys, self.model.generate(asked, 64), strict=True), start=1
        ):
            pair = _PAIR.search(text)
            expected = said(pair["a"]) if pair else ""
            if pair is None or expected not in YES_NO:
                faults.append(f"the question about {key.text!r} is not of the form asked for")
                continue
            fields.append(_fields(number, key, pair["q"], expected))
        questions, bad = make_questions(prompt, fields)
        return Written(questions, (*faults, *bad))

    def _elements(self, prompt: str) -> tuple[list[ElementKey], list[str]]:
        known = self.elements.get(prompt)
        if known is not None:
            return parse_elements(known)
        text = self.model.generate(
            [filled(wording.EVALMUSE_ELEMENTS, prompt=prompt)], self.max_new_tokens
        )[0]
        return parse_elements(lines_of(text))


def parse_elements(lines: list[str] | tuple[str, ...]) -> tuple[list[ElementKey], list[str]]:
    """Read `two cups (counting)`, each element once, and what is not of that form."""
    found: dict[ElementKey, None] = {}
    faults: list[str] = []
    for line in lines:
        try:
            found[parse_element_key(line)] = None
        except ValueError as error:
            faults.append(str(error))
    return list(found), faults


def _fields(number: int, key: ElementKey, question: str, expected: str) -> dict[str, object]:
    return {
        "question_id": str(number),
        "question": question,
        "choices": ("yes", "no"),
        "expected": expected,
        "element": key.text,
        "type": key.kind,
    }
