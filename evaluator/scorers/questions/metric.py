"""Own part of a metric that asks questions; `QuestionScorer` does what all share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.scorers.answering import Candidate
from evaluator.scorers.questions.asked import AskedQuestions
from evaluator.scorers.questions.question import Question
from evaluator.scoring.contract import Verdict

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Query:
    """What is put to the model.

    Attributes:
        prompt: the words.
        candidates: answers whose probability is wanted; empty: the model answers freely.
    """

    prompt: str
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model gave back.

    Attributes:
        text: its free answer.
        logprobs: for each candidate, log p of each of its tokens.
    """

    text: str = ""
    logprobs: tuple[NDArray[np.float64], ...] = ()


class QuestionMetric(ABC):
    """How questions are put to a model, and how its replies become a score.

    All queries of a metric have candidates, or none has.
    """

    max_new_tokens: int = 16
    """Length of a free answer."""

    @abstractmethod
    def queries(self, asked: AskedQuestions) -> list[Query]:
        """What is put to the model about an image of this prompt."""

    @abstractmethod
    def verdicts(self, asked: AskedQuestions, replies: Sequence[Sequence[Reply]]) -> list[Verdict]:
        """The scores of the images of a prompt.

        Args:
            asked: the questions; at least one.
            replies: for each image, the replies to `queries(asked)`.
        """

    def without_questions(self, asked: AskedQuestions) -> Verdict:
        """The score of an image whose prompt has no questions."""
        return Verdict(float("nan"), f"no questions: {asked.reason}")

    def unfit(self, question: Question) -> str:
        """Why this metric cannot ask a question; empty where it can."""
        del question
        return ""


def filled(template: str, **parts: str) -> str:
    """A template with `{name}` replaced by its part; braces within the parts mean nothing."""
    return _PLACE.sub(lambda place: parts.get(place[1], place[0]), template)
