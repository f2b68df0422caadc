"""An upper bound of the sign-flip test's p-value, for many pairs at once and without drawing.

`sign_flips` tests a sum Σ d_g against Σ ± d_g over all patterns of signs. Whatever the d_g are,

    P(|Σ ± d_g| >= t σ) <= c P(|Z| >= t),  σ² = Σ d_g²,  c = 1 / (4 P(Z >= √2)) = 3.178,

with Z standard normal (Bentkus and Dzindzalieta 2015, A tight Gaussian bound for weighted sums of
Rademacher random variables, Bernoulli 21 (2), 1231-1237; the constant is the best possible). So a
p-value taken from the right side is never too small, however few or unequal the blocks are; where
blocks are many it is about three times that of the test. It needs Σ d_g and Σ d_g² alone, and both
of a weighted sum over independent parts follow from those of the parts.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.arrays import FloatArray

FACTOR = 1.0 / (2.0 * math.erfc(1.0))
"""c: 4 P(Z >= √2) = 2 erfc(1)."""
_CLOSE = 1e-6
"""Rows whose distance is a smaller share of their size than this are subtracted one by one: a
difference of products would be rounding there."""
_ROUNDING = 1e-9
_AT_A_TIME = 4096


def squared_differences(contributions: FloatArray) -> FloatArray:
    """Σ_g (P_a,g - P_b,g)² of each two rows.

    Args:
        contributions: shape (M, G), see `statistics.influence`.

    Returns:
        Shape (M, M), symmetric, exactly 0 for rows that differ by rounding only; NaN for rows with
        a NaN, and everywhere where there is no block.
    """
    n = len(contributions)
    found = np.full((n, n), np.nan)
    able = np.flatnonzero(np.isfinite(contributions).all(axis=1))
    if not (able.size and contributions.shape[1]):
        return found
    rows = contributions[able] - contributions[able].mean(axis=0)  # products of small numbers
    products = rows @ rows.T
    sizes = np.diag(products)
    both = sizes[:, None] + sizes
    squares = np.maximum(both - products - products.T, 0.0)
    a, b = np.nonzero(np.triu(squares <= _CLOSE * both, 1))
    for begin in range(0, a.size, _AT_A_TIME):
        part = slice(begin, begin + _AT_A_TIME)
        exact = _one_by_one(contributions[able[a[part]]], contributions[able[b[part]]])
        squares[a[part], b[part]] = squares[b[part], a[part]] = exact
    np.fill_diagonal(squares, 0.0)
    found[np.ix_(able, able)] = squares
    return found


def flip_bound(difference: FloatArray, squares: FloatArray) -> FloatArray:
    """An upper bound of the two-sided p-value of a sign-flip test, at most 1.

    Args:
        difference: Σ d_g.
        squares: Σ d_g², of the same shape; 0 is no difference, NaN no test.
    """
    # Pages start without `scipy`.
    from scipy.special import erfc  # noqa: PLC0415

    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = np.abs(difference) / np.sqrt(2.0 * squares)
    bound = np.minimum(FACTOR * erfc(np.where(squares == 0.0, 0.0, sizes)), 1.0)
    return np.asarray(bound, np.float64)


def tightened(hoeffding: FloatArray) -> FloatArray:
    """The smaller of the bound above and Hoeffding's, 2 exp(-t² / 2), given the latter.

    Args:
        hoeffding: in (0, 2].
    """
    from scipy.special import erfc  # noqa: PLC0415 (pages start without it)

    gauss = FACTOR * erfc(np.sqrt(np.maximum(-np.log(hoeffding / 2.0), 0.0)))
    return np.asarray(np.minimum(np.minimum(hoeffding, gauss), 1.0), np.float64)


def _one_by_one(one: FloatArray, other: FloatArray) -> FloatArray:
    size = np.maximum(np.abs(one), np.abs(other)).max(axis=1, keepdims=True, initial=0.0)
    d = one - other
    found: FloatArray = np.square(np.where(np.abs(d) <= _ROUNDING * size, 0.0, d)).sum(axis=1)
    return found
