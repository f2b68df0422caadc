"""Gecko: the parts of a prompt that a picture can show, and one question for each."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.scorers.questions.entailing import Entails, with_entailment
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.questions.writers import wording
from evaluator.scorers.questions.writers.gecko_text import parse_coverage, parse_questions
from evaluator.scorers.questions.writers.writer import (
    WritesText,
    Written,
    lines_of,
    make_questions,
)


@dataclass(frozen=True)
class GeckoWriter:
    """Writes Gecko questions (Wiles et al. 2024).

    Attributes:
        model: marks the parts, then asks about each.
        entails: says how likely the prompt entails each question with its answer; the scorer
            filters by that. None: it is left open.
        max_new_tokens: of each call.
    """

    model: WritesText
    entails: Entails | None = None
    max_new_tokens: int = 1024

    def write(self, prompt: str) -> Written:
        """Two calls, one where no part is marked."""
        marked = lines_of(self._call(filled(wording.GECKO_COVERAGE, prompt=prompt)))
        coverage = parse_coverage(marked[0].removeprefix("Marked:") if marked else "", prompt)
        if not coverage.parts:
            return Written(faults=coverage.faults)
        text = self._call(filled(wording.GECKO_QUESTIONS, coverage=coverage.text))
        parsed = parse_questions(text, coverage.parts)
        questions, bad = make_questions(
            prompt,
            (
                {
                    "question_id": one.number,
                    "question": one.question,
                    "choices": one.choices,
                    "expected": one.expected,
                    "element": coverage.parts[one.number],
                }
                for one in parsed.questions
            ),
        )
        if self.entails is not None and questions:
            questions = tuple(with_entailment(questions, self.entails))
        return Written(questions, (*coverage.faults, *parsed.faults, *bad))

    def _call(self, instruction: str) -> str:
        return self.model.generate([instruction], self.max_new_tokens)[0]
