"""Writer of questions: prompt in, questions out, and what went wrong on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import ValidationError

from evaluator.scorers.questions.question import Question


class WritesText(Protocol):
    """The part of a language model that writers use."""

    def generate(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        """The likeliest continuation of each prompt."""


@dataclass(frozen=True, slots=True)
class Written:
    """The questions of one prompt.

    Attributes:
        questions: they pass the check of question files.
        faults: what of the language model's text could not be used, one sentence each.
        none_because: the prompt is known to have no questions, and why.
    """

    questions: tuple[Question, ...] = ()
    faults: tuple[str, ...] = ()
    none_because: str = ""


class Writer(Protocol):
    """Writes the questions of one metric."""

    def write(self, prompt: str) -> Written:
        """The questions of a prompt."""


def make_questions(
    prompt: str, fields: Iterable[dict[str, Any]]
) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """Questions of their fields; what cannot be one becomes a fault."""
    found: list[Question] = []
    faults: list[str] = []
    for values in fields:
        try:
            found.append(Question.model_validate({"prompt": prompt, **values}))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            faults.append(f"question {values.get('question_id')}: {where}: {first['msg']}")
    return tuple(found), tuple(faults)


def listed(text: str) -> tuple[str, ...]:
    """Choices from `a, b, c`, in order, each once."""
    parts = (part.strip().rstrip(".").strip() for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def lines_of(text: str) -> list[str]:
    """The lines of a model's text that say something."""
    return [line.strip() for line in text.splitlines() if line.strip()]
