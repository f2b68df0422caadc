"""TIFA and DSG: a model answers questions freely; the score is the share of right answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.arrays import BoolArray
from evaluator.scorers.answering import Reading
from evaluator.scorers.checkpoints import resolve
from evaluator.scorers.models.text_models import load_similarity
from evaluator.scorers.questions.files import AskedQuestions, Question
from evaluator.scorers.questions.loading import loaded, open_model, open_questions
from evaluator.scorers.questions.metric import (
    Gate,
    Parse,
    Query,
    QuestionMetric,
    Reply,
    Similarity,
    expects_yes_or_no,
    filled,
    gated_mean,
    literal_choice,
    nearest_choice,
    same_answer,
    yes_no_correct,
)
from evaluator.scorers.questions.table import table_of
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Answer, Verdict


class Options(Frozen):
    """What differs between rows."""

    template: str = "{question}"
    """What is put to the model; `{choices}` stands for the choices, joined by commas."""
    parse: Parse = "word"
    """When an answer to a yes/no question is right. Other questions with choices are right where
    the answer's choice, or the one nearest to it, is the expected one."""
    gate: Gate = "none"
    writer: str = "tifa"  # Of the questions it is defined with
    max_new_tokens: int = 16
    reading: Reading = Reading()


class QuestionAnswering(QuestionMetric):
    """The share of right answers, less those behind a closed gate.

    score = 1/Q * sum over questions q of [answer to q right] * [gate of q open]

    (TIFA, Hu et al. 2023, without gate; DSG, Cho et al. 2024.)
    """

    def __init__(self, options: Options, similarity: Similarity | None = None) -> None:
        self.max_new_tokens = options.max_new_tokens
        self._options = options
        self._similarity = similarity

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """Each question once."""
        return [
            Query(filled(self._options.template, question=q.question, choices=", ".join(q.choices)))
            for q in asked.questions
        ]

    def verdicts(self, asked: AskedQuestions, replies: Sequence[Sequence[Reply]]) -> list[Verdict]:
        """Right answers, gate, mean."""
        queries = self.queries(asked)
        texts = [[reply.text for reply in of_image] for of_image in replies]
        columns = [
            self._correct(question, [of_image[column] for of_image in texts])
            for column, question in enumerate(asked.questions)
        ]
        found = gated_mean(asked, np.stack(columns, axis=1), self._options.gate)
        return [
            Verdict(
                float(score),
                answers=tuple(
                    Answer(q.question_id, query.prompt, q.expected, raw, float(value), bool(valid))
                    for q, query, raw, value, valid in zip(
                        asked.questions, queries, of_image, counts, valids, strict=True
                    )
                ),
            )
            for score, of_image, counts, valids in zip(
                found.scores, texts, found.counts, found.valid, strict=True
            )
        ]

    def _correct(self, question: Question, answers: Sequence[str]) -> BoolArray:
        """Shape (P,): whether each of P answers to a question is right."""
        if _by_words(question, self._options.parse):
            return yes_no_correct(answers, [question.expected] * len(answers), self._options.parse)
        if not question.choices:
            return np.array([same_answer(answer, question.expected) for answer in answers], bool)
        chosen = [self._choice(answer, question.choices) for answer in answers]
        return np.array([same_answer(choice, question.expected) for choice in chosen], bool)

    def _choice(self, answer: str, choices: Sequence[str]) -> str:
        literal = literal_choice(answer, choices)
        if literal is not None:
            return literal
        if self._similarity is None:
            raise ValueError("questions with choices need a similarity of texts")
        return nearest_choice(answer, choices, self._similarity)


def _by_words(question: Question, parse: Parse) -> bool:
    """Whether an answer is looked through for `yes`."""
    if parse == "substring" and len(question.choices) == 2:
        return True  # as released: whatever the two choices are
    return expects_yes_or_no(question) and not (parse == "choice" and question.choices)


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """Load the VLM, the questions, and a sentence encoder where choices need one."""
    questions = open_questions(row, runtime, options.writer)
    if table_of(row, runtime):  # it is looked up by question, whatever a model would be told
        options = options.model_copy(update={"template": "{question}"})
    needed = any(q.choices and not _by_words(q, options.parse) for q in questions)
    extra: dict[str, str] = {}
    similarity: Similarity | None = None
    if needed:
        source = resolve(row, runtime, "similarity")
        similarity = load_similarity(source, row, runtime)
        extra["similarity"] = str(source)
    model = open_model(row, runtime, options.reading)
    return loaded(QuestionAnswering(options, similarity), model, questions, extra)


FAMILY = Family("question answering", Options, load)
