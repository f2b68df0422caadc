"""Entailment of a question with its answer by the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchmarks.arrays import FloatArray
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.questions.question import Question

HYPOTHESIS = "{question} {answer}"
"""Ours: the authors of Gecko do not give theirs."""


class Entails(Protocol):
    """A model of natural language inference."""

    def probabilities(self, premises: Sequence[str], hypotheses: Sequence[str]) -> FloatArray:
        """Shape (n,), the probability that each premise entails its hypothesis."""


def hypothesis_of(question: Question) -> str:
    """What the prompt is asked to entail."""
    return filled(HYPOTHESIS, question=question.question, answer=question.expected)


def with_entailment(questions: Sequence[Question], model: Entails) -> list[Question]:
    """The questions with the probability that their prompt entails them, and of what it is."""
    hypotheses = [hypothesis_of(question) for question in questions]
    found = model.probabilities([question.prompt for question in questions], hypotheses)
    return [
        question.model_copy(update={"entailment": float(value), "hypothesis": hypothesis})
        for question, value, hypothesis in zip(questions, found, hypotheses, strict=True)
    ]
