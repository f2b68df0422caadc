"""Corrections for multiple tests: Holm among models and raters, Benjamini-Hochberg on heatmaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm's step-down correction: controls the chance of any false finding (Holm 1979).

    The k-th smallest of m p-values is multiplied by m - k + 1, made monotone, capped at 1.

    `p_values`: any shape, in 0..1; NaN is no test and does not count.
    Returns: Corrected p-values, same shape; NaN stays NaN.
    """
    p = np.asarray(p_values, np.float64)
    flat = p.ravel()
    found = np.full(flat.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(flat))
    order = tested[np.argsort(flat[tested], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    found[order] = np.minimum(np.maximum.accumulate(flat[order] * factors), 1.0)
    return found.reshape(p.shape)


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Benjamini and Hochberg's step-up correction: controls the share of false findings (1995).

    The k-th smallest of m p-values is multiplied by m / k, made monotone, capped at 1.

    `p_values`: any shape, in 0..1; NaN is no test and does not count.
    Returns: Corrected p-values, same shape; NaN stays NaN.
    """
    p = np.asarray(p_values, np.float64)
    flat = p.ravel()
    found = np.full(flat.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(flat))
    order = tested[np.argsort(flat[tested])]
    factors = order.size / np.arange(1, order.size + 1)
    falling = np.minimum.accumulate((flat[order] * factors)[::-1])
    found[order] = np.minimum(falling[::-1], 1.0)
    return found.reshape(p.shape)


def holm_of_pairs(p_values: FloatArray) -> FloatArray:
    """Holm's correction over the pairs of a board, (M, M) and symmetric; NaN on the diagonal."""
    corrected = np.full(p_values.shape, np.nan)
    a, b = np.triu_indices(len(p_values), 1)
    corrected[a, b] = corrected[b, a] = holm(p_values[a, b])
    return corrected
