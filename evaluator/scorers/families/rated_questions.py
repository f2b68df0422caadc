"""Rated questions: each question to a prompt names its answers by number; their sum (EvalAlign)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field, FiniteFloat

from evaluator.scorers.answering import Reading
from evaluator.scorers.models.judge_replies import bounded
from evaluator.scorers.models.reply_text import read_first
from evaluator.scorers.questions.files import AskedQuestions
from evaluator.scorers.questions.loading import asking
from evaluator.scorers.questions.metric import Query, QuestionMetric, Reply
from evaluator.scorers.registry import Family, Frozen
from evaluator.scoring.contract import Answer, Verdict


class Options(Frozen):
    """What differs between rows."""

    answers: dict[str, FiniteFloat] = Field(min_length=2)  # each answer to what it counts
    max_new_tokens: int = Field(default=64, ge=1, le=512)
    reading: Reading = Reading()  # How image and question are put before the model


class RatedQuestions(QuestionMetric):
    """The sum of what the answers count; missing where one of them cannot be read."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.max_new_tokens = options.max_new_tokens

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """Each question as it stands."""
        return [Query(question.question) for question in asked.questions]

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """See the class."""
        said = [read_first(reply.text, tuple(self._options.answers)) for reply in replies]
        values = [self._options.answers.get(one.word, math.nan) for one in said]
        answers = tuple(
            Answer(
                q.question_id, q.question, q.expected, bounded(reply.text), value, bool(one.word)
            )
            for q, reply, value, one in zip(asked.questions, replies, values, said, strict=True)
        )
        problems = [
            f"{q.question!r}: {one.problem}"
            for q, one in zip(asked.questions, said, strict=True)
            if one.problem
        ]
        return Verdict(math.fsum(values), "; ".join(problems[:1]), answers)


FAMILY = Family("rated questions", Options, asking(RatedQuestions, "evalalign", imported=True))
