"""Agreement of raters: Krippendorff's alpha, error consistency, one rater against the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray

Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: ArrayLike, level: Level) -> float:
    """Krippendorff's alpha from the coincidence matrix (Gecko, section on annotator agreement).

    `ratings` (units, raters), numbers or number codes; NaN where a rater gave none. Units with
    fewer than two ratings are left out; `level`: `nominal` (equal or not), `ordinal` (by rank
    distance) or `interval` (by value).
    Returns: 1 for perfect agreement, 0 for agreement by chance; NaN where no unit has two ratings
    or all ratings are equal.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings need shape (units, raters), not {table.shape}")
    values = np.unique(table[~np.isnan(table)])
    coincidences = _coincidences(table, values)
    marginals = coincidences.sum(axis=1)
    total = marginals.sum()
    if total == 0:
        return math.nan
    distance = _distances(values, marginals, level)
    observed = (coincidences * distance).sum() / total
    expected = (np.outer(marginals, marginals) * distance).sum() / (total * (total - 1.0))
    return float(1.0 - observed / expected) if expected > 0 else math.nan


def error_consistency(metric: ArrayLike, human: ArrayLike) -> float:
    """Agreement of two binary labellings beyond chance (Gecko, word level: Cohen's kappa).

    `metric` (n,), 0 or 1 (grounded); `human` (n,), 0 or 1.
    Returns: kappa = (observed - expected) / (1 - expected), at most 1; NaN where both labellings
    are constant and equal, or n = 0.
    """
    a, b = np.asarray(metric, bool), np.asarray(human, bool)
    if a.shape != b.shape:
        raise ValueError(f"two labellings of one length are needed, not {a.shape} and {b.shape}")
    if a.size == 0:
        return math.nan
    p, q = a.mean(), b.mean()
    expected = p * q + (1.0 - p) * (1.0 - q)
    if expected >= 1.0:
        return math.nan
    return float(((a == b).mean() - expected) / (1.0 - expected))


def _coincidences(table: FloatArray, values: FloatArray) -> FloatArray:
    """Each unit of m >= 2 ratings adds 1 / (m - 1) for every ordered pair of its ratings."""
    counts = (table[:, :, None] == values).sum(axis=1).astype(np.float64)
    sizes = counts.sum(axis=1)
    counts, sizes = counts[sizes >= 2], sizes[sizes >= 2]
    weights = 1.0 / (sizes - 1.0)
    coincidences: FloatArray = (counts * weights[:, None]).T @ counts
    coincidences -= np.diag(counts.T @ weights)  # a rating makes no pair with itself
    return coincidences


def _distances(values: FloatArray, marginals: FloatArray, level: Level) -> FloatArray:
    """Distance of each two values; ordinal: ratings between them, half of each end counted."""
    if level == "nominal":
        return np.asarray(values[:, None] != values, np.float64)
    middle = np.cumsum(marginals) - marginals / 2.0
    place = middle if level == "ordinal" else values
    squared: FloatArray = (place[:, None] - place) ** 2
    return squared


def one_against_the_others(
    ratings: ArrayLike, agreement: Callable[[FloatArray, FloatArray], float]
) -> FloatArray:
    """Each column of ratings in turn as a metric, the mean of the other columns as the labels.

    `ratings` (units, R), R >= 2; NaN where a unit has fewer ratings than others. A unit counts for
    a column where it has that rating and another one; `agreement`: of scores with labels, both of
    shape (n,) and finite: the measure of a board.
    Returns: shape (R,), in the unit of `agreement`.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"ratings need shape (units, 2 or more), not {table.shape}")
    return np.array([_one(table, column, agreement) for column in range(table.shape[1])])


def _one(
    table: FloatArray, column: int, agreement: Callable[[FloatArray, FloatArray], float]
) -> float:
    one, others = table[:, column], np.delete(table, column, axis=1)
    rated = np.isfinite(one) & np.isfinite(others).any(axis=1)
    return agreement(one[rated], np.nanmean(others[rated], axis=1))
