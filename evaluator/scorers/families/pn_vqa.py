"""PN-VQA: each question is put with its expected answer and with the opposite one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluator.scorers.answering import Candidate, Reading, p_yes_norm
from evaluator.scorers.questions.files import AskedQuestions, Question
from evaluator.scorers.questions.loading import asking
from evaluator.scorers.questions.metric import (
    Query,
    QuestionMetric,
    Reply,
    filled,
    mean_of_valid,
    opposite,
)
from evaluator.scorers.registry import Family, Frozen
from evaluator.scoring.contract import Answer, Verdict


class Options(Frozen):
    """What differs between rows."""

    template: str = (
        "This image is generated from {prompt}. Is the answer to {question} in this image {answer}?"
    )
    yes: str = "Yes"
    no: str = "No"
    reading: Reading = Reading()


class PositiveNegative(QuestionMetric):
    """The mean over questions of (P_expected + 1 - P_opposite) / 2.

    P_a = p(Yes) / (p(Yes) + p(No)) for the question whether its answer is a.
    (EvalMuse-40K, Han et al. 2024, PN-VQA.)
    """

    def __init__(self, options: Options) -> None:
        self._template = options.template
        self._candidates = tuple(
            Candidate(text, first_only=True) for text in (options.yes, options.no)
        )

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """Two per question: with the expected answer, then with the opposite one."""
        return [
            Query(
                filled(self._template, prompt=asked.prompt, question=q.question, answer=answer),
                self._candidates,
            )
            for q in asked.questions
            for answer in (q.expected.strip().lower(), opposite(q.expected) or "")
        ]

    def unfit(self, question: Question) -> str:
        """The expected answer must have an opposite."""
        known = opposite(question.expected)
        return "" if known else f"expects {question.expected!r}, which is neither yes nor no"

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """See the class."""
        queries = self.queries(asked)[::2]
        yes = np.array([p_yes_norm(*reply.logprobs) for reply in replies])
        values = (yes[::2] + 1 - yes[1::2]) / 2
        answers = tuple(
            Answer(q.question_id, query.prompt, q.expected, f"{p:.4f}, {n:.4f}", float(value))
            for q, query, p, n, value in zip(
                asked.questions, queries, yes[::2], yes[1::2], values, strict=True
            )
        )
        return Verdict(mean_of_valid(values, np.ones(values.shape, bool)), answers=answers)


FAMILY = Family("positive and negative questions", Options, asking(PositiveNegative, "evalmuse"))
