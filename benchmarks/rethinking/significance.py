"""Is one model better than another? The p-value of a test beside how often it wins.

With a thousand prompts a difference can be significant although each model wins about half of
them, so the p-value of the paired t-test and the dominance ratios belong together. With several
seeds there is also the question of what is counted; see `benchmarks.rethinking.units`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray
from benchmarks.rethinking.generations import MetricScores
from benchmarks.rethinking.units import Unit, UnitCounts, image_scores, prompt_scores
from benchmarks.statistics.paired_many import PairedMany, paired_many
from benchmarks.statistics.resampling import ResamplingPlan

LEVEL = 0.05
"""Significance level of the paper."""
Relation = Literal["<", "=", ">"]


@dataclass(frozen=True)
class Comparison:
    """Two models on the same prompts, with one seed or with all.

    Attributes:
        metric: the metric.
        seed: the seed; None for all seeds together.
        unit: what counts as one observation. With one seed a prompt is its image. With all,
            `prompt` (the mean over its seeds; trust this one) or `image` (each image by itself:
            too small a p and too narrow an interval, since images of one prompt are alike).
        model_a: one model.
        model_b: the other.
        relation: `>` where a is significantly better than b by the paired t-test (p below the
            level, uncorrected, as in the paper), `<` where b is, else `=`.
        difference: mean of a less b, in units of the score.
        ci_low: lower end of its 95 % interval (BCa, units resampled); NaN below two units.
        ci_high: upper end.
        effect: Cohen's d_z, the difference over the standard deviation of the differences; 0
            where all differences are zero, infinite where all are one other number.
        effect_low: lower end of its 95 % interval (BCa); NaN below two units and where most resamples
            are without spread.
        effect_high: upper end.
        t: statistic of the paired t-test; 0 where all differences are zero.
        p_value: its two-sided p; 1 where all differences are zero; NaN below two units.
        p_corrected: the same after Holm's correction for all pairs of this metric, seed and unit.
        wilcoxon_w: statistic of Wilcoxon's signed-rank test.
        wilcoxon_p: its two-sided p.
        r_ab: dominance ratio, share of units on which a scores strictly higher.
        r_ba: the same for b; the rest are ties.
        n_units: units on which both have a score (a prompt: with every seed).
        n_missing: units on which one has none; left out.
    """

    metric: str
    seed: str | None
    unit: Unit
    model_a: str
    model_b: str
    relation: Relation
    difference: float
    ci_low: float
    ci_high: float
    effect: float
    effect_low: float
    effect_high: float
    t: float
    p_value: float
    p_corrected: float
    wilcoxon_w: float
    wilcoxon_p: float
    r_ab: float
    r_ba: float
    n_units: int
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
    return tuple(
        comparison
        for seed, scores in zip(table.seeds, table.scores, strict=True)
        for comparison in _compare(table, seed, "prompt", paired_many(scores.T, counts), level)
    )


def comparisons_over_seeds(
    table: MetricScores, counts: UnitCounts, level: float = LEVEL
) -> tuple[Comparison, ...]:
    """Compare each two models with all seeds together: by image and by prompt, side by side.

    Args:
        table: the scores.
        counts: the resamples, see `benchmarks.rethinking.units.unit_counts`.
        level: below which p-value a difference is called significant.

    Returns:
        Two entries per pair of models, `image` and then `prompt`; none with one seed, where they
        are the same.
    """
    if len(table.seeds) < 2:
        return ()
    images = paired_many(image_scores(table), counts.images)
    prompts = paired_many(prompt_scores(table), counts.prompts)
    both = zip(
        _compare(table, None, "image", images, level),
        _compare(table, None, "prompt", prompts, level),
        strict=True,
    )
    return tuple(comparison for pair in both for comparison in pair)


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
    table: MetricScores, seed: str | None, unit: Unit, found: PairedMany, level: float
) -> list[Comparison]:
    pairs = list(combinations(range(len(table.models)), 2))
    corrected = holm([found.t_p[pair] for pair in pairs])
    dominance = found.dominance
    return [
        Comparison(
            metric=table.metric,
            seed=seed,
            unit=unit,
            model_a=table.models[a],
            model_b=table.models[b],
            relation=_relation(found.t_p[a, b], found.difference[a, b], level),
            difference=float(found.difference[a, b]),
            ci_low=float(found.difference_interval.low[a, b]),
            ci_high=float(found.difference_interval.high[a, b]),
            effect=float(found.effect[a, b]),
            effect_low=float(found.effect_interval.low[a, b]),
            effect_high=float(found.effect_interval.high[a, b]),
            t=float(found.t[a, b]),
            p_value=float(found.t_p[a, b]),
            p_corrected=float(p),
            wilcoxon_w=float(found.wilcoxon_w[a, b]),
            wilcoxon_p=float(found.wilcoxon_p[a, b]),
            r_ab=float(dominance[a, b]),
            r_ba=float(dominance[b, a]),
            n_units=int(found.n[a, b]),
            n_missing=int(found.n_missing[a, b]),
        )
        for (a, b), p in zip(pairs, corrected, strict=True)
    ]


def _relation(p_value: float, difference: float, level: float) -> Relation:
    if not p_value < level:
        return "="
    return ">" if difference > 0 else "<"
