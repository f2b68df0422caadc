"""Agreement between raters in every resample of clusters of rated units.

Both coefficients are made of sums over units, which are summed by cluster once; a resample is then
a product with its multiplicities. A unit that is drawn twice counts as two units.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.clustered import blocks
from benchmarks.statistics.moments import sum_by_cluster
from benchmarks.statistics.raters import Level

_CACHED_CELLS = 1 << 20  # coincidences that are held at a time (8 MiB)


def resampled_alpha(
    ratings: ArrayLike, level: Level, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Krippendorff's alpha in each resample, from coincidences summed by cluster.

    Args:
        ratings: shape (units, raters), numbers or number codes; NaN where a rater gave none.
            Units with fewer than two ratings are left out.
        level: `nominal` (equal or not), `ordinal` (by rank distance) or `interval` (by value).
        counts: shape (B, C), non-negative multiplicities of the clusters.
        clusters: shape (units,), column of `counts` of each unit; None: unit i is cluster i.

    Returns:
        Shape (B,), as `krippendorff_alpha` of the repeated units; NaN where no drawn unit has two
        ratings, or all its ratings are equal.

    Raises:
        ValueError: shapes do not fit.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings need shape (units, raters), not {table.shape}")
    drawn, index = _drawn(len(table), counts, clusters)
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
    """Cohen's kappa of binary labellings in each resample.

    Args:
        metric: shape (n,) or (n, M), 0 or 1 (grounded); M labellings.
        human: shape (n,), 0 or 1.
        counts: shape (B, C), non-negative multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item; None: item i is cluster i.

    Returns:
        Shape (B,) or (B, M), as `error_consistency` of the repeated items; NaN where both are
        constant and equal, or nothing is drawn.

    Raises:
        ValueError: shapes do not fit.
    """
    a, b = np.asarray(metric, bool), np.asarray(human, bool)
    if b.ndim != 1 or a.shape[:1] != b.shape or a.ndim > 2:
        raise ValueError(f"two labellings of one length are needed, not {a.shape} and {b.shape}")
    columns = a[:, None] if a.ndim == 1 else a
    drawn, index = _drawn(b.size, counts, clusters)
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


def _drawn(
    n_items: int, counts: ArrayLike, clusters: ArrayLike | None
) -> tuple[FloatArray, IntArray]:
    drawn = np.asarray(counts, np.float64)
    index = np.arange(n_items) if clusters is None else np.asarray(clusters, np.intp)
    if index.shape != (n_items,):
        raise ValueError(f"{n_items} items and clusters {index.shape} do not fit")
    if drawn.ndim != 2 or (index.size and index.max() >= drawn.shape[1]):
        raise ValueError(f"counts {drawn.shape} do not cover every cluster")
    return drawn, index


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
