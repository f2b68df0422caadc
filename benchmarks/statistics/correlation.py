"""Pearson, Spearman and Kendall correlation of a sample."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.samples import anchored, matched, two_pass_pearson


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's r of two finite samples (n,), in -1..1; NaN where a side is constant or n < 2."""
    x, y = matched(x, y)
    return float(two_pass_pearson(anchored(x), anchored(y), np.ones((1, x.size)))[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of two finite samples (n,): Pearson's r of average ranks; NaN as there."""
    x, y = matched(x, y)
    return pearson(stats.rankdata(x), stats.rankdata(y))


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of two finite samples (n,) (Kendall 1945, with ties); NaN as `pearson`."""
    x, y = matched(x, y)
    if x.size < 2 or _is_constant(x) or _is_constant(y):
        return math.nan
    return float(stats.kendalltau(x, y).statistic)


def _is_constant(values: FloatArray) -> bool:
    return bool((values == values[0]).all())
