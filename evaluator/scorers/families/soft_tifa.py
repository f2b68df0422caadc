"""Soft-TIFA: the probability of the expected answer to each question, averaged over the questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from benchmarks.arrays import FloatArray
from evaluator.scorers.answering import Candidate, Reading, p_first
from evaluator.scorers.models.vlm_loading import load_decoder
from evaluator.scorers.questions.files import AskedQuestions, Question
from evaluator.scorers.questions.loading import loaded, open_questions
from evaluator.scorers.questions.metric import Query, QuestionMetric, Reply, filled
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Answer, Verdict

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COUNTING = "How many"  # How questions begin that expect a number

Mean = Literal["arithmetic", "geometric"]


class Options(Frozen):
    """What differs between rows."""

    mean: Mean
    template: str = "{question} Answer in one word."
    reading: Reading = Reading()


class SoftTifa(QuestionMetric):
    """The mean over questions of the probability that the answer begins as the expected one does.

    Each way to write the expected answer counts with its first token, and each token once.
    (GenEval 2, Kamath et al. 2025.)

    `first_token`: of a text, as the model would begin to write it.
    """

    def __init__(self, options: Options, first_token: Callable[[str], int]) -> None:
        self._options = options
        self._first_token = first_token

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """Each question once."""
        return [
            Query(filled(self._options.template, question=q.question), self._candidates(q))
            for q in asked.questions
        ]

    def unfit(self, question: Question) -> str:
        """A question expects yes, or asks for a number up to ten."""
        expected = question.expected.strip().lower()
        if question.question.startswith(COUNTING):
            known = "" if expected in NUMBERS else "no number word from zero to ten"
        else:
            known = "" if expected == "yes" else "not yes"
        return f"expects {question.expected!r}, which is {known}" if known else ""

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """See the class."""
        values = np.array([min(1.0, sum(map(p_first, reply.logprobs))) for reply in replies])
        answers = tuple(
            Answer(q.question_id, query.prompt, q.expected, f"{value:.4f}", float(value))
            for q, query, value in zip(asked.questions, self.queries(asked), values, strict=True)
        )
        return Verdict(MEANS[self._options.mean](values), answers=answers)

    def _candidates(self, question: Question) -> tuple[Candidate, ...]:
        """One way to write the answer for each first token that one of them has."""
        by_token: dict[int, str] = {}
        for text in ways_to_write(question):
            by_token.setdefault(self._first_token(text), text)
        return tuple(Candidate(text) for text in by_token.values())


def ways_to_write(question: Question) -> list[str]:
    """The expected answer in either case, a number as a digit too, all with a space as well."""
    word = question.expected.strip().lower()
    ways = [word, word.capitalize()]
    if question.question.startswith(COUNTING):
        ways.append(str(NUMBERS.index(word)))
    return [*ways, *(f" {way}" for way in ways)]


def geometric_mean(values: FloatArray) -> float:
    """0 where a value is 0.

    `values`: shape (Q,), in 0..1.
    """
    with np.errstate(divide="ignore"):
        return float(np.exp(np.log(values).mean()))


MEANS: dict[Mean, Callable[[FloatArray], float]] = {
    "arithmetic": lambda values: float(values.mean()),
    "geometric": geometric_mean,
}


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """Load the VLM and the questions."""
    questions = open_questions(row, runtime, "dsg")
    model = load_decoder(row, runtime, options.reading)
    return loaded(SoftTifa(options, model.first_token), model, questions)


FAMILY = Family("probabilities of expected answers", Options, load)
