"""Pearson, Spearman and Kendall correlation, of a sample and of all its bootstrap resamples.

A resample is a vector of multiplicities: how often each cluster of items was drawn. The
`resampled_*` functions take the multiplicities of B resamples and give what the plain coefficient
would be on each physically repeated sample, without repeating or sorting anything again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats

from benchmarks.arrays import FloatArray, IntArray

_CACHED_CELLS = 1 << 17  # cells of a work matrix (1 MiB of float64): stays in the cache
_SIGN_CELLS = 1 << 23  # cells of a block of pair signs (8 MiB of int8)
_CANCELLATION = 1e-3  # below this share of the mean square, a variance is computed in two passes


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's r of two samples.

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.

    Returns:
        A value in -1..1; NaN where a side is constant or n < 2.
    """
    x, y = _sample(x, y)
    return float(_two_pass_pearson(anchored(x), anchored(y), np.ones((1, x.size)))[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho: Pearson's r of the ranks, equal values sharing their average rank.

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.

    Returns:
        A value in -1..1; NaN where a side is constant or n < 2.
    """
    x, y = _sample(x, y)
    return pearson(stats.rankdata(x), stats.rankdata(y))


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b, which corrects for ties on either side (Kendall 1945).

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.

    Returns:
        A value in -1..1; NaN where a side is constant or n < 2.
    """
    x, y = _sample(x, y)
    if x.size < 2 or _is_constant(x) or _is_constant(y):
        return math.nan
    return float(stats.kendalltau(x, y).statistic)


def resampled_pearson(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Pearson's r in each resample, from weighted sums of products per cluster.

    Args:
        x: shape (n,) or (n, M), finite; M samples are correlated with the same y.
        y: shape (n,), finite.
        counts: shape (B, C), non-negative multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item; None: item i is cluster i.

    Returns:
        Shape (B,) or (B, M); NaN where a side is constant in the resample.

    Raises:
        ValueError: shapes do not fit.
    """
    work = _Resampling.of(anchored(x), anchored(y), counts, clusters)
    n_metrics = work.x.shape[1]
    x_unit, y_unit = _unit(work.x), _unit(work.y[:, None])
    moments = np.hstack(
        [np.ones_like(y_unit), y_unit, y_unit**2, x_unit, x_unit**2, x_unit * y_unit]
    )
    sums = work.counts @ work.sum_by_cluster(moments)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[:, 1:] / sums[:, :1]
        y_mean, y_square = means[:, :1], means[:, 1:2]
        x_mean, x_square, product = np.split(means[:, 2:], [n_metrics, 2 * n_metrics], axis=1)
        x_var, y_var = x_square - x_mean**2, y_square - y_mean**2
        r: FloatArray = (product - x_mean * y_mean) / np.sqrt(x_var * y_var)
    stable = (x_var > _CANCELLATION * x_square) & (y_var > _CANCELLATION * y_square)
    for metric in range(n_metrics):
        for rows in _blocks(np.flatnonzero(~stable[:, metric]), work.y.size):
            r[rows, metric] = _two_pass_pearson(work.x[:, metric], work.y, work.item_counts(rows))
    return work.shaped(np.clip(r, -1.0, 1.0))


def resampled_spearman(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Spearman's rho in each resample: average ranks of the repeated sample from one fixed sort.

    An item drawn w times is w equal values, so a run of ties that starts after c draws and holds
    t draws has the average rank c + (t + 1) / 2. All sums are of half-integers: exact.

    Args:
        x: shape (n,) or (n, M), finite; M samples are correlated with the same y.
        y: shape (n,), finite.
        counts: shape (B, C), non-negative whole multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item; None: item i is cluster i.

    Returns:
        Shape (B,) or (B, M); NaN where a side is constant in the resample.

    Raises:
        ValueError: shapes do not fit.
    """
    work = _Resampling.of(x, y, counts, clusters)
    rho = np.full((work.counts.shape[0], work.x.shape[1]), np.nan)
    y_runs = _TieRuns.of(work.y)
    x_runs = [_TieRuns.of(column) for column in work.x.T]
    for rows in _blocks(np.arange(work.counts.shape[0]), work.y.size):
        drawn = work.item_counts(rows).T.copy()
        y_ranks, y_square = y_runs.centred_ranks(drawn)
        weighted = drawn * y_ranks
        for metric, runs in enumerate(x_runs):
            x_ranks, x_square = runs.centred_ranks(drawn)
            product = np.einsum("ib,ib->b", weighted, x_ranks)
            rho[rows, metric] = _ratio(product, x_square, y_square)
    return work.shaped(np.clip(rho, -1.0, 1.0))


def resampled_kendall(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Kendall's tau-b in each resample, as a quadratic form of the multiplicities.

    Concordant minus discordant pairs are w' A w / 2 with A the product of pair signs, which is
    summed to clusters first; blocks of clusters bound the memory.

    Args:
        x: shape (n,) or (n, M), finite; M samples are correlated with the same y.
        y: shape (n,), finite.
        counts: shape (B, C), non-negative whole multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item; None: item i is cluster i.

    Returns:
        Shape (B,) or (B, M); NaN where a side is constant in the resample.

    Raises:
        ValueError: shapes do not fit.
    """
    work = _Resampling.of(x, y, counts, clusters).sorted_by_cluster()
    y_untied = _untied_pairs(work.y, work)
    tau = np.full((work.counts.shape[0], work.x.shape[1]), np.nan)
    for metric, column in enumerate(work.x.T):
        excess = _concordance_excess(_dense_ranks(column), _dense_ranks(work.y), work)
        tau[:, metric] = _ratio(excess, _untied_pairs(column, work), y_untied)
    return work.shaped(np.clip(tau, -1.0, 1.0))


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


def sum_by_cluster(values: FloatArray, clusters: IntArray, n_clusters: int) -> FloatArray:
    """Sums of item values per cluster.

    Args:
        values: shape (n, k).
        clusters: shape (n,), cluster index of each item.
        n_clusters: number C of clusters.

    Returns:
        Shape (C, k).
    """
    items = np.arange(clusters.size)
    membership = sparse.csr_array(
        (np.ones(clusters.size), (clusters, items)), shape=(n_clusters, clusters.size)
    )
    sums: FloatArray = membership @ values
    return sums


@dataclass(frozen=True)
class _Resampling:
    """Checked arguments: x (n, M), y (n,), counts (B, C), clusters (n,)."""

    x: FloatArray
    y: FloatArray
    counts: FloatArray
    clusters: IntArray
    one_column: bool

    @classmethod
    def of(
        cls, x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None
    ) -> _Resampling:
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        counts = np.asarray(counts, np.float64)
        index = np.arange(y.size) if clusters is None else np.asarray(clusters, np.intp)
        if y.ndim != 1 or x.shape[:1] != y.shape or index.shape != y.shape or x.ndim > 2:
            raise ValueError(f"x {x.shape}, y {y.shape} and clusters {index.shape} do not fit")
        if counts.ndim != 2 or (index.size and index.max() >= counts.shape[1]):
            raise ValueError(f"counts {counts.shape} do not cover every cluster")
        used, index = np.unique(index, return_inverse=True)
        columns = x[:, None] if x.ndim == 1 else x
        return cls(columns, y, counts[:, used], index, one_column=x.ndim == 1)

    def sorted_by_cluster(self) -> _Resampling:
        order = np.argsort(self.clusters, kind="stable")
        return _Resampling(
            self.x[order], self.y[order], self.counts, self.clusters[order], self.one_column
        )

    def item_counts(self, rows: IntArray) -> FloatArray:
        """Multiplicity of each item in some resamples, shape (len(rows), n)."""
        drawn: FloatArray = self.counts[rows][:, self.clusters]
        return drawn

    def sum_by_cluster(self, values: FloatArray) -> FloatArray:
        """Sums of item values (n, k) per cluster, shape (C, k)."""
        return sum_by_cluster(values, self.clusters, self.counts.shape[1])

    def shaped(self, values: FloatArray) -> FloatArray:
        return values[:, 0] if self.one_column else values


@dataclass(frozen=True)
class _TieRuns:
    """A fixed ascending order of a sample and its runs of equal values."""

    order: IntArray
    starts: IntArray
    run_of_item: IntArray

    @classmethod
    def of(cls, values: FloatArray) -> _TieRuns:
        order = np.argsort(values, kind="stable")
        _, starts, run_of_item = np.unique(values, return_index=True, return_inverse=True)
        starts = np.searchsorted(values[order], values[starts])
        return cls(order, starts, run_of_item)

    def run_counts(self, drawn: FloatArray) -> FloatArray:
        """Draws in each run, shape (runs, b), from the draws of each item, shape (n, b)."""
        in_order: FloatArray = drawn[self.order]
        if self.starts.size in (0, self.order.size):
            return in_order
        totals: FloatArray = np.add.reduceat(in_order, self.starts, axis=0)
        return totals

    def centred_ranks(self, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Average ranks less their mean, shape (n, b), and their sum of squares, shape (b,)."""
        totals = self.run_counts(drawn)
        ranks = np.cumsum(totals, axis=0)
        ranks -= (totals + ranks[-1:]) / 2.0
        square = np.einsum("rb,rb,rb->b", totals, ranks, ranks)
        return ranks[self.run_of_item], square


def _sample(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"two samples of one length are needed, not {x.shape} and {y.shape}")
    return x, y


def _is_constant(values: FloatArray) -> bool:
    return bool((values == values[0]).all())


def _unit(values: FloatArray) -> FloatArray:
    """Columns less their mean, over their largest deviation: keeps squares in range."""
    if not values.size:
        return values
    centred: FloatArray = values - values.mean(axis=0)
    scale = np.abs(centred).max(axis=0)
    return centred / np.where(scale > 0, scale, 1.0)


def _blocks(rows: IntArray, n_items: int) -> Iterator[IntArray]:
    """Groups of resamples so small that a (rows, items) matrix stays in the cache."""
    size = max(_CACHED_CELLS // max(n_items, 1), 8)
    for start in range(0, rows.size, size):
        yield rows[start : start + size]


def _two_pass_pearson(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's r for weights (b, n), deviations taken from each row's own mean."""
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


def _constant_rows(values: FloatArray, weights: FloatArray) -> NDArray[np.bool_]:
    drawn = weights > 0
    low = np.where(drawn, values, np.inf).min(axis=1, initial=np.inf)
    high = np.where(drawn, values, -np.inf).max(axis=1, initial=-np.inf)
    return np.asarray(low >= high)


def _ratio(product: FloatArray, x_square: FloatArray, y_square: FloatArray) -> FloatArray:
    """Correlation from its product sum and both sums of squares, NaN where a side has no spread."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = product / np.sqrt(x_square) / np.sqrt(y_square)
    return np.where((x_square > 0) & (y_square > 0), ratio, np.nan)


def _dense_ranks(values: FloatArray) -> NDArray[np.int32]:
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def _untied_pairs(values: FloatArray, work: _Resampling) -> FloatArray:
    """Pairs of draws that differ in value, shape (B,): N(N-1)/2 less the pairs within ties."""
    runs = _TieRuns.of(values)
    untied = np.zeros(work.counts.shape[0])
    for rows in _blocks(np.arange(untied.size), values.size):
        totals = runs.run_counts(work.item_counts(rows).T)
        untied[rows] = (totals.sum(axis=0) ** 2 - (totals**2).sum(axis=0)) / 2.0
    return untied


def _concordance_excess(
    x: NDArray[np.int32], y: NDArray[np.int32], work: _Resampling
) -> FloatArray:
    """Concordant minus discordant pairs in each resample, shape (B,); items lie by cluster."""
    n_clusters = work.counts.shape[1]
    bounds = np.searchsorted(work.clusters, np.arange(n_clusters + 1))
    excess = np.zeros(work.counts.shape[0])
    for first, last in _cluster_blocks(bounds, max(_SIGN_CELLS // max(x.size, 1), 1)):
        items = slice(bounds[first], bounds[last])
        signs = _signs(x[items], x) * _signs(y[items], y)
        by_column = np.add.reduceat(signs, bounds[:-1], axis=1, dtype=np.int32)
        by_block = np.add.reduceat(by_column, bounds[first:last] - bounds[first], axis=0)
        partners = work.counts @ by_block.T.astype(np.float64)
        excess += np.einsum("bc,bc->b", work.counts[:, first:last], partners) / 2.0
    return excess


def _cluster_blocks(bounds: IntArray, max_items: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole clusters of at most `max_items` items (one cluster at least)."""
    first, n_clusters = 0, bounds.size - 1
    while first < n_clusters:
        last = int(np.searchsorted(bounds, bounds[first] + max_items, side="right")) - 1
        last = min(max(last, first + 1), n_clusters)
        yield first, last
        first = last


def _signs(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int8]:
    above, below = a[:, None] > b[None, :], a[:, None] < b[None, :]
    return above.view(np.int8) - below.view(np.int8)
