"""Reference values by scipy, swapped differences of hybrids as defined, and samples with ties."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics import correlation, kendall
from benchmarks.statistics.intervals import MAX_BLOCKS, PerturbedPlan
from benchmarks.statistics.pairwise_accuracy import pairwise_accuracy
from benchmarks.statistics.permutation import Sample
from benchmarks.statistics.resampling import ResamplingPlan

COEFFICIENTS = {
    "pearson": (correlation.pearson, correlation.resampled_pearson, stats.pearsonr),
    "spearman": (correlation.spearman, correlation.resampled_spearman, stats.spearmanr),
    "kendall": (correlation.kendall, kendall.resampled_kendall, stats.kendalltau),
}
"""Plain, of resamples, and scipy's."""


def scipy_value(function: Callable[..., object], x: FloatArray, y: FloatArray) -> float:
    """A coefficient of scipy; NaN where a side is constant or there are too few items."""
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(function(x, y)[0])  # type: ignore[index]


def or_zero(statistic: str, x: FloatArray, y: FloatArray) -> float:
    """Scipy's coefficient; 0 where the sample is constant."""
    return 0.0 if np.ptp(x) <= 1e-9 else scipy_value(COEFFICIENTS[statistic][2], x, y)


def swapped_difference(
    statistic: str, a: FloatArray, b: FloatArray, gold: FloatArray, stay: BoolArray
) -> float:
    """Of one group: the correlation of the hybrid less that of its opposite.

    Rank correlations take the average of both orders of the two metrics' equal ranks.
    """
    if statistic == "pearson":
        a, b = (np.zeros(x.size) if np.ptp(x) == 0 else stats.zscore(x) for x in (a, b))
        one, other = np.where(stay, a, b), np.where(stay, b, a)
        return or_zero(statistic, one, gold) - or_zero(statistic, other, gold)
    a, b = 4.0 * stats.rankdata(a), 4.0 * stats.rankdata(b)
    found = 0.0
    for first, second in ((0, 1), (1, 0)):
        one, other = np.where(stay, a + first, b + second), np.where(stay, b + second, a + first)
        found += or_zero(statistic, one, gold) - or_zero(statistic, other, gold)
    return found / 2.0


def mean_difference(
    statistic: str, a: FloatArray, b: FloatArray, stay: BoolArray, sample: Sample
) -> float:
    """Mean over the groups of a sample of metrics `a` and `b`, shape (n,) each."""
    found = []
    for start, end in pairwise(sample.bounds):
        rows = slice(start, end)
        found.append(swapped_difference(statistic, a[rows], b[rows], sample.gold[rows], stay[rows]))
    return float(np.mean(found))


def table(n: int = 60, n_metrics: int = 4, *, ties: bool = False) -> tuple[FloatArray, FloatArray]:
    """Scores (n, M) of metrics of falling quality, and their gold."""
    rng = np.random.default_rng(n + n_metrics)
    gold = rng.integers(1, 6, (n, 3)).mean(axis=1)
    scores = gold[:, None] + rng.normal(size=(n, n_metrics)) * np.linspace(0.5, 2, n_metrics)
    return np.round(scores) if ties else scores, gold


def calibrated_in_groups(
    scores: FloatArray, labels: FloatArray, groups: IntArray
) -> tuple[float, float]:
    """The best mean accuracy over the groups that have pairs, and its smallest threshold.

    Every difference within a group is tried.
    """
    rows = [np.flatnonzero(groups == g) for g in np.unique(groups) if (groups == g).sum() > 1]
    tried = {abs(float(scores[j] - scores[i])) for r in rows for i, j in combinations(r, 2)}
    best = (math.nan, math.nan)
    for e in sorted({0.0, *tried}) if rows else ():
        mean = math.fsum(pairwise_accuracy(scores[r], labels[r], e) for r in rows) / len(rows)
        if math.isnan(best[0]) or mean > best[0] + 1e-12:
            best = (mean, e)
    return best


@st.composite
def grouped_samples(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, IntArray]:
    """Scores, labels and groups: ties, constant and empty groups all occur."""
    n = draw(st.integers(1, 24))
    score = st.one_of(st.integers(-4, 4).map(lambda k: k / 10), st.floats(-10, 10, width=32))
    label = st.integers(3, 9).map(lambda k: k / 3)
    columns = (
        draw(st.lists(kind, min_size=n, max_size=n)) for kind in (score, label, st.integers(0, 4))
    )
    scores, labels, groups = columns
    return np.array(scores, np.float64), np.array(labels), np.array(groups)


def plan_of(n_clusters: int, most_blocks: int = MAX_BLOCKS, n_resamples: int = 5) -> PerturbedPlan:
    names = tuple(map(str, range(n_clusters)))
    return PerturbedPlan.of(ResamplingPlan(names, 3, n_resamples), most_blocks)
