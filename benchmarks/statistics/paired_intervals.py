"""Bootstrap intervals of mean differences and effect sizes between each two of many models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray
from benchmarks.statistics.influence import acceleration
from benchmarks.statistics.intervals import bca
from benchmarks.statistics.resampling import mean_of_defined

_ROUNDING = 1e-10
"""Share of the squares that rounding may leave of a sum of squared deviations that is zero."""


@dataclass(frozen=True)
class PairIntervals:
    """Ends of intervals of model a (first axis) less model b, each of shape (M, M).

    Attributes:
        low: lower ends; NaN where there is no interval.
        high: upper ends, those of b less a with the sign changed.
    """

    low: FloatArray
    high: FloatArray


def paired_intervals(
    values: FloatArray, counts: FloatArray, level: float = 0.95
) -> tuple[PairIntervals, PairIntervals]:
    """BCa intervals of the mean difference and of d_z for each two models (Efron 1987).

    They are expanded for the number of prompts (see `intervals.bca`). The acceleration comes from the influence of each prompt: d - m on the mean m, and
    (d - m) / s - m ((d - m)^2 - s^2) / (2 s^3) on m / s (the delta method).

    Args:
        values: shape (n, M), one value per prompt; NaN where there is none.
        counts: shape (B, n), how often each prompt is drawn in each resample; B = 0: all NaN.
        level: coverage.

    Returns:
        Those of the mean difference and those of d_z (see `resampled_pairs`); NaN below two common
        prompts and where fewer than half the resamples are defined. Percentile intervals where BCa
        is undefined: where all resamples lie on one side of the value.
    """
    n_models = values.shape[1]
    ends = np.full((4, n_models, n_models), np.nan)
    for a in range(n_models if len(counts) else 0):
        differences = values[:, a, None] - values[:, a:]
        enough = np.isfinite(differences).sum(axis=0) > 1
        others = a + np.flatnonzero(enough)
        d = differences[:, enough]
        n_prompts = np.isfinite(d).sum(axis=0)
        for first, value, resamples, moved in zip(
            (0, 2), _values(d), resampled_pairs(d, counts), _influences(d), strict=True
        ):
            found = bca(value, resamples.T, acceleration(moved.T), level, n_clusters=n_prompts)
            ends[first, a, others], ends[first + 1, a, others] = found.low, found.high
            ends[first, others, a], ends[first + 1, others, a] = -found.high, -found.low
    return PairIntervals(ends[0], ends[1]), PairIntervals(ends[2], ends[3])


def resampled_pairs(differences: FloatArray, counts: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Mean difference and Cohen's d_z in each resample.

    Args:
        differences: shape (n, k), a - b of each prompt for k pairs; NaN where there is none.
        counts: shape (B, n), how often each prompt is drawn.

    Returns:
        Two arrays of shape (B, k). Means are NaN where nothing is drawn. d_z is NaN where fewer
        than two prompts are drawn, 0 where only zeros are, and NaN where all drawn differences are
        one other number: there it has no bound.
    """
    w = np.asarray(counts, np.float64)
    defined = np.isfinite(differences)
    d = np.where(defined, differences, 0.0)
    n = defined.sum(axis=0)
    centre = _mean_or_the_one_value(differences, d.sum(axis=0) / np.maximum(n, 1))
    squares = np.where(defined, (d - centre) ** 2, 0.0)
    drawn = w.sum(axis=1)[:, None] if defined.all() else w @ defined.astype(np.float64)
    sums, total = w @ d, w @ squares
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / drawn
        deviations = total - drawn * (mean - centre) ** 2
        effect = mean / np.sqrt(deviations / (drawn - 1.0))
    alike = deviations <= _ROUNDING * total
    effect = np.where(alike, np.where(sums == 0, 0.0, np.nan), effect)
    return mean, np.where(drawn < 2, np.nan, effect)


def _values(differences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and d_z in the sample: that of one resample which draws every prompt once."""
    mean, effect = resampled_pairs(differences, np.ones((1, len(differences))))
    return mean[0], effect[0]


def _influences(differences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How each prompt, (n, k), moves the mean and d_z, to a common factor; 0 for missing ones."""
    defined = np.isfinite(differences)
    mean = mean_of_defined(differences)
    distance = np.where(defined, differences - mean, 0.0)
    scale = np.sqrt((distance**2).sum(axis=0) / defined.sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = distance / scale
        of_spread = mean / scale * (unit**2 - 1.0) / 2.0
    return distance, np.where(defined, unit - of_spread, 0.0)


def _mean_or_the_one_value(differences: FloatArray, mean: FloatArray) -> FloatArray:
    """The means; rounding must not part equal differences from their own mean."""
    low = np.fmin.reduce(differences, initial=np.inf)
    high = np.fmax.reduce(differences, initial=-np.inf)
    centre: FloatArray = np.where(low == high, low, mean)
    return centre
