"""BVQA (T2I-CompBench): the product of p(yes) over the noun phrases of the prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from evaluator.scorers.answering import Candidate, Reading, p_yes_norm
from evaluator.scorers.questions.files import AskedQuestions, Question
from evaluator.scorers.questions.loading import asking
from evaluator.scorers.questions.metric import Query, QuestionMetric, Reply, product
from evaluator.scorers.registry import Family, Frozen
from evaluator.scoring.contract import Answer, Verdict

_REMOVED = re.compile(r'[.!"()*#:;~]')


class Options(Frozen):
    """What differs between rows."""

    most: int = 8  # Phrases that count; further ones do not
    skipped: tuple[str, ...] = ("top", "the side", "the left", "the right")
    """Phrases that are never asked."""
    decimals: int = 4  # To which each probability is rounded
    yes: str = "yes"
    no: str = "no"
    reading: Reading = Reading()


class ProductOfPhrases(QuestionMetric):
    """The product of p(yes) / (p(yes) + p(no)), each rounded, over the first phrases.

    A prompt that was gone through and has no phrase scores 1.
    (T2I-CompBench, Huang et al. 2023, disentangled BLIP-VQA, and its released code.)
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._candidates = tuple(
            Candidate(text, first_only=True) for text in (options.yes, options.no)
        )

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """One per phrase that counts."""
        return [Query(plain(q.question), self._candidates) for q in self._counted(asked)]

    def without_questions(self, asked: AskedQuestions) -> Verdict:
        """1, where the prompt is known to have no phrase; none where nobody looked."""
        return Verdict(1.0) if asked.in_file else super().without_questions(asked)

    def _counted(self, asked: AskedQuestions) -> list[Question]:
        skipped = self._options.skipped
        phrases = ((q, (q.element or q.question.rstrip("?")).strip()) for q in asked.questions)
        return [q for q, phrase in phrases if phrase not in skipped][: self._options.most]

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """See the class."""
        counted = self._counted(asked)
        values = [round(p_yes_norm(*reply.logprobs), self._options.decimals) for reply in replies]
        value_of = {q.question_id: value for q, value in zip(counted, values, strict=True)}
        answers = tuple(self._answer(q, value_of.get(q.question_id)) for q in asked.questions)
        return Verdict(product(np.array(values)), answers=answers)

    def _answer(self, question: Question, value: float | None) -> Answer:
        asked = plain(question.question)
        if value is None:
            return Answer(question.question_id, asked, question.expected, "", np.nan, valid=False)
        raw = self._options.yes if value >= 0.5 else self._options.no
        return Answer(question.question_id, asked, question.expected, raw, value)


def plain(question: str) -> str:
    """A question as BLIP's VQA model was trained on: lower case, without most punctuation."""
    return _REMOVED.sub("", question.lower()).strip()


FAMILY = Family("product over noun phrases", Options, asking(ProductOfPhrases, "bvqa"))
