"""Power of comparing two metrics: what difference a board finds, and how many prompts it would take.

A two-sided test at 5 % of a difference with standard error SE finds a true difference d with
probability Φ(d/SE - 1.96) + Φ(-d/SE - 1.96); 80 % is reached at d = 2.802 SE (Cohen 1988,
Statistical Power Analysis, section 1.5, by the normal distribution). SE falls with the square root of
the number of prompts.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray

LEVEL = 0.05
POWER = 0.8


def probability(difference: ArrayLike, se: ArrayLike) -> FloatArray:
    """Probability that a difference is found; 0.05 where there is none. `se` is positive."""
    ratio = np.abs(np.asarray(difference, np.float64)) / np.asarray(se, np.float64)
    end = -scipy.special.ndtri(LEVEL / 2)
    found: FloatArray = scipy.special.ndtr(ratio - end) + scipy.special.ndtr(-ratio - end)
    return found


def detectable(se: float) -> float:
    """Smallest difference that is found with probability `POWER`, in the unit of `se`."""
    return float((-scipy.special.ndtri(LEVEL / 2) + scipy.special.ndtri(POWER)) * se)


def clusters_needed(difference: float, se: float, n_clusters: int) -> float:
    """How many clusters find a difference, where `n_clusters` give it the standard error `se`.

    Returns: a whole number; infinite where there is no difference.
    """
    if not difference:
        return math.inf
    return math.ceil(n_clusters * (detectable(se) / abs(difference)) ** 2)


def se_of_accuracies(
    discordant: float, n: int, difference: float = 0.0, design_effect: float = 1.0
) -> float:
    """Standard error of the difference of two accuracies on the same n comparisons.

    sqrt(deff (psi - d^2) / n), the variance of a mean of values -1, 0 and 1.

    `discordant` psi, share of comparisons of which exactly one metric is right, at least
    `difference`; `design_effect`: 1 + (m - 1) icc for m comparisons in each prompt.
    """
    return math.sqrt(design_effect * (discordant - difference**2) / n)


def se_of_correlations(value: float, alike: float, n: int) -> float:
    """Standard error of the difference of two Spearman correlations near `value`, on n images.

    Fisher's z has variance (1 + r^2/2) / (n - 3) (Bonett and Wright 2000); a difference of two that
    correlate with each other by `alike` over samples has 2 (1 - alike) times that, and is brought
    back by the slope 1 - r^2.
    """
    of_z = (1 + value**2 / 2) / (n - 3) * 2 * (1 - alike)
    return math.sqrt(of_z) * (1 - value**2)


def se_of_neighbours(values: ArrayLike, resamples: ArrayLike) -> float:
    """Standard error of a paired difference on a board: the median over neighbours in its order.

    `values` (metrics,); `resamples` (metrics, B), joint; metrics without a value are left out.
    Returns: NaN where fewer than two metrics have one.
    """
    value, drawn = np.asarray(values, np.float64), np.asarray(resamples, np.float64)
    there = np.isfinite(value) & (np.isfinite(drawn).sum(axis=1) > drawn.shape[1] / 2)
    if there.sum() < 2:
        return math.nan
    ordered = drawn[there][np.argsort(-value[there], kind="stable")]
    return float(np.median(np.nanstd(np.diff(ordered, axis=0), axis=1, ddof=1)))
