"""Decision threshold that maximises accuracy, searched in steps of 0.01."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import FloatArray, IntArray

STEPS_PER_UNIT = 100
MAX_SPAN = 100
"""Widest range of scores that is searched in steps of 0.01."""


@dataclass(frozen=True)
class Threshold:
    """A threshold and what it reaches: a prediction is positive iff score >= `value`."""

    value: float
    accuracy: float


def threshold_grid(scores: ArrayLike) -> FloatArray:
    """Thresholds in steps of 0.01 over 0..1, widened to whole numbers around the finite scores.

    `scores`: any shape; entries that are not finite are ignored.
    Returns: Ascending multiples of 0.01, each the double nearest to its decimal.
    """
    values = np.asarray(scores, np.float64)
    finite = values[np.isfinite(values)]
    low = math.floor(min(0.0, finite.min(initial=0.0)))
    high = math.ceil(max(1.0, finite.max(initial=1.0)))
    if high - low > MAX_SPAN:
        raise ValueError(
            f"the scores span {low}..{high}; steps of 0.01 are for spans up to {MAX_SPAN}"
        )
    grid: FloatArray = np.arange(low * STEPS_PER_UNIT, high * STEPS_PER_UNIT + 1) / STEPS_PER_UNIT
    return grid


def correct_by_cluster(
    scores: ArrayLike,
    positive: ArrayLike,
    clusters: ArrayLike,
    n_clusters: int,
    thresholds: FloatArray,
) -> FloatArray:
    """Right predictions of each cluster at each threshold.

    `scores` (n,); a missing score is NaN and always predicts negative; `positive` (n,), bool
    labels; `clusters` (n,), cluster index of each item; `thresholds` (K,), ascending.
    Returns: shape (C, K), number of items with (score >= threshold) == positive.
    """
    values = np.asarray(scores, np.float64)
    index = np.asarray(clusters, np.intp)
    is_positive = np.asarray(positive, bool)
    reached = np.searchsorted(thresholds, values, side="right")
    reached[np.isnan(values)] = 0  # searchsorted puts NaN above everything
    # `reached` thresholds call the item positive. Passing one more loses a positive, wins a negative.
    change = np.zeros((n_clusters, thresholds.size + 1))
    np.add.at(change, (index, reached), np.where(is_positive, -1.0, 1.0))
    positives = np.bincount(index, weights=is_positive, minlength=n_clusters)
    correct: FloatArray = positives[:, None] + np.cumsum(change, axis=1)[:, :-1]
    return correct


def reaching_by_cluster(
    scores: FloatArray, clusters: IntArray, n_clusters: int, thresholds: FloatArray
) -> FloatArray:
    """How many items of each cluster reach each threshold.

    `scores` (n,), not NaN, may be infinite; `clusters` (n,); `thresholds` (K,), ascending.
    Returns: shape (C, K), number of items with score >= threshold.
    """
    reached = np.searchsorted(thresholds, scores, side="right")
    width = thresholds.size + 1
    by_number = np.bincount(clusters * width + reached, minlength=n_clusters * width)
    passing = np.cumsum(by_number.reshape(n_clusters, width)[:, :0:-1], axis=1)[:, ::-1]
    return passing.astype(np.float64)


def best_index(correct: FloatArray) -> NDArray[np.intp]:
    """Position of the best threshold along the last axis, the smallest one on ties."""
    return np.asarray(np.argmax(correct, axis=-1), np.intp)


def best_threshold(scores: ArrayLike, positive: ArrayLike) -> Threshold:
    """The smallest 0.01-step threshold of highest accuracy on these data.

    `scores` (n,), n >= 1; NaN always predicts negative; `positive` (n,), bool labels.
    Returns: The threshold and its accuracy in 0..1.
    """
    values = np.asarray(scores, np.float64)
    if values.size == 0:
        raise ValueError("no threshold can be searched without scores")
    grid = threshold_grid(values)
    correct = correct_by_cluster(values, positive, np.zeros(values.size, np.intp), 1, grid)[0]
    best = int(best_index(correct))
    return Threshold(float(grid[best]), float(correct[best] / values.size))


def deal_folds(names: Sequence[str], n_folds: int) -> NDArray[np.intp]:
    """Folds 0..F-1, shape (C,), of nearly equal size that depend on the names alone.

    The names are distinct; their order does not matter.
    """
    by_hash = sorted(range(len(names)), key=lambda i: hashlib.sha256(names[i].encode()).digest())
    folds = np.empty(len(names), np.intp)
    folds[by_hash] = np.arange(len(names)) % n_folds
    return folds


def held_out_indices(
    correct: FloatArray,
    folds: NDArray[np.intp],
    searched: NDArray[np.intp],
    counts: FloatArray,
) -> NDArray[np.intp]:
    """For each fold, the threshold that is best on all other folds, in each resample.

    `correct` (C, K), right predictions of each cluster at each threshold; `folds` (C,), fold 0..F-1
    of each cluster; `searched` (F, 2), first and last threshold tried for each fold, as positions
    in K; `counts` (B, C), multiplicities of the clusters.
    Returns: shape (B, F), positions in K, the smallest one on ties.
    """
    total = counts @ correct
    best = np.empty((counts.shape[0], len(searched)), np.intp)
    for fold, (first, last) in enumerate(searched):
        own = folds == fold
        others = total - counts[:, own] @ correct[own]
        best[:, fold] = first + best_index(others[:, first : last + 1])
    return best
