"""Gecko: probabilities of the choices, over questions that the prompt entails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from evaluator.scorers.answering import Candidate, Reading, choice_norm
from evaluator.scorers.checkpoints import resolve
from evaluator.scorers.models.text_models import load_entailment
from evaluator.scorers.questions.files import AskedQuestions, Question
from evaluator.scorers.questions.loading import loaded, open_model, open_questions
from evaluator.scorers.questions.metric import (
    HYPOTHESIS,
    Entails,
    Query,
    QuestionMetric,
    Reply,
    filled,
    hypothesis_of,
    mean_of_valid,
)
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Answer, Verdict


class Options(Frozen):
    """What differs between rows."""

    template: str = "{question}"
    """What is put to the model; `{choices}` stands for the choices, joined by commas."""
    threshold: float | None = 0.005
    """Least probability that the prompt entails question and answer; None: no filter."""
    with_end: bool = False  # Whether the end of the answer is part of its probability
    reading: Reading = Reading()


class Gecko(QuestionMetric):
    """The mean over kept questions of p(expected choice) / sum of p over the choices.

    p of a choice is the product of the probabilities of its tokens. A question is kept where
    p(prompt entails hypothesis) >= threshold. Without any kept question there is no score.
    (Gecko, Wiles et al. 2024; its equation names negative log-likelihoods s_i, with
    which worse answers would score higher; the text's normalised probabilities are used.)
    """

    def __init__(self, options: Options, entails: Entails | None = None) -> None:
        self._options = options
        self._entails = entails
        self._kept: dict[str, BoolArray] = {}

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """One per question that the filter keeps."""
        kept = self._filter(asked)
        return [self._query(q) for q, keep in zip(asked.questions, kept, strict=True) if keep]

    def unfit(self, question: Question) -> str:
        """There must be a choice, and the expected answer among the choices."""
        if len(question.choices) < 2:
            return "has fewer than two choices"
        known = question.expected in question.choices
        return "" if known else f"expects {question.expected!r}, which is none of its choices"

    def _query(self, question: Question) -> Query:
        choices = ", ".join(question.choices)
        return Query(
            filled(self._options.template, question=question.question, choices=choices),
            tuple(Candidate(choice, self._options.with_end) for choice in question.choices),
        )

    def _filter(self, asked: AskedQuestions) -> BoolArray:
        """Shape (Q,): whether each question is kept; worked out once per prompt."""
        if asked.prompt not in self._kept:
            threshold = self._options.threshold
            kept = np.ones(len(asked.questions), bool)
            if threshold is not None:
                kept = self._entailments(asked) >= threshold
            self._kept[asked.prompt] = kept
        return self._kept[asked.prompt]

    def _entailments(self, asked: AskedQuestions) -> FloatArray:
        found = np.array(
            [np.nan if q.entailment is None else q.entailment for q in asked.questions]
        )
        open_rows = np.flatnonzero(np.isnan(found))
        if open_rows.size:
            if self._entails is None:
                raise ValueError("questions without entailment need a model of entailment")
            hypotheses = [hypothesis_of(asked.questions[row]) for row in open_rows]
            found[open_rows] = self._entails.probabilities(
                [asked.prompt] * len(hypotheses), hypotheses
            )
        return found

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """See the class."""
        kept = self._filter(asked)
        given = iter(replies)
        answers = tuple(
            self._answer(q, next(given) if keep else None)
            for q, keep in zip(asked.questions, kept, strict=True)
        )
        if not kept.any():
            problem = f"no questions: the filter took out all {kept.size}"
            return Verdict(float("nan"), problem, answers)
        values = np.array([answer.value for answer in answers])
        return Verdict(mean_of_valid(values, kept), answers=answers)

    def _answer(self, question: Question, reply: Reply | None) -> Answer:
        query = self._query(question)
        if reply is None:
            return Answer(
                question.question_id, query.prompt, question.expected, "", np.nan, valid=False
            )
        totals = [float(one.sum()) for one in reply.logprobs]
        return Answer(
            question.question_id,
            query.prompt,
            question.expected,
            question.choices[int(np.argmax(totals))],
            choice_norm(reply.logprobs, question.choices.index(question.expected)),
        )


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """Load the VLM, the questions, and a model of entailment where the file lacks it."""
    questions = open_questions(row, runtime, "gecko")
    filtered = options.threshold is not None
    extra = {"hypothesis": HYPOTHESIS} if filtered else {}
    entails: Entails | None = None
    if filtered and any(q.entailment is None for q in questions):
        source = resolve(row, runtime, "nli")
        entails = load_entailment(source, row, runtime)
        extra["nli"] = str(source)
    model = open_model(row, runtime, options.reading)
    return loaded(Gecko(options, entails), model, questions, extra)


FAMILY = Family("normalised answers to covering questions", Options, load)
