"""Agreement of raters: Krippendorff's alpha, error consistency, one rater against the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.samples import blocks, counts_and_clusters, sum_by_cluster

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


# Both coefficients in every resample: sums over units, which are summed by cluster once.


_CACHED_CELLS = 1 << 20  # coincidences that are held at a time (8 MiB)


def resampled_alpha(
    ratings: ArrayLike, level: Level, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """`krippendorff_alpha` in each resample, shape (B,), from coincidences summed by cluster.

    NaN where no drawn unit has two ratings, or all its ratings are equal. Counts (B, C) and
    clusters (units,) as in `counts_and_clusters`.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings need shape (units, raters), not {table.shape}")
    drawn, index = counts_and_clusters(len(table), counts, clusters)
    values = np.unique(table[~np.isnan(table)])
    by_cluster = _coincidences_by_cluster(table, values, index, drawn.shape[1])
    alpha = np.full(drawn.shape[0], np.nan)
    for rows in blocks(np.arange(alpha.size), _CACHED_CELLS // max(values.size**2, 1)):
        found = np.asarray(drawn[rows] @ by_cluster).reshape(rows.size, values.size, values.size)
        alpha[rows] = _alpha(found, values, level)
    return alpha


def resampled_error_consistency(
    metric: ArrayLike, human: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """`error_consistency` of one or M labellings, (n,) or (n, M), in each resample: (B,) or (B, M).

    NaN where both are constant and equal, or nothing is drawn.
    """
    a, b = np.asarray(metric, bool), np.asarray(human, bool)
    if b.ndim != 1 or a.shape[:1] != b.shape or a.ndim > 2:
        raise ValueError(f"two labellings of one length are needed, not {a.shape} and {b.shape}")
    columns = a[:, None] if a.ndim == 1 else a
    drawn, index = counts_and_clusters(b.size, counts, clusters)
    n_metrics = columns.shape[1]
    moments = np.hstack([np.ones((b.size, 1)), b[:, None], columns, columns == b[:, None]])
    sums = drawn @ sum_by_cluster(moments.astype(np.float64), index, drawn.shape[1])
    total, q = sums[:, :1], sums[:, 1:2]
    p, agreed = sums[:, 2 : 2 + n_metrics], sums[:, 2 + n_metrics :]
    by_chance = p * q + (total - p) * (total - q)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = (agreed * total - by_chance) / (total**2 - by_chance)
    kappa = np.where(by_chance < total**2, kappa, np.nan)
    return kappa[:, 0] if a.ndim == 1 else kappa


def _coincidences_by_cluster(
    table: FloatArray, values: FloatArray, clusters: IntArray, n_clusters: int
) -> sparse.csr_array:
    """Coincidences (C, V * V): each unit of m ratings adds 1 / (m - 1) for each ordered pair."""
    given = ~np.isnan(table)
    sizes = given.sum(axis=1)
    codes = np.searchsorted(values, table)
    rows, cells, weights = [], [], []
    for first, second in permutations(range(table.shape[1]), 2):
        units = np.flatnonzero(given[:, first] & given[:, second])
        rows.append(clusters[units])
        cells.append(codes[units, first] * values.size + codes[units, second])
        weights.append(1.0 / (sizes[units] - 1.0))
    shape = (n_clusters, values.size**2)
    if not rows:
        return sparse.csr_array(shape)
    place = (np.concatenate(rows), np.concatenate(cells))
    return sparse.csr_array((np.concatenate(weights), place), shape=shape)


def _alpha(coincidences: FloatArray, values: FloatArray, level: Level) -> FloatArray:
    """Alpha, shape (b,), from coincidence matrices (b, V, V)."""
    marginals = coincidences.sum(axis=2)
    total = marginals.sum(axis=1)
    if level == "nominal":
        distance = 1.0 - np.eye(values.size)[None]
    else:
        # Ordinal: the ratings below a value and half of those at it, in place of the value.
        ranks = np.cumsum(marginals, axis=1) - marginals / 2.0
        place = ranks if level == "ordinal" else values[None]
        distance = (place[:, :, None] - place[:, None, :]) ** 2
    observed = (coincidences * distance).sum(axis=(1, 2))
    expected = (marginals[:, :, None] * marginals[:, None, :] * distance).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        alpha = 1.0 - observed * (total - 1.0) / expected
    # Sums of fractions leave a little where all drawn ratings are equal.
    varied = (marginals > 0).sum(axis=1) > 1
    return np.where(varied, alpha, np.nan)
