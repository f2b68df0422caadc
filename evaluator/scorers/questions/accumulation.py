"""From what each question contributes to the score of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.accumulation.question_scores import AnsweredQuestions, Rule, counted
from benchmarks.arrays import BoolArray, FloatArray
from evaluator.scorers.questions.asked import AskedQuestions

Gate = Literal["none", "onehop", "recursive"]
"""What a question needs besides its own correct answer. `none`: nothing (TIFA). `onehop`: correct
answers to the questions it directly depends on, whatever those depend on (DSG, Cho et al. 2024,
released evaluation). `recursive`: that those count by this same rule (T2IScoreScore)."""
_RULES: dict[Gate, Rule] = {"none": "mean", "onehop": "dsg", "recursive": "recursive"}


@dataclass(frozen=True, slots=True)
class Gated:
    """The scores of P images, with what became of their answers.

    Attributes:
        scores: shape (P,), the share of all questions that count, 0..1.
        counts: shape (P, Q), the correct answers whose gate is open.
        valid: shape (P, Q), whether the gate is open, however the question was answered.
    """

    scores: FloatArray
    counts: BoolArray
    valid: BoolArray


def gated_mean(asked: AskedQuestions, correct: BoolArray, gate: Gate) -> Gated:
    """The share of questions that count; one behind a closed gate stays in the denominator.

    Args:
        asked: Q questions, at least one.
        correct: shape (P, Q), whether each answer about each of P images is correct.
        gate: see `Gate`.
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
    return Gated(counts.mean(axis=1, dtype=np.float64), counts, valid)


def mean_of_valid(values: FloatArray, valid: BoolArray) -> float:
    """The mean over the questions that were kept; NaN where none was.

    Args:
        values: shape (Q,), what each question contributes.
        valid: shape (Q,), whether it was kept.
    """
    return float(values[valid].mean()) if valid.any() else float("nan")


def product(values: FloatArray) -> float:
    """The product over all questions; 1 where there are none (BVQA, T2I-CompBench).

    Args:
        values: shape (Q,), in 0..1.
    """
    return float(np.prod(values))
