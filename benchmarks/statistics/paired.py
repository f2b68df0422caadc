"""Tests of two models on the same prompts: paired t, Wilcoxon's signed ranks, and dominance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from benchmarks.arrays import FloatArray

ENUMERATED = 13
"""Up to so many differences every pattern of signs is looked at, as scipy does where there are
ties, in less than a thousandth of its time."""


@dataclass(frozen=True)
class Test:
    """The statistic of a two-sided test and its p-value; both NaN where the test is undefined."""

    __test__ = False  # pytest: not a class of tests

    statistic: float
    p_value: float

    def significant(self, level: float) -> bool:
        """Whether the p-value lies below the level; never where the test is undefined."""
        return self.p_value < level


def paired_t(a: ArrayLike, b: ArrayLike) -> Test:
    """Student's paired t-test, two-sided (Re-Thinking, section on significance).

    Null hypothesis: the mean difference is zero. t = m / (s / sqrt(n)) with the mean m and the
    standard deviation s (n - 1) of the differences, n - 1 degrees of freedom (Student 1908).

    Args:
        a: shape (n,), finite, one value per prompt.
        b: shape (n,), finite, on the same prompts.

    Returns:
        t > 0 where `a` is larger on average. All differences zero: t 0 and p 1. All differences
        equal but not zero: t infinite and p 0. Fewer than two prompts: NaN.

    Raises:
        ValueError: the lengths differ.
    """
    difference = _differences(a, b)
    if difference.size < 2:
        return Test(math.nan, math.nan)
    if not difference.any():
        return Test(0.0, 1.0)
    if np.ptp(difference) == 0.0:
        return Test(math.copysign(math.inf, float(difference[0])), 0.0)
    found = stats.ttest_1samp(difference, 0.0)
    return Test(float(found.statistic), float(found.pvalue))


def wilcoxon(a: ArrayLike, b: ArrayLike) -> Test:
    """Wilcoxon's signed-rank test, two-sided; prompts with equal values are left out.

    Null hypothesis: the differences are symmetric about zero.

    This is the zero handling of Wilcoxon (1945), scipy's default `wilcox`; so is the choice
    between the exact distribution (up to 50 untied differences, none zero; up to 13 in any case)
    and the normal one.

    Args:
        a: shape (n,), finite, one value per prompt.
        b: shape (n,), finite, on the same prompts.

    Returns:
        W, the smaller of the two rank sums, and p. All differences zero: W 0 and p 1. No
        prompts: NaN.

    Raises:
        ValueError: the lengths differ.
    """
    difference = _differences(a, b)
    if difference.size == 0:
        return Test(math.nan, math.nan)
    if not difference.any():
        return Test(0.0, 1.0)
    if difference.size <= ENUMERATED:
        return _by_enumeration(difference[difference != 0])
    found = stats.wilcoxon(difference, zero_method="wilcox")
    return Test(float(found.statistic), float(found.pvalue))


def dominance(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Dominance ratios R_ab and R_ba: ties count for neither, so they add up to 1 at most.

    Args:
        a: shape (n,), finite, one value per prompt.
        b: shape (n,), finite, on the same prompts.

    Returns:
        Shares of prompts with a > b and with b > a; NaN for no prompts.

    Raises:
        ValueError: the lengths differ.
    """
    difference = _differences(a, b)
    if difference.size == 0:
        return math.nan, math.nan
    return float((difference > 0).mean()), float((difference < 0).mean())


def _by_enumeration(difference: FloatArray) -> Test:
    """The exact test: under the null hypothesis each sign is a toss of a coin."""
    ranks = stats.rankdata(np.abs(difference))
    positive, total = float(ranks[difference > 0].sum()), float(ranks.sum())
    patterns = np.arange(2**ranks.size)[:, None] >> np.arange(ranks.size) & 1
    sums = patterns @ ranks  # of halves: exact
    one_sided = min((sums <= positive).mean(), (sums >= positive).mean())
    return Test(min(positive, total - positive), min(1.0, 2.0 * float(one_sided)))


def _differences(a: ArrayLike, b: ArrayLike) -> FloatArray:
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"two samples of one length are needed, not {a.shape} and {b.shape}")
    difference: FloatArray = a - b
    return difference
