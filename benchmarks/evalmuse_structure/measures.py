"""Measures of the structure test: accuracies, recall of problems, and the search for the threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.schema import MeasureInfo

_SOURCE = "EvalMuse-40K, section 9.3, Tables 8 and 9"

MEASURES: dict[str, MeasureInfo] = {
    "accuracy": MeasureInfo.share(
        title="Accuracy",
        meaning="Mean of two shares: images with the problem that get a yes, and images without "
        "it that get a no, where P(Yes) above the threshold is a yes. The threshold is searched "
        "on these data (and again in each resample). The paper prints it by category; over all "
        "categories it is the same mean of the two shares that its search looks at.",
        chance=0.5,
        source=_SOURCE,
    ),
    "recall": MeasureInfo.share(
        title="Recall",
        meaning="Share of annotated problems, one question each, that get a yes at the threshold "
        "of the accuracy test. A metric that always says yes has 1.",
        source=_SOURCE,
    ),
    "f1": MeasureInfo.share(
        title="F1",
        meaning="Harmonic mean of the two shares behind the accuracy, over all categories: what "
        "the search for the threshold maximises.",
        source=_SOURCE,
    ),
    "threshold": MeasureInfo.share(
        in_steps=True,
        title="Threshold",
        meaning="P(Yes) above which an answer is taken as yes: the value in 0, 0.01, ..., 1 of "
        "highest F1 over all category questions, the smallest of several.",
        source=f"{_SOURCE}; that the smallest of several is taken is ours",
    ),
    "auc": MeasureInfo.share(
        title="AUC",
        meaning="How often an image with the problem gets a higher P(Yes) than one without it "
        "(half for a tie), over all pairs of them. Needs no threshold.",
        chance=0.5,
        source="a summary of ours",
    ),
}


# Search for the threshold, and area under the curve.


THRESHOLDS: FloatArray = np.arange(101) / 100.0
"""0, 0.01, ..., 1, each the double nearest to its decimal."""
_BLOCK_CELLS = 1 << 21


def yes_by_cluster(scores: ArrayLike, clusters: ArrayLike, n_clusters: int) -> FloatArray:
    """Questions of each cluster with a yes at each threshold.

    `scores` (n,): P(Yes); NaN is a no at every threshold. `clusters` (n,): cluster index of each
    question.

    Returns shape (C, 101): questions with score > threshold, strictly.
    """
    values = np.asarray(scores, np.float64)
    passed = np.searchsorted(THRESHOLDS, values, side="left")  # thresholds below the score
    passed[np.isnan(values)] = 0
    last = np.zeros((n_clusters, THRESHOLDS.size + 1))
    np.add.at(last, (np.asarray(clusters, np.intp), passed), 1.0)
    yes: FloatArray = last[:, :0:-1].cumsum(axis=1)[:, ::-1]
    return yes


def harmonic_mean(a: FloatArray, b: FloatArray) -> FloatArray:
    """2ab / (a + b), 0 where both are 0, NaN where one is undefined."""
    total = a + b
    with np.errstate(invalid="ignore"):
        mean: FloatArray = np.where(total == 0, 0.0, 2.0 * a * b / total)
    return mean


def best(f1: FloatArray) -> IntArray:
    """Position of the highest F1 along the last axis, the smallest threshold on ties.

    Rows without a defined F1 get 0; whoever uses them finds NaN there.
    """
    return np.asarray(np.argmax(np.where(np.isnan(f1), -1.0, f1), axis=-1), np.intp)


def auc(scores: ArrayLike, positive: ArrayLike, weights: ArrayLike) -> FloatArray:
    """Area under the ROC curve of weighted questions: P(positive > negative) + P(tie) / 2.

    `scores` (n,): NaN ranks below every number. `positive` (n,): bool. `weights` (B, n): how often
    each question is drawn.

    Returns shape (B,); NaN where no positive or no negative is drawn.
    """
    values = np.asarray(scores, np.float64)
    draws = np.asarray(weights, np.float64)
    if values.size == 0:
        return np.full(draws.shape[0], np.nan)
    ranked = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(ranked, kind="stable")
    _, starts = np.unique(ranked[order], return_index=True)
    is_positive = np.asarray(positive, bool)[order]
    areas = np.full(draws.shape[0], np.nan)
    size = max(_BLOCK_CELLS // max(values.size, 1), 1)
    for first in range(0, draws.shape[0], size):
        block = draws[first : first + size, order]
        above = np.add.reduceat(block * is_positive, starts, axis=1)
        below = np.add.reduceat(block * ~is_positive, starts, axis=1)
        lower = below.cumsum(axis=1) - below / 2.0
        with np.errstate(invalid="ignore", divide="ignore"):
            areas[first : first + size] = (
                (above * lower).sum(axis=1) / above.sum(axis=1) / below.sum(axis=1)
            )
    return areas
