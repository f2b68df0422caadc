"""Borda's count over benchmarks: how many others a metric beats, not by how much.

On a benchmark with n metrics each gets a point for every other one it beats and half a point for
every one it ties with (Borda 1784; Black 1976, Partial justification of the Borda count, for ties;
over benchmarks: Colombo et al. 2022, What are the best systems?, arXiv:2202.03799).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.arrays import FloatArray
from leaderboard.ranking.draw_ranks import draw_ranks


def borda_points(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points of the metrics of one benchmark, in the sample or in each resample.

    Args:
        values: shape (n, D), higher is better, one column per draw; a metric that is undefined
            in a draw (NaN) takes part in no comparison there.

    Returns:
        Points, shape (n, D), in 0..n - 1, NaN where undefined; and the number of others that
        each defined metric meets, shape (D,).
    """
    there = np.isfinite(values)
    absent = (~there).sum(axis=0)
    ranks = draw_ranks(np.where(there, values, -np.inf))
    points = (ranks.low + ranks.high) / 2.0 - 1.0 - absent
    return np.where(there, points, np.nan), np.maximum(there.sum(axis=0) - 1.0, 0.0)


def borda_share(
    points: Sequence[FloatArray], met: Sequence[FloatArray], weights: FloatArray
) -> FloatArray:
    """Points over comparisons: share = sum_k w_k points_k / sum_k w_k met_k.

    Args:
        points: per benchmark, shape (M, D); 0 for a metric that the benchmark lacks.
        met: per benchmark, how many others each metric of it meets, shape (D,).
        weights: shape (M, K), weight of each benchmark for each metric; 0 where it lacks it.

    Returns:
        Shape (M, D), in 0..1; NaN for a metric that meets nobody.
    """
    compared = weights @ np.stack(met)
    gained = sum_weighted(points, weights.max(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        share: FloatArray = gained / compared
    return share


def sum_weighted(parts: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Sum of arrays of one shape with a weight each; a part of weight 0 is not looked at."""
    total, product = np.zeros_like(parts[0]), np.empty_like(parts[0])
    for part, weight in zip(parts, weights, strict=True):
        if weight:
            total += np.multiply(part, weight, out=product)
    return total
