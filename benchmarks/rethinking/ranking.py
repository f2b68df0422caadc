"""Scores and ranks of the models with each seed, and whether the ranks hold over seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.rethinking.generations import MetricScores
from benchmarks.rows import notes
from benchmarks.statistics.intervals import percentile
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean
from benchmarks.statistics.seeds import (
    ResampledStability,
    SeedStability,
    competition_ranks,
    resampled_stability,
    seed_stability,
)


@dataclass(frozen=True)
class ModelScore:
    """One model with one seed.

    Attributes:
        metric: the metric.
        seed: the seed.
        model: the model.
        value: mean score over the prompts with a score, in units of the score; NaN if none has.
        rank: competition rank among the models, highest first (1, 2, 2, 4); None without score.
        n_prompts: prompts with a score.
        n_missing: prompts without; left out of the mean.
        ci_low: lower end of the 95 % interval (prompts resampled); NaN below two prompts.
        ci_high: upper end.
    """

    metric: str
    seed: str
    model: str
    value: float
    rank: int | None
    n_prompts: int
    n_missing: int
    ci_low: float
    ci_high: float


@dataclass(frozen=True)
class Interval:
    """A 95 % percentile interval from resamples of the prompts; NaN where there is none."""

    low: float
    high: float


@dataclass(frozen=True)
class MetricStability:
    """Whether a metric ranks the models alike with every seed.

    A resample of the prompts adds its own noise to the ranking, so tau, W and the share of like
    rankings are lower in most resamples than in the sample: the intervals say how far the choice of
    prompts moves these measures, and may lie wholly below a perfect value.

    Attributes:
        metric: the metric.
        models: models that are ranked: those with a score with every seed. Positions in
            `over_seeds` are positions here.
        seeds: the seeds.
        over_seeds: the comparison; its `stable` is None where nothing can be compared.
        stable_share: share of the resamples of the prompts in which all seeds give one ranking,
            0..1; NaN where nothing can be compared. Near 1 or 0, the verdict does not hang on
            the choice of prompts.
        identical_share: interval of the share of like rankings among the pairs of seeds.
        tau_mean: interval of the mean tau between two seeds.
        kendall_w: interval of Kendall's W.
        swapped: interval of the number of swapped pairs of models.
        note: why nothing can be compared, or which models are left out; empty as a rule.
    """

    metric: str
    models: tuple[str, ...]
    seeds: tuple[str, ...]
    over_seeds: SeedStability
    stable_share: float
    identical_share: Interval
    tau_mean: Interval
    kendall_w: Interval
    swapped: Interval
    note: str


def model_scores(table: MetricScores, plan: ResamplingPlan) -> tuple[ModelScore, ...]:
    """Mean score and rank of every model with every seed, in the order of the table."""
    means = mean_of_defined(table.scores, axis=2)
    resamples = _resampled_means(table, plan)
    n_scored = np.isfinite(table.scores).sum(axis=2)
    found = []
    for s, seed in enumerate(table.seeds):
        ranks = _ranks(means[s])
        low, high = percentile(resamples[:, s, :].T).ends
        for m, model in enumerate(table.models):
            n = int(n_scored[s, m])
            found.append(
                ModelScore(
                    metric=table.metric,
                    seed=seed,
                    model=model,
                    value=float(means[s, m]),
                    rank=ranks[m],
                    n_prompts=n,
                    n_missing=len(table.prompts) - n,
                    # One prompt varies with nothing: an interval of no width promises too much.
                    ci_low=float(low[m]) if n > 1 else math.nan,
                    ci_high=float(high[m]) if n > 1 else math.nan,
                )
            )
    return tuple(found)


def stability(table: MetricScores, plan: ResamplingPlan) -> MetricStability:
    """Compare the rankings with each seed; models without a score with some seed are left out."""
    means = mean_of_defined(table.scores, axis=2)
    ranked = np.flatnonzero(np.isfinite(means).all(axis=0))
    over_seeds = seed_stability(means[:, ranked])
    models = tuple(table.models[m] for m in ranked)
    undefined = np.full(plan.n_resamples, np.nan)
    found = ResampledStability(*[undefined] * 5)
    # One prompt varies with nothing: every resample would be the sample again.
    if over_seeds.stable is not None and len(table.prompts) > 1:
        found = resampled_stability(_resampled_means(table, plan)[:, :, ranked])
    defined = np.isfinite(found.stable)
    return MetricStability(
        metric=table.metric,
        models=models,
        seeds=table.seeds,
        over_seeds=over_seeds,
        stable_share=float(found.stable[defined].mean()) if defined.any() else math.nan,
        identical_share=_interval(found.identical_share),
        tau_mean=_interval(found.tau_mean),
        kendall_w=_interval(found.kendall_w),
        swapped=_interval(found.swapped),
        note=_note(table, models, over_seeds),
    )


def _interval(resamples: FloatArray) -> Interval:
    low, high = percentile(resamples[None, :]).ends
    return Interval(float(low[0]), float(high[0]))


def _note(table: MetricScores, models: tuple[str, ...], over_seeds: SeedStability) -> str:
    left_out = [model for model in table.models if model not in models]
    few = "one seed" if len(table.seeds) < 2 else "fewer than two models"
    return notes(
        f"left out, no score with some seed: {', '.join(left_out)}" if left_out else "",
        f"nothing to compare: {few}" if over_seeds.stable is None else "",
        "no intervals: one prompt" if len(table.prompts) == 1 else "",
    )


def _resampled_means(table: MetricScores, plan: ResamplingPlan) -> FloatArray:
    """Shape (B, S, M): the means in each resample of the prompts, one draw for all of them."""
    n_seeds, n_models, n_prompts = table.scores.shape
    by_prompt = table.scores.reshape(n_seeds * n_models, n_prompts).T
    return resampled_mean(by_prompt, plan.counts_of(table.prompts)).reshape(-1, n_seeds, n_models)


def _ranks(scores: FloatArray) -> list[int | None]:
    ranks: list[int | None] = [None] * scores.size
    defined = np.flatnonzero(np.isfinite(scores))
    for model, rank in zip(defined, competition_ranks(scores[defined]), strict=True):
        ranks[model] = int(rank)
    return ranks
