"""Pearson's r in every resample of clusters, from moments that are summed by cluster once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray
from benchmarks.statistics.clustered import Clustered, blocks
from benchmarks.statistics.moments import (
    anchored,
    sum_by_cluster,
    two_pass_pearson,
    unit_scaled,
)

_CACHED_CELLS = 1 << 17  # cells of a matrix of weights by item (1 MiB): stays in the cache
_CANCELLATION = 1e-3  # below this share of the mean square, a variance is computed in two passes


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
    work = Clustered.of(anchored(x), anchored(y), counts, clusters)
    n_metrics = work.x.shape[1]
    x_unit, y_unit = unit_scaled(work.x), unit_scaled(work.y[:, None])
    moments = np.hstack(
        [np.ones_like(y_unit), y_unit, y_unit**2, x_unit, x_unit**2, x_unit * y_unit]
    )
    sums = work.counts @ sum_by_cluster(moments, work.clusters, work.counts.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[:, 1:] / sums[:, :1]
        y_mean, y_square = means[:, :1], means[:, 1:2]
        x_mean, x_square, product = np.split(means[:, 2:], [n_metrics, 2 * n_metrics], axis=1)
        x_var, y_var = x_square - x_mean**2, y_square - y_mean**2
        r: FloatArray = (product - x_mean * y_mean) / np.sqrt(x_var * y_var)
    stable = (x_var > _CANCELLATION * x_square) & (y_var > _CANCELLATION * y_square)
    for metric in range(n_metrics):
        doubtful = np.flatnonzero(~stable[:, metric])
        for rows in blocks(doubtful, max(_CACHED_CELLS // max(work.y.size, 1), 8)):
            r[rows, metric] = two_pass_pearson(work.x[:, metric], work.y, work.item_counts(rows))
    return work.shaped(np.clip(r, -1.0, 1.0))
