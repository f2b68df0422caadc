"""VQ2: is the answer that a question was made from true in the image?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from evaluator.scorers.answering import Candidate, Reading, p_first, p_yes_norm
from evaluator.scorers.questions.files import AskedQuestions
from evaluator.scorers.questions.loading import asking
from evaluator.scorers.questions.metric import Query, QuestionMetric, Reply, filled, mean_of_valid
from evaluator.scorers.registry import Family, Frozen
from evaluator.scoring.contract import Answer, Verdict


class Options(Frozen):
    """What differs between rows."""

    template: str = 'is "{answer}" true for "{question}" in this image?'
    yes: str = "yes"
    no: str = "no"
    value: Literal["p_first", "p_yes_norm"] = "p_first"
    """`p_first`: p of the first token of `yes`, over the whole vocabulary. `p_yes_norm`:
    p(yes) / (p(yes) + p(no))."""
    reading: Reading = Reading()


class AnswersHold(QuestionMetric):
    """The mean over question and answer pairs of p(yes).

    (What You See is What You Read, Yarom et al. 2023, VQ2. The released code writes the words yes
    and no only; the probability is the paper's.)
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._candidates = tuple(
            Candidate(text, first_only=True) for text in (options.yes, options.no)
        )

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """One per question, with the span of the prompt that it was made from as the answer."""
        return [
            Query(
                filled(self._options.template, question=q.question, answer=q.expected),
                self._candidates,
            )
            for q in asked.questions
        ]

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """See the class."""
        queries = self.queries(asked)
        values = np.array([self._value(reply) for reply in replies])
        likeliest = [np.argmax([one[0] for one in reply.logprobs]) for reply in replies]
        answers = tuple(
            Answer(
                q.question_id, query.prompt, q.expected, self._candidates[row].text, float(value)
            )
            for q, query, row, value in zip(
                asked.questions, queries, likeliest, values, strict=True
            )
        )
        return Verdict(mean_of_valid(values, np.ones(values.shape, bool)), answers=answers)

    def _value(self, reply: Reply) -> float:
        if self._options.value == "p_first":
            return p_first(reply.logprobs[0])
        return p_yes_norm(*reply.logprobs)


FAMILY = Family("answers that hold", Options, asking(AnswersHold, "vq2"))
