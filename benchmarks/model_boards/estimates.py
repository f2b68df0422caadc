"""Means of models with intervals, and tests between each two of them: one metric on one slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.model_boards.slices import SliceScores
from benchmarks.statistics.influence import acceleration
from benchmarks.statistics.intervals import bca
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.paired_many import TStatistics, t_statistics

LEVEL = 0.05
"""Of all tests between models on a slice together, after Holm's correction."""


@dataclass(frozen=True)
class Estimates:
    """M models by one metric.

    Attributes:
        means: shape (M,); NaN without a score.
        ci_low: shape (M,), lower ends of 95 % intervals, BCa, prompts resampled; NaN below two
            prompts.
        ci_high: shape (M,), upper ends.
        resamples: shape (M, B), the means in each resample.
        n_prompts: shape (M,), prompts with a score.
    """

    means: FloatArray
    ci_low: FloatArray
    ci_high: FloatArray
    resamples: FloatArray
    n_prompts: IntArray


def estimates(scores: SliceScores, counts: FloatArray) -> Estimates:
    """Means with their intervals.

    Args:
        scores: of n prompts.
        counts: shape (B, n), how often each prompt is drawn in each resample.
    """
    resamples = scores.resampled(counts)
    values = scores.by_prompt
    moved = np.where(np.isfinite(values), values - scores.means, 0.0).T
    found = bca(scores.means, resamples, acceleration(moved), n_clusters=scores.n_prompts)
    # One prompt varies with nothing: an interval of no width promises too much.
    several = scores.n_prompts > 1
    return Estimates(
        scores.means,
        np.where(several, found.low, np.nan),
        np.where(several, found.high, np.nan),
        resamples,
        scores.n_prompts,
    )


@dataclass(frozen=True)
class Tests:
    """Student's paired t between each two of M models by each of J metrics.

    Attributes:
        difference: shape (J, M, M), mean of a (second axis) less b over their common prompts.
        p: shape (J, M, M), two-sided p-values; NaN where two models share fewer than two prompts.
        corrected: shape (J, M, M), after Holm over all pairs and metrics together; NaN likewise
            and on the diagonal.
    """

    __test__ = False  # pytest: not a class of tests

    difference: FloatArray
    p: FloatArray
    corrected: FloatArray

    def relations(self, level: float = LEVEL) -> IntArray:
        """Shape (J, M, M): 1 where a is significantly better by a metric, -1 where b is, else 0."""
        told = self.corrected < level
        return np.where(told, np.sign(np.nan_to_num(self.difference)), 0.0).astype(np.intp)


def compared(scores: SliceScores, least: int = 2) -> TStatistics:
    """Student's paired t between each two models by one metric.

    Args:
        scores: of all models.
        least: prompts two models must share; below, they have no p-value. Differences are in
            units of `SliceScores.in_range`.
    """
    found = t_statistics(scores.in_range)
    return replace(found, p=np.where(found.n < least, np.nan, found.p))


def joined(metrics: Sequence[TStatistics], n_models: int) -> Tests:
    """The tests of several metrics as one family.

    Args:
        metrics: the tests of each, of the same models; may be none.
        n_models: how many these are.
    """
    shape = (len(metrics), n_models, n_models)
    difference = np.array([one.difference for one in metrics]).reshape(shape)
    p = np.array([one.p for one in metrics]).reshape(shape)
    return Tests(difference, p, holm_over_metrics(p))


def holm_over_metrics(p: FloatArray) -> FloatArray:
    """Holm's correction over all pairs of models and all metrics.

    Args:
        p: shape (J, M, M), symmetric in the models.

    Returns:
        The same shape; NaN on the diagonal.
    """
    a, b = np.triu_indices(p.shape[-1], 1)
    corrected = np.full(p.shape, np.nan)
    corrected[:, a, b] = corrected[:, b, a] = holm(p[:, a, b])
    return corrected
