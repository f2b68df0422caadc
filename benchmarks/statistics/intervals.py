"""Confidence intervals from bootstrap resamples: percentile, and bias-corrected accelerated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray

LEVEL = 0.95
_SAME = 1e-12
"""A resample this close to the value, as a share of the largest resample, is equal to it."""


@dataclass(frozen=True)
class Intervals:
    """Both ends for each of R values; NaN where there is no interval.

    Attributes:
        low: shape (R,), lower ends.
        high: shape (R,), upper ends.
        defined: shape (R,), whether the method could be applied as it is defined.
    """

    low: FloatArray
    high: FloatArray
    defined: BoolArray

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends."""
        return self.low, self.high


def percentile(resamples: NDArray[np.floating], level: float = LEVEL) -> Intervals:
    """Percentile intervals: quantiles of the resamples (Efron and Tibshirani 1993, 13.3).

    Args:
        resamples: shape (R, B); undefined resamples are NaN.
        level: coverage.

    Returns:
        No interval for rows of which fewer than half the resamples are defined.
    """
    tails = np.broadcast_to([(1.0 - level) / 2.0, (1.0 + level) / 2.0], (len(resamples), 2))
    return _between(resamples, tails)


def bca(
    value: FloatArray,
    resamples: NDArray[np.floating],
    acceleration: FloatArray,
    level: float = LEVEL,
    n_clusters: IntArray | None = None,
) -> Intervals:
    """Bias-corrected and accelerated intervals (Efron 1987; Efron and Tibshirani 1993, 14.3).

    The quantiles taken are Φ(z0 + (z0 + z) / (1 - a (z0 + z))) for z of both tails, with z0 the
    normal quantile of the share of resamples below the value, equal ones counted half.

    Resamples of n clusters are too narrow by sqrt((n - 1) / n), and the normal quantile takes
    their spread for known. Where the numbers of clusters are given, z is therefore that of
    expanded intervals, sqrt(n / (n - 1)) t(n - 1) (Hesterberg 2015, there for percentile
    intervals): `calibration` shows how much closer to the level that comes.

    Args:
        value: shape (R,), the values in the sample.
        resamples: shape (R, B); undefined resamples are NaN.
        acceleration: shape (R,), see `influence.acceleration`; NaN where it is undefined.
        level: coverage.
        n_clusters: shape (R,), clusters behind each value; below 2 where they are not known.
            None: the textbook interval.

    Returns:
        Percentile intervals, not `defined`, where the acceleration is undefined, all resamples
        lie on one side of the value or the correction leaves its range; none where `percentile`
        gives none.
    """
    # Rows and boards are read without it, and `scipy` takes half a second to import.
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    own = np.asarray(value, resamples.dtype)[:, None]
    # The value and its resamples are added up in different order: equal ones differ by rounding.
    least = max(_SAME, 8.0 * float(np.finfo(resamples.dtype).eps))
    size = np.abs(np.where(np.isfinite(resamples), resamples, 0.0)).max(
        axis=1, keepdims=True, initial=0.0
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        equal = np.abs(resamples - own) <= least * size
        below = (~equal & (resamples < own)).sum(axis=1) + 0.5 * equal.sum(axis=1)
        z0 = ndtri(below / np.isfinite(resamples).sum(axis=1))[:, None]
        z = z0 + _quantiles(len(resamples), level, n_clusters)
        slope = 1.0 - acceleration[:, None] * z
        tails = ndtr(z0 + z / slope)
    usable = np.isfinite(tails).all(axis=1) & (slope > 0.0).all(axis=1)
    # What BCa cannot do is no reason to forget how few clusters there are.
    plain = ndtr(_quantiles(len(resamples), level, n_clusters))
    found = _between(resamples, np.where(usable[:, None], tails, plain))
    return Intervals(found.low, found.high, usable & np.isfinite(found.low))


def _quantiles(n_rows: int, level: float, n_clusters: IntArray | None) -> FloatArray:
    """Quantiles z of both tails, shape (R, 2): normal, or expanded for few clusters."""
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415

    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    found = np.tile(ndtri(tails), (n_rows, 1))
    if n_clusters is not None:
        known = np.asarray(n_clusters) >= 2
        n = np.asarray(n_clusters)[known, None]
        found[known] = np.sqrt(n / (n - 1.0)) * stdtrit(n - 1.0, tails)
    return found


def _between(resamples: NDArray[np.floating], tails: NDArray[np.float64]) -> Intervals:
    """Quantiles of each row at two levels of its own, shape (R, 2), linear between resamples."""
    n_rows, n_draws = resamples.shape
    if not resamples.size:
        nothing = np.full(n_rows, np.nan)
        return Intervals(nothing, nothing.copy(), np.zeros(n_rows, bool))
    in_order = np.sort(resamples, axis=1)  # NaN comes last
    n_defined = np.isfinite(in_order).sum(axis=1)
    enough = (2 * n_defined >= n_draws) & (n_defined > 0)
    place = np.clip(tails, 0.0, 1.0) * np.maximum(n_defined - 1, 0)[:, None]
    left = np.floor(place).astype(np.intp)
    right = np.minimum(left + 1, np.maximum(n_defined - 1, 0)[:, None])
    rows = np.arange(n_rows)[:, None]
    low, high = in_order[rows, left].astype(np.float64), in_order[rows, right].astype(np.float64)
    ends = np.where(enough[:, None], low + (place - left) * (high - low), np.nan)
    return Intervals(ends[:, 0], ends[:, 1], enough)
