"""Difference of two metrics on any measure: interval, tests, dominance and effect size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics import intervals
from benchmarks.statistics.intervals import MAX_BLOCKS, Intervals, acceleration, influence
from benchmarks.statistics.paired import UnitTests, unit_tests
from benchmarks.statistics.sign_flips import PairTests, pair_tests

_PUBLISHED = 8.0 * float(np.finfo(np.float32).eps)
"""Resamples are published in single precision: closer than this, two of them may be equal."""


@dataclass(frozen=True)
class Measurements:
    """R values of one metric, and what stands behind each."""

    values: FloatArray  # shape (R,), in units of the measure; NaN where undefined
    # shape (R, B), the values in the plan's resamples; NaN where undefined, B 0 where there are
    # none
    resamples: NDArray[np.floating]
    # shape (R, G), see `influence.contributions`; rows of NaN, or G 0, where there are none
    contributions: FloatArray
    n_clusters: IntArray  # shape (R,), clusters behind each value

    def __post_init__(self) -> None:
        rows = {len(self.values), len(self.resamples), len(self.contributions)}
        if rows != {len(self.n_clusters)} or {self.resamples.ndim, self.contributions.ndim} != {2}:
            raise ValueError(
                f"values {self.values.shape}, resamples {self.resamples.shape}, contributions "
                f"{self.contributions.shape} and clusters {self.n_clusters.shape} are not of the "
                "same rows"
            )

    def of(self, rows: IntArray) -> Self:
        """Those rows, in the order given; one may come more than once."""
        return type(self)(
            self.values[rows],
            self.resamples[rows],
            self.contributions[rows],
            self.n_clusters[rows],
        )


@dataclass(frozen=True)
class Differences:
    """The first metric less the second, for R values; all arrays have shape (R,)."""

    difference: FloatArray  # in units of the measure; NaN where one of the values is
    # 95 % BCa interval from the joint resamples (percentile ends, expanded for few clusters
    # likewise, where BCa is not `defined`); NaN where fewer than half the resamples are defined
    interval: Intervals
    percentile: Intervals  # 95 % percentile interval
    # sign-flip tests of the contributions, the tests of the boards; p-value NaN without
    # contributions
    flips: PairTests
    units: UnitTests  # paired tests and dominance over blocks
    # d_z, the difference over the standard deviation of the blocks' differences (Cohen 1988,
    # section 2.3.5): 0 for equal metrics, infinite where every block differs by the same amount
    effect: FloatArray
    # lower end of the difference's interval over that standard deviation, which is taken for known;
    # NaN where `effect` is not finite
    effect_low: FloatArray
    effect_high: FloatArray  # the upper end


def differences(a: Measurements, b: Measurements, seed: int) -> Differences:
    """Compare two metrics, row by row.

    Joint resamples and contributions are paired, so those of a difference are the differences. n
    times a block's contribution is its pseudo-value; for a mean it is the cluster's own value,
    hence the paired tests are then the ones over clusters.

    The p-value of a row (`sign_flips.pair_tests`) depends on both metrics and the seed alone. The
    interval is BCa (Efron 1987) with the acceleration from the differences of the influences.

    `b`: the second, on the same slices and of the same plan.
    """
    if a.resamples.shape != b.resamples.shape or a.contributions.shape != b.contributions.shape:
        raise ValueError(
            f"resamples {a.resamples.shape} and {b.resamples.shape}, contributions "
            f"{a.contributions.shape} and {b.contributions.shape} are of different plans"
        )
    difference: FloatArray = np.asarray(a.values - b.values, np.float64)
    shares = _usable(a, difference), _usable(b, difference)
    members = _members(*shares, np.maximum(a.n_clusters, b.n_clusters))
    resamples = _resampled(a, b, difference)
    units = unit_tests(*shares, members)
    moved = influence(shares[0] - shares[1], difference, members)
    clusters = np.minimum(a.n_clusters, b.n_clusters)
    interval = intervals.bca(difference, resamples, acceleration(moved), n_clusters=clusters)
    with np.errstate(invalid="ignore", divide="ignore"):
        equal = (difference == 0.0) & (units.n > 1)
        effect = np.where(equal, 0.0, difference / units.spread)
    return Differences(
        difference=difference,
        interval=interval,
        percentile=intervals.percentile(resamples),
        flips=_flips(*shares, seed),
        units=units,
        effect=effect,
        effect_low=_in_spreads(interval.low, units.spread),
        effect_high=_in_spreads(interval.high, units.spread),
    )


def _usable(one: Measurements, difference: FloatArray) -> FloatArray:
    """Contributions of rows whose difference is defined; one column of NaN where there are none."""
    shares = np.asarray(one.contributions, np.float64)
    if not shares.shape[1]:
        return np.full((len(shares), 1), np.nan)
    return np.where(np.isnan(difference)[:, None], np.nan, shares)


def _members(a: FloatArray, b: FloatArray, n_clusters: IntArray) -> BoolArray:
    """Blocks that hold clusters of a row's slice, shape (R, G), from the contributions.

    Blocks outside the slice add exactly nothing. So may a block inside it; where every block is
    one cluster, the number of clusters says how many of those there are, and since they all add
    nothing it does not matter which ones are taken.
    """
    able: BoolArray = np.asarray(np.isfinite(a + b).all(axis=1))
    found: BoolArray = ((a != 0.0) | (b != 0.0)) & able[:, None]
    if a.shape[1] < MAX_BLOCKS:
        lacking = np.where(able, n_clusters - found.sum(axis=1), 0)
        found |= ~found & (np.cumsum(~found, axis=1) <= lacking[:, None])
    return found


def _resampled(a: Measurements, b: Measurements, difference: FloatArray) -> FloatArray:
    """Differences in the resamples, shape (R, B).

    Those equal to the difference but for rounding are made equal: single precision would put them
    on either side of it.
    """
    one, other = (np.asarray(side.resamples, np.float64) for side in (a, b))
    found = one - other
    size = np.maximum(np.abs(one), np.abs(other))
    own = difference[:, None]
    with np.errstate(invalid="ignore"):
        same = np.abs(found - own) <= _PUBLISHED * size
    return np.where(np.isnan(own), np.nan, np.where(same, own, found))


def _flips(a: FloatArray, b: FloatArray, seed: int) -> PairTests:
    rows = np.arange(len(a))
    return pair_tests(np.concatenate([a, b]), rows, rows + len(a), seed)


def _in_spreads(end: FloatArray, spread: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0.0, end / spread, np.where(end + spread == 0.0, 0.0, np.nan))
