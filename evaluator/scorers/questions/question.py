"""Question: a line of a question file."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(pattern=r"\S")]
"""Any text but an empty one."""
Review = Literal["", "accepted", "rejected"]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Provenance(_Line):
    """Where a question comes from that was written here."""

    writer: str
    """`tifa`, `dsg`, `gecko`, ..."""
    model: str = ""
    """The language model, by Hub id or folder; empty where a rule wrote it."""
    revision: str = ""
    """Its commit."""
    wording: str = ""
    """Version of our instructions, see `evaluator.scorers.questions.writers.wording`."""
    written_at: datetime | None = None


class Question(_Line):
    """A question about images of one prompt."""

    prompt: Text
    """Exactly as scorers are given it: it is what questions are found by."""
    question_id: Text
    """Unique among the questions of the prompt."""
    question: Text
    expected: Text
    """The answer that counts."""
    choices: tuple[Text, ...] = ()
    """Empty: any answer."""
    parents: tuple[Text, ...] = ()
    """Ids of the questions of the same prompt without which this one makes no sense."""
    element: str = ""
    """The part of the prompt it is about, as benchmarks name it."""
    type: str = ""
    """Of the element: `object`, `color`, ..."""
    prompt_id: str = ""
    """In the benchmark or the release; for people, and to give a prompt its exact text."""
    source: str = ""
    """The release it comes from; empty where `provenance` says it."""
    entailment: float | None = Field(default=None, ge=0, le=1)
    """How likely the prompt entails the question with its answer, by a language model."""
    hypothesis: str = ""
    """What `entailment` is of."""
    review: Review = ""
    """What a person said of it; a rejected question is not asked."""
    provenance: Provenance | None = None


class NoQuestions(_Line):
    """A prompt that was gone through and has none, so that it is not taken for a forgotten one."""

    prompt: Text
    no_questions: Text
    """Why, in a few words."""
    prompt_id: str = ""
    provenance: Provenance | None = None


Record = Question | NoQuestions
