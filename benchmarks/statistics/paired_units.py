"""Two metrics block by block: paired t, Wilcoxon's signed ranks and dominance on pseudo-values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.paired import wilcoxon

_SLACK = 1e-9
"""Contributions this close, as a share of the larger side of their row, differ by rounding only:
the rule of `sign_flips`, so that its units are those that are not tied here."""
_DIGITS = 10
"""Differences are ranked with so many digits of the largest, for equal ones to share a rank."""


@dataclass(frozen=True)
class UnitTests:
    """Two metrics block by block, on pseudo-values; all arrays have shape (R,).

    Attributes:
        n: blocks behind the two values; 0 where there are no contributions.
        larger: blocks to which the first metric owes more.
        equal: blocks in which both are the same but for rounding.
        smaller: blocks to which the second owes more.
        t: Student's paired t (null hypothesis: the mean difference is zero); 0 where all
            differences are zero, infinite where all are one other number; NaN below two blocks.
        t_p: its two-sided p-value.
        wilcoxon_w: the smaller signed-rank sum (null hypothesis: the differences are symmetric
            about zero; zeros left out); NaN without blocks.
        wilcoxon_p: its two-sided p-value, as `paired.wilcoxon` has it.
        spread: standard deviation (n - 1) of the differences; NaN below two blocks.
    """

    n: IntArray
    larger: IntArray
    equal: IntArray
    smaller: IntArray
    t: FloatArray
    t_p: FloatArray
    wilcoxon_w: FloatArray
    wilcoxon_p: FloatArray
    spread: FloatArray


def unit_tests(a: FloatArray, b: FloatArray, members: BoolArray) -> UnitTests:
    """Paired t, Wilcoxon's test and dominance over blocks.

    Args:
        a: shape (R, G), contributions of the first metric; rows of NaN are not tested.
        b: shape (R, G), of the second.
        members: shape (R, G), blocks that count.
    """
    n = members.sum(axis=1)
    d = _less_rounding(a, b) * n[:, None]
    counted = np.where(members, d, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = counted.sum(axis=1) / n
        squares = np.where(members, d - mean[:, None], 0.0) ** 2
        spread = np.sqrt(squares.sum(axis=1) / (n - 1.0))
        size = np.abs(counted).max(axis=1, initial=0.0)
        spread = np.where(spread <= _SLACK * size, 0.0, spread)
        spread[n < 2] = np.nan
        t = mean / (spread / np.sqrt(n))
    t = np.where((size == 0.0) & (n > 1), 0.0, t)
    w, w_p = np.full((2, len(n)), np.nan)
    for row in np.flatnonzero(n):
        ranked = _rounded(d[row, members[row]])
        test = wilcoxon(ranked, np.zeros(ranked.size))
        w[row], w_p[row] = test.statistic, test.p_value
    larger, smaller = (counted > 0).sum(axis=1), (counted < 0).sum(axis=1)
    t_p = 2.0 * special.stdtr(np.maximum(n - 1, 1), -np.abs(t))
    return UnitTests(n, larger, n - larger - smaller, smaller, t, t_p, w, w_p, spread)


def _less_rounding(a: FloatArray, b: FloatArray) -> FloatArray:
    d = a - b
    size = np.maximum(np.abs(a), np.abs(b)).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(d) <= _SLACK * size, 0.0, d)


def _rounded(d: FloatArray) -> FloatArray:
    size = np.abs(d).max(initial=0.0)
    return d if size == 0.0 else np.round(d / size, _DIGITS)
