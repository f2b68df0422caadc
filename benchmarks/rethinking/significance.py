"""Is one model better than another? The p-value of a test beside how often it wins.

With a thousand prompts a difference can be significant although each model wins about half of
them, so the p-value of the paired t-test and the dominance ratios belong together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray
from benchmarks.rethinking.generations import MetricScores
from benchmarks.rows import percentile_intervals
from benchmarks.statistics.paired import dominance, paired_t, wilcoxon
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean

LEVEL = 0.05
"""Significance level of the paper."""
Relation = Literal["<", "=", ">"]


@dataclass(frozen=True)
class Comparison:
    """Two models on the same prompts with one seed.

    Attributes:
        metric: the metric.
        seed: the seed.
        model_a: one model.
        model_b: the other.
        relation: `>` where a is significantly better than b by the paired t-test (p below the
            level, uncorrected, as in the paper), `<` where b is, else `=`.
        difference: mean of a less b, in units of the score.
        ci_low: lower end of its 95 % interval (prompts resampled); NaN below two prompts.
        ci_high: upper end.
        t: statistic of the paired t-test; 0 where all differences are zero.
        p_value: its two-sided p; 1 where all differences are zero; NaN below two prompts.
        p_corrected: the same after Holm's correction for all pairs of this metric and seed.
        wilcoxon_w: statistic of Wilcoxon's signed-rank test.
        wilcoxon_p: its two-sided p.
        r_ab: dominance ratio, share of prompts on which a scores strictly higher.
        r_ba: the same for b; the rest are ties.
        n_prompts: prompts on which both have a score.
        n_missing: prompts on which one has none; left out.
    """

    metric: str
    seed: str
    model_a: str
    model_b: str
    relation: Relation
    difference: float
    ci_low: float
    ci_high: float
    t: float
    p_value: float
    p_corrected: float
    wilcoxon_w: float
    wilcoxon_p: float
    r_ab: float
    r_ba: float
    n_prompts: int
    n_missing: int


def comparisons(
    table: MetricScores, plan: ResamplingPlan, level: float = LEVEL
) -> tuple[Comparison, ...]:
    """Compare each two models with each seed.

    Args:
        table: the scores.
        plan: resamples the prompts.
        level: below which p-value a difference is called significant.
    """
    counts = plan.counts_of(table.prompts)
    found: list[Comparison] = []
    for s, seed in enumerate(table.seeds):
        of_seed = [
            _compare(table, seed, (table.models[a], table.models[b]), (scores_a, scores_b), counts)
            for (a, scores_a), (b, scores_b) in combinations(enumerate(table.scores[s]), 2)
        ]
        corrected = holm([c.p_value for c in of_seed])
        found += [
            replace(c, p_corrected=float(p), relation=_relation(c, level))
            for c, p in zip(of_seed, corrected, strict=True)
        ]
    return tuple(found)


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm's step-down correction of p-values (Holm 1979); NaN values are no tests and stay NaN.

    Args:
        p_values: shape (n,).

    Returns:
        Shape (n,): the smallest family-wise level at which each test rejects, at most 1.
    """
    values = np.asarray(p_values, np.float64)
    corrected = np.full(values.shape, np.nan)
    tests = np.flatnonzero(np.isfinite(values))
    order = tests[np.argsort(values[tests], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return corrected


def _compare(
    table: MetricScores,
    seed: str,
    models: tuple[str, str],
    scores: tuple[FloatArray, FloatArray],
    counts: FloatArray,
) -> Comparison:
    differences = scores[0] - scores[1]
    both = np.isfinite(differences)
    a, b = scores[0][both], scores[1][both]
    t, w = paired_t(a, b), wilcoxon(a, b)
    r_ab, r_ba = dominance(a, b)
    n = int(both.sum())
    low, high = (
        percentile_intervals(resampled_mean(differences, counts)[None, :])
        if n > 1
        else (np.array([math.nan]),) * 2
    )
    return Comparison(
        metric=table.metric,
        seed=seed,
        model_a=models[0],
        model_b=models[1],
        relation="=",
        difference=float((a - b).mean()) if n else math.nan,
        ci_low=float(low[0]),
        ci_high=float(high[0]),
        t=t.statistic,
        p_value=t.p_value,
        p_corrected=math.nan,
        wilcoxon_w=w.statistic,
        wilcoxon_p=w.p_value,
        r_ab=r_ab,
        r_ba=r_ba,
        n_prompts=n,
        n_missing=both.size - n,
    )


def _relation(comparison: Comparison, level: float) -> Relation:
    if not comparison.p_value < level:
        return "="
    return ">" if comparison.difference > 0 else "<"
