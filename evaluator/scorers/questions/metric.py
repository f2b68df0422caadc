"""Metrics that ask questions: answers parsed and accumulated, and the scorer that all share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accumulation.question_scores import (
    AnsweredQuestions,
    Rule,
    contains_yes,
    counted,
    equals_yes,
)
from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.errors import PlatformError
from evaluator.scorers.answering import AnswerModel, Candidate, SharedImageScorer, asked_once
from evaluator.scorers.questions.files import AskedQuestions, Question, QuestionFile
from evaluator.scoring.contract import Answer, Verdict

Parse = Literal["word", "substring", "exact", "choice"]
"""When an answer to a yes/no question is correct. `word`: the first of the words yes and no in it
is the expected one. `substring`: it has the letters `yes` in it, whatever is expected
(T2IScoreScore; so `No, its eyes are shut` is correct). `exact`: it is `yes`, whatever is expected
(DSG, released evaluation). `choice`: yes and no are choices like any others: the nearest one is
the expected one (TIFA, released evaluation)."""
_YES_OR_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
YES_NO = frozenset({"yes", "no"})


class Similarity(Protocol):
    """How near texts are to each other."""

    def cosines(self, text: str, others: Sequence[str]) -> FloatArray:
        """Shape (len(others),), in -1..1."""


def expects_yes_or_no(question: Question) -> bool:
    """Whether the answer is read as yes or no: so it is expected, or these are the choices."""
    choices = {choice.strip().lower() for choice in question.choices}
    return choices == YES_NO or (not choices and yes_or_no_in(question.expected) in YES_NO)


def yes_no_correct(answers: Sequence[str], expected: Sequence[str], parse: Parse) -> BoolArray:
    """Whether each answer to a yes/no question is correct.

    Returns: Shape (n,).
    """
    given = pd.Series(list(answers), dtype=str)
    if parse == "exact":
        return equals_yes(given)
    if parse == "substring":
        return contains_yes(given)
    wanted = pd.Series([yes_or_no_in(answer) for answer in expected], dtype=str)
    meant = pd.Series([yes_or_no_in(answer) for answer in answers], dtype=str)
    correct: BoolArray = (meant == wanted).to_numpy(bool)
    return correct


def yes_or_no_in(answer: str) -> str:
    """The first of the words `yes` and `no` in a text, in lower case; empty where there is none."""
    found = _YES_OR_NO.search(answer)
    return found[0].lower() if found else ""


def literal_choice(answer: str, choices: Sequence[str]) -> str | None:
    """The choice that an answer is, apart from case, spaces and a full stop at its end."""
    bare = _bare(answer)
    return next((choice for choice in choices if _bare(choice) == bare), None)


def nearest_choice(answer: str, choices: Sequence[str], similarity: Similarity) -> str:
    """The choice whose embedding is nearest to an answer's; the first of equally near ones.

    (TIFA, Hu et al. 2023.)
    """
    return choices[int(similarity.cosines(answer, choices).argmax())]


def opposite(answer: str) -> str | None:
    """`no` for yes and `yes` for no; None for any other answer."""
    return {"yes": "no", "no": "yes"}.get(answer.strip().lower())


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are the same, apart from case, spaces and a full stop at the end."""
    return _bare(one) == _bare(other)


def _bare(answer: str) -> str:
    return re.sub(r"\s", "", answer.lower()).rstrip(".")


Gate = Literal["none", "onehop", "recursive"]
"""What a question needs besides its own correct answer. `none`: nothing (TIFA). `onehop`: correct
answers to the questions it directly depends on, whatever those depend on (DSG, Cho et al. 2024,
released evaluation). `recursive`: that those count by this same rule (T2IScoreScore)."""
_RULES: dict[Gate, Rule] = {"none": "mean", "onehop": "dsg", "recursive": "recursive"}


@dataclass(frozen=True, slots=True)
class GatedScores:
    """The scores of P images, with what became of their answers."""

    scores: FloatArray  # shape (P,), the share of all questions that count, 0..1
    counts: BoolArray  # shape (P, Q), the correct answers whose gate is open
    valid: BoolArray  # shape (P, Q), whether the gate is open, however the question was answered


def gated_mean(asked: AskedQuestions, correct: BoolArray, gate: Gate) -> GatedScores:
    """The share of questions that count; one behind a closed gate stays in the denominator.

    `correct`: shape (P, Q), whether each answer about each of P images is correct.
    """
    n_images, n_questions = correct.shape
    answered = AnsweredQuestions(
        asked.graph,
        tuple(map(str, range(n_images))),
        np.repeat(np.arange(n_images), n_questions),
        np.tile(np.arange(n_questions), n_images),
        correct.ravel(),
    )
    counts = counted(answered, _RULES[gate]).reshape(correct.shape)
    valid = np.ones_like(counts)
    if gate != "none":
        standing = counts if gate == "recursive" else correct
        for child, parent in zip(asked.graph.child, asked.graph.parent, strict=True):
            valid[:, child] &= standing[:, parent]
    return GatedScores(counts.mean(axis=1, dtype=np.float64), counts, valid)


def mean_of_valid(values: FloatArray, valid: BoolArray) -> float:
    """The mean over the questions that were kept; NaN where none was.

    `values`: shape (Q,), what each question contributes; `valid`: shape (Q,), whether it was kept.
    """
    return float(values[valid].mean()) if valid.any() else float("nan")


def product(values: FloatArray) -> float:
    """The product over all questions; 1 where there are none (BVQA, T2I-CompBench).

    `values`: shape (Q,), in 0..1.
    """
    return float(np.prod(values))


