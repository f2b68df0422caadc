"""Tiers of the index over benchmarks. Pure functions.

The index is a weighted sum of headline values, and each value is the sum of the contributions of
its blocks of clusters (`statistics.influence`). So the difference of two metrics' indices is one sum
over the blocks of all benchmarks,

    index_a - index_b = Σ_k Σ_g d_kg,  d_kg = u_k (P_a,kg - P_b,kg) / (ceiling_k - chance_k),

with u_k = w_k / Σ w, and the paired test of the boards (`statistics.sign_flips`) applies to it as it
stands: were two metrics exchangeable within clusters, each d_kg could as well have the other sign,
on every benchmark apart. Benchmarks must be independent, as for the intervals. Where metrics have
equal indices although they differ on single benchmarks, Σ d² is more than the variance of the sum,
and the test errs to the side of no difference.

Weights change with a slider, so nothing is drawn: the p-value is the upper bound of
`statistics.flip_bound`, about three times that of drawn signs. Then Holm's correction over all pairs
and the rule of the boards (`rank_ranges.tiers`). Resamples are not tested with: a thousand of them
cannot give a p-value that stands the correction over many pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.statistics.multiplicity import holm_of_pairs
from benchmarks.statistics.sign_flips import flip_bound
from leaderboard.ranking.rank_ranges import tiers


def index_tests(
    index: FloatArray, squares: Sequence[NDArray[np.floating]], weights: FloatArray
) -> FloatArray:
    """Corrected p-values between each two metrics.

    Args:
        index: shape (M,), of metrics that have every benchmark.
        squares: of each benchmark, shape (M, M): squared differences of rescaled contributions.
        weights: of the benchmarks, at least 0, one of them positive.

    Returns:
        Shape (M, M), symmetric; NaN where two were not tested.
    """
    shares = np.asarray(weights, np.float64) / np.sum(weights)
    total = np.zeros((index.size, index.size))
    for of, share in zip(squares, shares, strict=True):
        total += share**2 * of
    return holm_of_pairs(flip_bound(np.subtract.outer(index, index), total))


def index_tiers(
    index: FloatArray, squares: Sequence[NDArray[np.floating]], weights: FloatArray
) -> tuple[int | None, ...]:
    """Tiers from those tests; None for a metric that was tested against nobody."""
    return tiers(index, index_tests(index, squares, weights))
