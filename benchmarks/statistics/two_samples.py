"""Two samples compared: Kolmogorov-Smirnov's statistic and the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.samples import blocks, counts_and_clusters

_CACHED_CELLS = 1 << 19  # draws of items that are held at a time (4 MiB)


def ks_statistic(x: ArrayLike, second: ArrayLike) -> FloatArray:
    """Kolmogorov-Smirnov's D: the largest distance of two empirical distribution functions.

    `x` (n,) or (n, M), finite; `second` (n,), which items belong to the second sample.
    Returns: shape () or (M,), in 0..1; NaN where a sample is empty.
    """
    return np.asarray(resampled_ks(x, second, np.ones((1, np.size(second))))[0])


def auc(x: ArrayLike, second: ArrayLike) -> FloatArray:
    """Share of pairs in which the second sample's item is larger, ties counting one half.

    That is the area under the ROC curve, and Mann and Whitney's U over the number of pairs.
    Arguments and shape as in `ks_statistic`.
    """
    return np.asarray(resampled_auc(x, second, np.ones((1, np.size(second))))[0])


def resampled_ks(
    x: ArrayLike, second: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Kolmogorov-Smirnov's D in each resample.

    `x` (n,) or (n, M), finite; `second` (n,), which items belong to the second sample; `counts` (B,
    C), non-negative multiplicities of the clusters; `clusters` (n,), column of `counts` of each
    item; None: item i is cluster i.
    Returns: shape (B,) or (B, M), in 0..1; NaN where a resample leaves a sample empty.
    """
    return _resampled(_largest_gap, x, second, counts, clusters)


def resampled_auc(
    x: ArrayLike, second: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Area under the ROC curve in each resample, as `resampled_ks`."""
    return _resampled(_area, x, second, counts, clusters)


def _resampled(
    statistic: Callable[[FloatArray], FloatArray],
    x: ArrayLike,
    second: ArrayLike,
    counts: ArrayLike,
    clusters: ArrayLike | None,
) -> FloatArray:
    """A statistic of both samples' shares up to each distinct value, shape (2, b, E), by resample."""
    columns, members, drawn, index = _checked(x, second, counts, clusters)
    found = np.full((drawn.shape[0], columns.shape[1]), np.nan)
    for metric, column in enumerate(columns.T):
        order, ends = _ascending(column)
        for rows in blocks(np.arange(found.shape[0]), _CACHED_CELLS // max(order.size, 1)):
            below, totals = _shares(drawn[rows][:, index[order]], members[order])
            found[rows, metric] = np.where(totals > 0, statistic(below[:, :, ends]), np.nan)
    return found[:, 0] if np.ndim(x) == 1 else found


def _largest_gap(shares: FloatArray) -> FloatArray:
    gap: FloatArray = np.abs(shares[0] - shares[1]).max(axis=1, initial=0.0)
    return gap


def _area(shares: FloatArray) -> FloatArray:
    """Area under the curve of the shares, by trapezia.

    Over the runs of equal values: what the second sample holds there, times the first sample
    below it and half of the first at it.
    """
    first, later = shares
    before = np.concatenate([np.zeros((len(first), 1)), first[:, :-1]], axis=1)
    step = np.diff(later, axis=1, prepend=0.0)
    area: FloatArray = np.einsum("be,be->b", step, (before + first) / 2.0)
    return area


def _checked(
    x: ArrayLike, second: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None
) -> tuple[FloatArray, BoolArray, FloatArray, IntArray]:
    columns, members = np.asarray(x, np.float64), np.asarray(second, bool)
    if members.ndim != 1 or columns.shape[:1] != members.shape or columns.ndim > 2:
        raise ValueError(f"x {columns.shape} and samples {members.shape} do not fit")
    drawn, index = counts_and_clusters(members.size, counts, clusters)
    return columns[:, None] if columns.ndim == 1 else columns, members, drawn, index


def _ascending(values: FloatArray) -> tuple[IntArray, IntArray]:
    """The order of a sample and the last position of each run of equal values."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    return order, np.flatnonzero(
        np.append(in_order[1:] != in_order[:-1], [True] * (values.size > 0))
    )


def _shares(drawn: FloatArray, second: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Shares of both samples' draws up to each item, (2, b, n), and the product of their sizes."""
    below = np.cumsum(np.stack([drawn * ~second, drawn * second]), axis=2)
    totals = below[:, :, -1:] if below.shape[2] else np.zeros((2, drawn.shape[0], 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return below / totals, np.asarray(totals[0, :, 0] * totals[1, :, 0])