_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Query:
    """What is put to the model."""

    prompt: str  # the words
    # answers whose probability is wanted; empty: the model answers freely
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model gave back."""

    text: str = ""  # its free answer
    # for each candidate, log p of each of its tokens
    logprobs: tuple[NDArray[np.float64], ...] = ()


class QuestionMetric(ABC):
    """How questions are put to a model, and how its replies become a score.

    All queries of a metric have candidates, or none has.
    """

    max_new_tokens: int = 16  # Length of a free answer

    @abstractmethod
    def queries(self, asked: AskedQuestions) -> list[Query]:
        """What is put to the model about an image of this prompt."""

    def verdicts(self, asked: AskedQuestions, replies: Sequence[Sequence[Reply]]) -> list[Verdict]:
        """The scores of the images of a prompt."""
        return [self.verdict(asked, of_image) for of_image in replies]

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """The score of one image of a prompt."""
        raise NotImplementedError

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


HYPOTHESIS = "{question} {answer}"  # Ours: the authors of Gecko do not give theirs


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


class QuestionScorer(SharedImageScorer):
    """Puts the questions of its prompts to an image, all in one call of the model."""

    def __init__(self, metric: QuestionMetric, model: AnswerModel, questions: QuestionFile) -> None:
        self._metric = metric
        self._model: AnswerModel = model
        self._questions = questions

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt of its own list, with all answers."""
        asked = [[self._questions.of(prompt) for prompt in of_image] for of_image in prompts]
        queries = [(query for one in its for query in self._queries(one)) for its in asked]
        replies = asked_once(self._ask, images, queries)
        verdicts: dict[tuple[int, int], Verdict] = {}
        for places in _by_prompt(asked).values():
            one = asked[places[0][0]][places[0][1]]
            found = self._verdicts(one, [replies[row] for row, _ in places])
            verdicts.update(zip(places, found, strict=True))
        return [
            [verdicts[row, column] for column in range(len(of_image))]
            for row, of_image in enumerate(asked)
        ]

    def score_elements(
        self, images: Sequence[Any], prompts: Sequence[str], elements: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each pair and element, the mean over the questions about it; NaN without any."""
        verdicts = self.score_texts(images, [[prompt] for prompt in prompts])
        return [
            _of_elements(self._questions.of(prompt), of_image[0], wanted)
            for prompt, of_image, wanted in zip(prompts, verdicts, elements, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the model does not read some question of a prompt to its end."""
        queries = [self._queries(self._questions.of(prompt)) for prompt in prompts]
        cut = self._model.truncated([query.prompt for several in queries for query in several])
        ends = np.cumsum([len(several) for several in queries])
        return [
            any(cut[end - len(several) : end]) for several, end in zip(queries, ends, strict=True)
        ]

    def _queries(self, asked: AskedQuestions) -> list[Query]:
        return self._metric.queries(asked) if asked.questions else []

    def _verdicts(
        self, asked: AskedQuestions, replies: Sequence[dict[Query, Reply]]
    ) -> list[Verdict]:
        if not asked.questions:
            return [self._metric.without_questions(asked)] * len(replies)
        queries = self._queries(asked)
        found = self._metric.verdicts(asked, [[given[q] for q in queries] for given in replies])
        return [_checked(verdict) for verdict in found]

    def _ask(self, images: Sequence[Any], queries: Sequence[Sequence[Query]]) -> list[list[Reply]]:
        prompts = [[query.prompt for query in of_image] for of_image in queries]
        kinds = {bool(query.candidates) for of_image in queries for query in of_image}
        if len(kinds) > 1:
            raise PlatformError("mixed_queries", "A metric asks freely and for probabilities.")
        if kinds == {False}:
            texts = self._model.generate(images, prompts, self._metric.max_new_tokens)
            return [[Reply(text=text) for text in of_image] for of_image in texts]
        candidates = [[query.candidates for query in of_image] for of_image in queries]
        logprobs = self._model.answer_logprobs(images, prompts, candidates)
        return [[Reply(logprobs=tuple(one)) for one in of_image] for of_image in logprobs]


def _by_prompt(asked: Sequence[Sequence[AskedQuestions]]) -> dict[str, list[tuple[int, int]]]:
    places: dict[str, list[tuple[int, int]]] = {}
    for row, of_image in enumerate(asked):
        for column, one in enumerate(of_image):
            places.setdefault(one.prompt, []).append((row, column))
    return places


def _checked(verdict: Verdict) -> Verdict:
    """A verdict with a problem named, where the model gave no number for some question."""
    lost = [a for a in verdict.answers if a.valid and not isfinite(a.value)]
    if not lost:
        return verdict
    problem = f"the model gave no number for question {lost[0].question_id} ({lost[0].question!r})"
    return Verdict(float("nan"), problem, verdict.answers)


def _of_elements(asked: AskedQuestions, verdict: Verdict, wanted: Sequence[str]) -> list[float]:
    by_id: dict[str, Answer] = {answer.question_id: answer for answer in verdict.answers}
    values: dict[str, list[float]] = {}
    for question in asked.questions:
        answer = by_id.get(question.question_id)
        # A question behind a closed gate contributes 0 (DSG); one that a filter took out has NaN.
        if answer is not None and isfinite(answer.value):
            values.setdefault(question.element.strip(), []).append(answer.value)
    return [float(np.mean(values.get(element.strip(), [np.nan]))) for element in wanted]
