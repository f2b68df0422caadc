"""Slope of estimates over time: random-effects meta-regression with an intercept for each group.

Estimate i of group g(i), at time t_i with standard error s_i, is

    y_i = a_g(i) + b t_i + u_i + e_i        u_i ~ N(0, tau²), e_i ~ N(0, s_i²)

Groups are benchmarks, whose levels do not compare; the slope b is common to them (a fixed slope). What is
drawn at random are the generators: u_i is what is peculiar to one, and with few of them it decides how far b
is known, however many prompts each has. So prompts alone are not resampled: their interval would say what
these very generators did, and not what the date does. The between-generator variance tau² is by the method of
moments (DerSimonian and Laird 1986, for regression: Thompson and Sharp 1999), b by weights 1 / (s_i² + tau²),
and its interval by Student's t with Knapp and Hartung's (2003) variance, which is that of weighted residuals:
with equal standard errors it is the interval of ordinary least squares. Errors that all generators share,
because they drew the same prompts, move the intercepts alone. Errors of shares are smoothed first
(`share_errors`), since weights must not follow the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray, IntArray

LEVEL = 0.95
"""Of intervals and bands."""
FEWEST_DATED = 4
"""Generators with a date that a slope needs: it then has two degrees of freedom."""
FEWEST_YEARS = 1.0
"""Between the first and the last of them."""


@dataclass(frozen=True, eq=False)
class Slope:
    """A slope over time with its line."""

    value: float  # change a year, in the unit of the estimates
    low: float  # lower end of its 95 % interval
    high: float  # upper end
    p: float  # two-sided p-value of no slope
    tau: float  # standard deviation between generators that sampling does not explain
    n: int  # estimates
    df: int  # degrees of freedom: estimates less groups less one
    centre: float  # mean time, by weight, of the first group, at which its line is `level`
    level: float
    level_variance: (
        float  # of `level`, which does not covary with the slope where there is one group
    )

    def line(self, times: ArrayLike) -> FloatArray:
        """The line of a slope of one group with its 95 % band; shape (3, T): value, low, high."""
        away = np.asarray(times, np.float64) - self.centre
        critical = float(scipy.stats.t.isf((1.0 - LEVEL) / 2.0, self.df))
        spread = (self.high - self.low) / (2.0 * critical)
        half = critical * np.sqrt(self.level_variance + (spread * away) ** 2)
        middle = self.level + self.value * away
        return np.stack([middle, middle - half, middle + half])


def share_errors(shares: ArrayLike, errors: ArrayLike, sizes: ArrayLike) -> FloatArray:
    """Standard errors of n shares for a slope, all above 0.

    The error of a share falls as it comes near to 0 or 1, where it is 0: by it those that turned out well
    weigh most, or drop out, which bends any slope. So none is less than the error of the share with two
    clusters right and two wrong added (Agresti and Coull 1998), times what the clusters of many items
    make of it, which is the median over the shares of their error to that of so many independent clusters.

    `shares` in 0..1; `errors`, at least 0, from their resamples; `sizes`: clusters behind each, at least 1.
    """
    p, s, n = (np.asarray(one, np.float64) for one in (shares, errors, sizes))
    inside = (p > 0) & (p < 1) & (s > 0)
    ratios = s[inside] / np.sqrt(p[inside] * (1 - p[inside]) / n[inside])
    ratio = float(np.median(ratios)) if ratios.size else 1.0
    middle = (n * p + 2) / (n + 4)
    return np.maximum(s, ratio * np.sqrt(middle * (1 - middle) / (n + 4)))


def why_no_slope(times: Sequence[float]) -> str:
    """Why estimates at these times, in years, make no slope; empty where they make one."""
    if len(times) < FEWEST_DATED:
        return f"{len(times)} dated generators with a value and its error; a slope needs {FEWEST_DATED}"
    span = max(times) - min(times)
    if span < FEWEST_YEARS:
        return f"the dates span {span:.1f} years; a slope needs {FEWEST_YEARS:g}"
    return ""


def slope_over_time(
    values: ArrayLike,
    errors: ArrayLike,
    times: ArrayLike,
    groups: ArrayLike | None = None,
) -> Slope:
    """The slope of n estimates over time.

    `values`, `errors` (standard errors, above 0), `times` in years; `groups`: number of the group of
    each from 0, every one with two times at least; None: one group.

    Raises:
        ValueError: fewer than three estimates beyond the groups, an error that is not above 0, or a
            group whose times are all one.
    """
    y, s, t = (np.asarray(one, np.float64) for one in (values, errors, times))
    group = np.zeros(y.size, np.intp) if groups is None else np.asarray(groups, np.intp)
    n_groups = int(group.max(initial=0)) + 1
    df = y.size - n_groups - 1
    if df < 1:
        raise ValueError(f"{y.size} estimates of {n_groups} groups make no slope")
    if not (np.isfinite(s) & (s > 0)).all():
        raise ValueError("a standard error is not above 0")
    if any(np.ptp(t[group == one]) == 0 for one in range(n_groups)):
        raise ValueError("the times of a group are all one")
    tau2 = _between(y, s, t, group, df)
    weight = 1.0 / (s**2 + tau2)
    centred = t - _group_means(t, weight, group)[group]
    size = float((weight * centred**2).sum())
    value = float((weight * centred * y).sum() / size)
    levels = _group_means(y, weight, group)
    residual = y - levels[group] - value * centred
    scale = float((weight * residual**2).sum()) / df
    error = math.sqrt(scale / size)
    half = float(scipy.stats.t.isf((1.0 - LEVEL) / 2.0, df)) * error
    p = 2.0 * float(scipy.stats.t.sf(abs(value) / error, df)) if error > 0 else float(value == 0)
    first = group == 0
    return Slope(
        value=value,
        low=value - half,
        high=value + half,
        p=p,
        tau=math.sqrt(tau2),
        n=y.size,
        df=df,
        centre=float(_group_means(t, weight, group)[0]),
        level=float(levels[0]),
        level_variance=scale / float(weight[first].sum()),
    )


def _between(y: FloatArray, s: FloatArray, t: FloatArray, group: IntArray, df: int) -> float:
    """Variance between estimates beyond their errors, by the method of moments; at least 0."""
    weight = 1.0 / s**2
    centred = t - _group_means(t, weight, group)[group]
    size = (weight * centred**2).sum()
    slope = (weight * centred * y).sum() / size
    residual = y - _group_means(y, weight, group)[group] - slope * centred
    # Trace of W - W X (X' W X)^-1 X' W; the columns of X are orthogonal under W.
    totals = np.bincount(group, weight)
    squares = np.bincount(group, weight**2)
    trace = weight.sum() - (squares / totals).sum() - (weight**2 * centred**2).sum() / size
    return max(0.0, float(((weight * residual**2).sum() - df) / trace))


def _group_means(values: FloatArray, weight: FloatArray, group: IntArray) -> FloatArray:
    """Weighted mean of each group."""
    means: FloatArray = np.bincount(group, weight * values) / np.bincount(group, weight)
    return means
