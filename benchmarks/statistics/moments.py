"""Means, spreads and products of samples, weighted by how often each item is drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from benchmarks.arrays import BoolArray, FloatArray, IntArray


def anchored(values: ArrayLike) -> FloatArray:
    """The values less one of them, the median.

    Scores that lie close together far from zero, such as saturated probabilities, lose their
    differences to rounding where a mean is taken; the difference of two close doubles is exact.

    Args:
        values: shape (n,) or (n, M), finite.

    Returns:
        Same shape; each column has a zero in it.
    """
    found = np.asarray(values, np.float64)
    if not found.size:
        return found
    middle = len(found) // 2
    with np.errstate(over="ignore"):
        moved: FloatArray = found - np.partition(found, middle, axis=0)[middle]
    return np.where(np.isfinite(moved).all(axis=0), moved, found)


def unit_scaled(values: FloatArray) -> FloatArray:
    """Columns less their mean, over their largest deviation: keeps squares in range."""
    if not values.size:
        return values
    centred: FloatArray = values - values.mean(axis=0)
    scale = np.abs(centred).max(axis=0)
    return centred / np.where(scale > 0, scale, 1.0)


def membership(clusters: IntArray, n_clusters: int) -> sparse.csr_array:
    """Which items each cluster holds, shape (C, n): times item values, it sums them by cluster."""
    items = np.arange(clusters.size)
    shape = (n_clusters, clusters.size)
    return sparse.csr_array((np.ones(clusters.size), (clusters, items)), shape=shape)


def sum_by_cluster(values: FloatArray, clusters: IntArray, n_clusters: int) -> FloatArray:
    """Sums of item values per cluster.

    Args:
        values: shape (n, k).
        clusters: shape (n,), cluster index of each item.
        n_clusters: number C of clusters.

    Returns:
        Shape (C, k).
    """
    sums: FloatArray = membership(clusters, n_clusters) @ values
    return sums


def two_pass_pearson(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's r of x (n,) and y (n,) for weights (b, n), deviations from each row's own mean."""
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weights.sum(axis=1)
        x_dev = x - ((weights @ x) / total)[:, None]
        y_dev = y - ((weights @ y) / total)[:, None]
        x_norm = np.sqrt(np.einsum("bi,bi,bi->b", weights, x_dev, x_dev))
        y_norm = np.sqrt(np.einsum("bi,bi,bi->b", weights, y_dev, y_dev))
        # Each side is divided first: the product of two small norms could underflow.
        r = np.einsum("bi,bi,bi->b", weights, x_dev / x_norm[:, None], y_dev / y_norm[:, None])
    # A rounded mean leaves a constant side with deviations of 1e-17, so equality decides.
    undefined = _constant_rows(x, weights) | _constant_rows(y, weights)
    return np.where(undefined, np.nan, np.clip(r, -1.0, 1.0))


def ratio(product: FloatArray, x_square: FloatArray, y_square: FloatArray) -> FloatArray:
    """Correlation from its product sum and both sums of squares, NaN where a side has no spread."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = product / np.sqrt(x_square) / np.sqrt(y_square)
    return np.where((x_square > 0) & (y_square > 0), np.clip(found, -1.0, 1.0), np.nan)


def _constant_rows(values: FloatArray, weights: FloatArray) -> BoolArray:
    drawn = weights > 0
    low = np.where(drawn, values, np.inf).min(axis=1, initial=np.inf)
    high = np.where(drawn, values, -np.inf).max(axis=1, initial=-np.inf)
    return np.asarray(low >= high)
