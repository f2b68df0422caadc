"""Pearson, Spearman and Kendall correlation, of a sample and of all its bootstrap resamples.

A resample is a vector of multiplicities: how often each cluster of items was drawn. The
`resampled_*` functions take the multiplicities of B resamples and give what the plain coefficient
would be on each physically repeated sample, without repeating or sorting anything again.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.kendall_forms import resampled_kendall
from benchmarks.statistics.moments import anchored, sum_by_cluster, two_pass_pearson
from benchmarks.statistics.resampled_moments import resampled_pearson
from benchmarks.statistics.resampled_ranks import resampled_spearman

__all__ = [
    "anchored",
    "kendall",
    "pearson",
    "resampled_kendall",
    "resampled_pearson",
    "resampled_spearman",
    "spearman",
    "sum_by_cluster",
]


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's r of two samples.

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.

    Returns:
        A value in -1..1; NaN where a side is constant or n < 2.
    """
    x, y = _sample(x, y)
    return float(two_pass_pearson(anchored(x), anchored(y), np.ones((1, x.size)))[0])


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


def _sample(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"two samples of one length are needed, not {x.shape} and {y.shape}")
    return x, y


def _is_constant(values: FloatArray) -> bool:
    return bool((values == values[0]).all())
