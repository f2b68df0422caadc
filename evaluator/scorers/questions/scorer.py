"""The scorer behind all metrics that ask questions: it looks them up, asks, and keeps the answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import AnswerModel
from evaluator.scorers.pairs import pair_scores
from evaluator.scorers.questions.asked import AskedQuestions
from evaluator.scorers.questions.file import QuestionFile
from evaluator.scorers.questions.metric import Query, QuestionMetric, Reply
from evaluator.scoring.contract import Answer, Verdict


class QuestionScorer:
    """Puts the questions of its prompts to an image, all in one call of the model.

    Args:
        metric: what is asked, and how it is counted.
        model: who answers.
        questions: by prompt. A prompt that is not there has no score.
    """

    def __init__(self, metric: QuestionMetric, model: AnswerModel, questions: QuestionFile) -> None:
        self._metric = metric
        self._model = model
        self._questions = questions

    def prepare(self, image: Image.Image) -> Any:
        """What the model takes in place of the image."""
        return self._model.prepare(image)

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        """One score per pair; NaN where the prompt has no questions, or no answer counts."""
        return pair_scores(self, images, prompts)

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt of its own list, with all answers."""
        asked = [[self._questions.of(prompt) for prompt in of_image] for of_image in prompts]
        replies = self._ask(images, asked)
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
        self,
        images: Sequence[Any],
        prompts: Sequence[str],
        elements: Sequence[Sequence[str]],
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

    def _ask(
        self, images: Sequence[Any], asked: Sequence[Sequence[AskedQuestions]]
    ) -> list[dict[Query, Reply]]:
        """For each image, the reply to each query; what two prompts have in common is put once."""
        wanted = [
            list(dict.fromkeys(query for one in of_image for query in self._queries(one)))
            for of_image in asked
        ]
        rows = [row for row, queries in enumerate(wanted) if queries]
        given = self._call([images[row] for row in rows], [wanted[row] for row in rows])
        replies: list[dict[Query, Reply]] = [{} for _ in wanted]
        for row, of_image in zip(rows, given, strict=True):
            replies[row] = dict(zip(wanted[row], of_image, strict=True))
        return replies

    def _call(self, images: Sequence[Any], queries: Sequence[Sequence[Query]]) -> list[list[Reply]]:
        if not queries:
            return []
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


def _by_prompt(
    asked: Sequence[Sequence[AskedQuestions]],
) -> dict[str, list[tuple[int, int]]]:
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
