"""Samples of items in clusters and groups: checked arguments, moments, lists of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Clustered:
    """M samples, one that they are correlated with, and how often resamples draw each cluster."""

    x: FloatArray  # shape (n, M)
    y: FloatArray  # shape (n,)
    counts: FloatArray  # shape (B, C), for the clusters that hold items only
    clusters: IntArray  # shape (n,), column of `counts` of each item
    one_column: bool  # whether x came as shape (n,)

    @classmethod
    def of(
        cls, x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None
    ) -> Clustered:
        """Check the arguments of a resampled statistic."""
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if y.ndim != 1 or x.shape[:1] != y.shape or x.ndim > 2:
            raise ValueError(f"x {x.shape} and y {y.shape} do not fit")
        counts, index = counts_and_clusters(y.size, counts, clusters)
        used, index = np.unique(index, return_inverse=True)
        columns = x[:, None] if x.ndim == 1 else x
        return cls(columns, y, counts[:, used], index, one_column=x.ndim == 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Resamples and samples, (B, M)."""
        return self.counts.shape[0], self.x.shape[1]

    def item_counts(self, rows: IntArray) -> FloatArray:
        """Multiplicity of each item in some resamples, shape (len(rows), n)."""
        drawn: FloatArray = self.counts[rows][:, self.clusters]
        return drawn

    def shaped(self, values: FloatArray) -> FloatArray:
        """Values (B, M), or (B,) where x came as one sample."""
        return values[:, 0] if self.one_column else values


def counts_and_clusters(
    n_items: int, counts: ArrayLike, clusters: ArrayLike | None
) -> tuple[FloatArray, IntArray]:
    """Multiplicities (B, C), and the cluster of each of n items; None: item i is cluster i."""
    drawn = np.asarray(counts, np.float64)
    index = np.arange(n_items) if clusters is None else np.asarray(clusters, np.intp)
    if index.shape != (n_items,):
        raise ValueError(f"{n_items} items and clusters {index.shape} do not fit")
    if drawn.ndim != 2 or (index.size and index.max() >= drawn.shape[1]):
        raise ValueError(f"counts {drawn.shape} do not cover every cluster")
    return drawn, index


def matched(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Two samples as arrays of one shape (n,)."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"two samples of one length are needed, not {x.shape} and {y.shape}")
    return x, y


def labelled(
    scores: ArrayLike, labels: ArrayLike, clusters: ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Scores, labels and cluster indices as arrays of one shape (n,)."""
    x, y = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    index = np.asarray(clusters, np.intp)
    if x.ndim != 1 or x.shape != y.shape or index.shape != x.shape:
        raise ValueError(f"scores {x.shape}, labels {y.shape}, clusters {index.shape} differ")
    return x, y, index


def require_whole(counts: FloatArray) -> None:
    """Refuse multiplicities that are no multiplicities."""
    if counts.size and not (counts.min() >= 0.0 and (counts == np.rint(counts)).all()):
        raise ValueError("counts say how often a cluster is drawn: whole numbers of at least 0")


def blocks(rows: IntArray, size: int) -> Iterator[IntArray]:
    """Groups of at most `size` (at least one) resamples."""
    for start in range(0, rows.size, max(size, 1)):
        yield rows[start : start + max(size, 1)]


def spans(ends: IntArray, most: int) -> Iterator[slice]:
    """Ranges of rows with at most `most` entries together (one row at least).

    `ends` (n,), entries up to and including each row.
    """
    first = 0
    while first < ends.size:
        done = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, done + most, side="right")), first + 1)
        yield slice(first, last)
        first = last


def anchored(values: ArrayLike) -> FloatArray:
    """The values less one of them, the median.

    Scores that lie close together far from zero, such as saturated probabilities, lose their
    differences to rounding where a mean is taken; the difference of two close doubles is exact.
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


def membership(clusters: IntArray, n_clusters: int) -> scipy.sparse.csr_array:
    """Membership matrix of clusters, shape (C, n): times item values, it sums them by cluster."""
    items = np.arange(clusters.size)
    shape = (n_clusters, clusters.size)
    return scipy.sparse.csr_array((np.ones(clusters.size), (clusters, items)), shape=shape)


def sum_by_cluster(values: FloatArray, clusters: IntArray, n_clusters: int) -> FloatArray:
    """Sums (C, k) of item values (n, k) per cluster, for the cluster index (n,) of each item."""
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


_PAIRS = 1 << 20  # pairs that are listed at a time (8 MiB a side)


def pairs_within(bounds: IntArray, most: int | None = None) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of different positions in the same group, each once.

    `bounds` (G + 1,), ascending: group g holds the positions bounds[g] to bounds[g + 1] - 1;
    `most`: pairs at a time; None: a million.
    Yields: Lower and higher positions; the pairs of one lower position follow each other.
    """
    ends = np.repeat(bounds[1:], np.diff(bounds))
    partners = ends - np.arange(bounds[0], bounds[0] + ends.size) - 1
    done = np.cumsum(partners)
    for rows in spans(done, _PAIRS if most is None else most):
        own = partners[rows]
        low = np.repeat(np.arange(bounds[0] + rows.start, bounds[0] + rows.stop), own)
        before = done[rows.start] - partners[rows.start]
        offset = np.arange(low.size) - np.repeat(done[rows] - own - before, own)
        if low.size:
            yield low, low + 1 + offset
