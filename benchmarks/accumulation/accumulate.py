"""From correct and wrong answers to one score per image.

Three rules, each that of a released metric. They differ in what becomes of a question when a
question it depends on was answered wrong: `Is the dog brown?` after `Is there a dog?` with no.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.accumulation.dependencies import QuestionGraph, question_keys
from benchmarks.arrays import BoolArray, IntArray
from benchmarks.errors import SubmitterError

Rule = Literal["mean", "dsg", "recursive"]
"""`mean`: the share of correct answers (TIFA, Hu et al. 2023). `dsg`: a question also needs a
correct answer to each question it directly depends on; their raw answers count, so what those
depend on does not matter (DSG, Cho et al. 2024, released evaluation). `recursive`: a question also
needs that every question it depends on counts by this same rule (T2IScoreScore, its DSG metrics)."""
Unanswered = Literal["zero", "empty"]
"""Score of an image without any answer: 0 (DSG, released evaluation) or none."""


@dataclass(frozen=True)
class AnsweredQuestions:
    """The answers to the questions about P images; A answers, each to another question or image.

    Every image has an answer to each question of its prompt, or none at all.

    Attributes:
        graph: the questions.
        pair_ids: ids of the images, length P.
        pair: shape (A,), position of the image in `pair_ids`.
        question: shape (A,), position of the question in the graph.
        correct: shape (A,), whether the answer is correct.
    """

    graph: QuestionGraph
    pair_ids: tuple[str, ...]
    pair: IntArray
    question: IntArray
    correct: BoolArray

    @classmethod
    def of(
        cls,
        answers: pd.DataFrame,
        correct: BoolArray,
        graph: QuestionGraph,
        pairs: pd.DataFrame,
        *,
        source: str = "The table of answers",
    ) -> AnsweredQuestions:
        """Join answers with questions.

        Args:
            answers: one row per answer, columns `pair_id`, `question_id` (str each).
            correct: shape (rows,), see `benchmarks.accumulation.correctness`.
            graph: the questions.
            pairs: the images, columns `pair_id` (unique) and `text_id` (str each); see
                `pairs_of` where only the answers name them.
            source: how messages name the table of answers.

        Raises:
            SubmitterError: `duplicate_pairs`, `unknown_pairs`, `bad_question_id`,
                `unknown_questions`, `duplicate_answers` or `unanswered_questions`, with the first
                offender.
        """
        texts = pairs.set_index("pair_id")["text_id"]
        if texts.index.has_duplicates:
            raise SubmitterError(
                "duplicate_pairs",
                f"Image {texts.index[texts.index.duplicated()][0]!r} stands twice among the pairs.",
                "Keep one row per pair_id.",
            )
        pair = texts.index.get_indexer(pd.Index(answers["pair_id"]))
        if (pair < 0).any():
            first = answers["pair_id"].iloc[int(np.flatnonzero(pair < 0)[0])]
            raise SubmitterError(
                "unknown_pairs",
                f"{source} has {int((pair < 0).sum())} answers about images that are not among "
                f"the pairs, the first is {first!r}.",
                "Add the image to the pairs, or remove its answers.",
            )
        found = answers[["pair_id", "question_id"]].assign(text_id=texts.to_numpy()[pair])
        keys = question_keys(found, source)
        answered = cls(
            graph,
            tuple(map(str, texts.index)),
            np.asarray(pair, np.intp),
            np.asarray(graph.keys.get_indexer(keys), np.intp),
            np.asarray(correct, bool),
        )
        answered._check(keys, texts, source)
        return answered

    def _check(self, keys: pd.MultiIndex, texts: pd.Series, source: str) -> None:
        unknown = np.flatnonzero(self.question < 0)
        if unknown.size:
            text, question = keys[unknown[0]]
            raise SubmitterError(
                "unknown_questions",
                f"{source} has {unknown.size} answers to questions that do not exist, the first "
                f"is question {question} of prompt {text!r}, about image "
                f"{self.pair_ids[self.pair[unknown[0]]]!r}.",
                "Answer the questions of the table of questions.",
            )
        twice = np.flatnonzero(pd.Series(self._codes).duplicated())
        if twice.size:
            raise SubmitterError(
                "duplicate_answers",
                f"{source} has {twice.size} answers to a question that was answered before, the "
                f"first is to question {keys[twice[0]][1]} about image "
                f"{self.pair_ids[self.pair[twice[0]]]!r}.",
                "Keep one answer per image and question.",
            )
        asked = pd.Series(self.graph.keys.get_level_values("text_id")).value_counts()
        expected = texts.map(asked).fillna(0).to_numpy(np.intp)
        short = np.flatnonzero((self.n_answers > 0) & (self.n_answers < expected))
        if short.size:
            raise SubmitterError(
                "unanswered_questions",
                f"{source} lacks answers about {short.size} images, the first is "
                f"{self.pair_ids[short[0]]!r} with {self.n_answers[short[0]]} of "
                f"{expected[short[0]]} questions answered.",
                "Answer all questions about an image; an answer may be empty, which is wrong.",
            )

    @property
    def n_answers(self) -> IntArray:
        """Shape (P,): answers about each image."""
        return np.bincount(self.pair, minlength=len(self.pair_ids))

    @property
    def _codes(self) -> IntArray:
        """One number per answer for its image and question."""
        codes: IntArray = self.pair * len(self.graph.keys) + self.question
        return codes

    def links(self) -> tuple[IntArray, IntArray]:
        """Dependencies between answers about one image: positions of the children and parents."""
        edges = pd.DataFrame({"question": self.graph.child, "parent": self.graph.parent})
        rows = pd.DataFrame({"question": self.question, "row": np.arange(self.question.size)})
        joined = rows.merge(edges, on="question")
        child = joined["row"].to_numpy(np.intp)
        codes = self._codes
        order = np.argsort(codes)
        wanted = self.pair[child] * len(self.graph.keys) + joined["parent"].to_numpy(np.intp)
        return child, order[np.searchsorted(codes, wanted, sorter=order)]


def pairs_of(answers: pd.DataFrame, *, source: str = "The table of answers") -> pd.DataFrame:
    """The images that have answers, with their prompts, in the order of the answers.

    Args:
        answers: columns `pair_id` and `text_id`.
        source: how the message names the table.

    Returns:
        Columns `pair_id` (unique) and `text_id`.

    Raises:
        SubmitterError: `several_prompts`, where answers about one image name several prompts.
    """
    pairs = answers[["pair_id", "text_id"]].drop_duplicates(ignore_index=True)
    twice = pairs["pair_id"].duplicated()
    if twice.any():
        raise SubmitterError(
            "several_prompts",
            f"{source} names several prompts for {int(twice.sum())} images, the first is "
            f"{pairs.loc[twice, 'pair_id'].iloc[0]!r}.",
            "Give each combination of image and prompt a pair_id of its own.",
        )
    return pairs


def counted(answered: AnsweredQuestions, rule: Rule) -> BoolArray:
    """Which answers count towards the score of their image.

    Args:
        answered: the answers.
        rule: see `Rule`.

    Returns:
        Shape (A,): the correct answers, less those that the rule does not count.

    Raises:
        SubmitterError: `cyclic_questions`, with rule `recursive` only: the others are defined
            where questions depend on each other.
    """
    counts = answered.correct.copy()
    if rule == "mean":
        return counts
    child, parent = answered.links()
    if rule == "dsg":
        counts[child[~answered.correct[parent]]] = False
        return counts
    depth = answered.graph.depth[answered.question[child]]
    for level in range(1, int(depth.max(initial=0)) + 1):
        at_level = depth == level
        counts[child[at_level & ~counts[parent]]] = False
    return counts


def image_scores(answered: AnsweredQuestions, rule: Rule, unanswered: Unanswered) -> pd.Series:
    """The share of an image's questions that count.

    Args:
        answered: the answers.
        rule: see `Rule`.
        unanswered: see `Unanswered`.

    Returns:
        Length P, index `pair_id` in the order of the pairs, named `score`: values in 0..1, NaN
        for images without answers if `unanswered` is `empty`.

    Raises:
        SubmitterError: `cyclic_questions`; see `counted`.
    """
    n_pairs, n_answers = len(answered.pair_ids), answered.n_answers
    correct = np.bincount(answered.pair, counted(answered, rule), minlength=n_pairs)
    nothing = 0.0 if unanswered == "zero" else np.nan
    scores = np.where(n_answers > 0, correct / np.maximum(n_answers, 1), nothing)
    return pd.Series(scores, index=pd.Index(answered.pair_ids, name="pair_id"), name="score")
