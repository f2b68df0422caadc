"""Measures of Re-Thinking: ranks of models over seeds, significance of differences, perturbed images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.errors import SubmitterError
from benchmarks.rows import notes
from benchmarks.statistics.concordance import (
    ResampledStability,
    SeedStability,
    competition_ranks,
    resampled_stability,
    seed_stability,
)
from benchmarks.statistics.intervals import percentile
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.paired import paired_many, rounded_wilcoxon
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean
from benchmarks.tables import read_table

KEYS = ("metric", "model", "seed", "prompt_id")
REQUIRED = (*KEYS, "score")
PERTURBED = "perturbed_score"


@dataclass(frozen=True)
class MetricScores:
    """The scores of one metric; M models, S seeds, P prompts, in order of first appearance."""

    metric: str  # its name
    models: tuple[str, ...]  # names, length M
    seeds: tuple[str, ...]  # names, length S
    prompts: tuple[str, ...]  # ids, length P
    scores: FloatArray  # shape (S, M, P), higher is better; NaN where the metric gave no score
    # shape (S, M, P), the same for the perturbed images; NaN where not scored
    perturbed: FloatArray


def read_generations(path: Path) -> tuple[MetricScores, ...]:
    """Read a CSV file of scored generations."""
    return tabulate(read_table(path))


def tabulate(frame: pd.DataFrame) -> tuple[MetricScores, ...]:
    """Check a table of scored generations and arrange it by metric.

    One table per metric, in order of first appearance.
    """
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise SubmitterError(
            "missing_columns",
            f"The table lacks the columns {', '.join(missing)}; it has "
            f"{', '.join(map(str, frame.columns)) or 'none'}.",
            f"It needs {', '.join(REQUIRED)}, and {PERTURBED} for the perturbation.",
        )
    if frame.empty:
        raise SubmitterError("no_scores", "The table has no scores.", "Add one line per score.")
    named = frame[list(KEYS)].astype(str).reset_index(drop=True)
    _check_names(named)
    named["score"] = _numbers(frame, "score")
    named[PERTURBED] = _numbers(frame, PERTURBED) if PERTURBED in frame.columns else np.nan
    return tuple(_of_metric(metric, part) for metric, part in _groups(named, "metric"))


def _check_names(named: pd.DataFrame) -> None:
    for column in KEYS:
        empty = np.flatnonzero(named[column].str.strip() == "")
        if empty.size:
            raise SubmitterError(
                "empty_name",
                f"Line {empty[0] + 2} has no {column}.",
                f"Every line names its {', '.join(KEYS)}.",
            )
    twice = np.flatnonzero(named.duplicated(list(KEYS)))
    if twice.size:
        keys = ", ".join(f"{key} {named[key].iloc[twice[0]]!r}" for key in KEYS)
        raise SubmitterError(
            "duplicate_scores",
            f"{twice.size} lines repeat an earlier one, the first is line {twice[0] + 2}: {keys}.",
            "Keep one score per metric, model, seed and prompt.",
        )


def _numbers(frame: pd.DataFrame, column: str) -> FloatArray:
    cells = frame[column].reset_index(drop=True)
    blank = (cells.isna() | (cells.astype(str).str.strip() == "")).to_numpy()
    values = pd.to_numeric(cells.where(~blank), errors="coerce").to_numpy(np.float64)
    bad = np.flatnonzero(~blank & ~np.isfinite(values))
    if bad.size:
        raise SubmitterError(
            "bad_score",
            f"Line {bad[0] + 2}: {column} {cells.iloc[bad[0]]!r} is not a finite number.",
            "Leave the cell empty where the metric gave no score.",
        )
    return values


def _of_metric(metric: str, rows: pd.DataFrame) -> MetricScores:
    models, seeds, prompts = (tuple(rows[key].unique()) for key in ("model", "seed", "prompt_id"))
    grid = pd.MultiIndex.from_product([seeds, models, prompts])
    found = rows.set_index(["seed", "model", "prompt_id"])
    absent = grid[~grid.isin(found.index)]
    if len(absent):
        seed, model, prompt = absent[0]
        raise SubmitterError(
            "different_prompts",
            f"Metric {metric!r} has no line for prompt {prompt!r} of model {model!r} with seed "
            f"{seed!r} ({len(absent)} such lines are missing), but scores it elsewhere.",
            "Score every model with every seed on the same prompts; a line with an empty score "
            "stands for an image that the metric could not score.",
        )
    shape = (len(seeds), len(models), len(prompts))
    in_order = found.loc[grid]
    return MetricScores(
        metric,
        models,
        seeds,
        prompts,
        in_order["score"].to_numpy(np.float64).reshape(shape),
        in_order[PERTURBED].to_numpy(np.float64).reshape(shape),
    )


def _groups(frame: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, part in frame.groupby(column, sort=False):
        yield str(name), part


# Unit of observation.


Unit = Literal["image", "prompt"]
"""Unit of observation: an image, or a prompt with the mean over its seeds.

Images of one prompt are alike: counted as independent, S seeds make the sample look S times as
large as it is, intervals too narrow and p-values too small. So the unit is the prompt; the image
stands beside it for comparison."""


def image_scores(table: MetricScores) -> FloatArray:
    """Every image a row: shape (S P, M), seeds one after the other."""
    return by_image(table.scores)


def prompt_scores(table: MetricScores) -> FloatArray:
    """Every prompt a row: shape (P, M), the mean over the seeds.

    NaN where a seed lacks the score: a mean over other seeds would not be the same quantity.
    """
    mean: FloatArray = table.scores.mean(axis=0).T
    return mean


def by_image(values: FloatArray) -> FloatArray:
    """From shape (S, M, P) to (S P, M)."""
    n_seeds, n_models, n_prompts = values.shape
    return values.transpose(0, 2, 1).reshape(n_seeds * n_prompts, n_models)


@dataclass(frozen=True)
class UnitCounts:
    """Draws of each unit in each of B resamples."""

    prompts: FloatArray  # shape (B, P), prompts drawn with all their images
    images: FloatArray  # shape (B, S P), images drawn one by one, in the order of `image_scores`


def unit_counts(table: MetricScores, plan: ResamplingPlan) -> UnitCounts:
    """The resamples of a plan for the prompts, and as many drawn from its seed for the images."""
    prompts = plan.counts_of(table.prompts)
    if len(table.seeds) == 1:
        return UnitCounts(prompts, prompts)
    images = tuple(f"{seed}/{prompt}" for seed in table.seeds for prompt in table.prompts)
    return UnitCounts(prompts, replace(plan, clusters=images).counts)


def spread(scores: FloatArray) -> float:
    """Standard deviation (n - 1) of the defined scores; 0 where all are equal, NaN below two."""
    defined = scores[np.isfinite(scores)]
    if defined.size < 2:
        return float("nan")
    return 0.0 if np.ptp(defined) == 0 else float(defined.std(ddof=1))


# Scores and ranks with each seed.


@dataclass(frozen=True)
class ModelScore:
    """Score and rank of a model with a seed."""

    metric: str  # the metric
    seed: str  # the seed
    model: str  # the model
    value: float  # mean score over the prompts with a score, in units of the score; NaN if none has
    # competition rank among the models, highest first (1, 2, 2, 4); None without score
    rank: int | None
    n_prompts: int  # prompts with a score
    n_missing: int  # prompts without; left out of the mean
    ci_low: float  # lower end of the 95 % interval (prompts resampled); NaN below two prompts
    ci_high: float  # upper end


@dataclass(frozen=True)
class Interval:
    """A 95 % percentile interval from resamples of the prompts; NaN where there is none."""

    low: float
    high: float


@dataclass(frozen=True)
class MetricStability:
    """Stability of a metric's ranking of the models over seeds.

    A resample of the prompts adds its own noise to the ranking, so tau, W and the share of like
    rankings are lower in most resamples than in the sample: the intervals say how far the choice of
    prompts moves these measures, and may lie wholly below a perfect value.
    """

    metric: str  # the metric
    # models that are ranked: those with a score with every seed. Positions in `over_seeds` are
    # positions here.
    models: tuple[str, ...]
    seeds: tuple[str, ...]  # the seeds
    over_seeds: SeedStability  # the comparison; its `stable` is None where nothing can be compared
    # share of the resamples of the prompts in which all seeds give one ranking, 0..1; NaN where
    # nothing can be compared. Near 1 or 0, the verdict does not hang on the choice of prompts.
    stable_share: float
    identical_share: Interval  # interval of the share of like rankings among the pairs of seeds
    tau_mean: Interval  # interval of the mean tau between two seeds
    kendall_w: Interval  # interval of Kendall's W
    swapped: Interval  # interval of the number of swapped pairs of models
    note: str  # why nothing can be compared, or which models are left out; empty as a rule


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


# Comparisons of two models.


LEVEL = 0.05
"""Significance level of the paper."""
Relation = Literal["<", "=", ">"]


@dataclass(frozen=True)
class Comparison:
    """Two models on the same prompts, with one seed or with all."""

    metric: str  # the metric
    seed: str | None  # the seed; None for all seeds together
    # what counts as one observation. With one seed a prompt is its image. With all, `prompt` (the
    # mean over its seeds; trust this one) or `image` (each image by itself: too small a p and too
    # narrow an interval, since images of one prompt are alike).
    unit: Unit
    model_a: str  # one model
    model_b: str  # the other
    # `>` where a is significantly better than b by the paired t-test (p below the level,
    # uncorrected, as in the paper), `<` where b is, else `=`
    relation: Relation
    difference: float  # mean of a less b, in units of the score
    ci_low: float  # lower end of its 95 % interval (BCa, units resampled); NaN below two units
    ci_high: float  # upper end
    # Cohen's d_z, the difference over the standard deviation of the differences; 0 where all
    # differences are zero, infinite where all are one other number
    effect: float
    # lower end of its 95 % interval (BCa); NaN below two units and where most resamples are without
    # spread
    effect_low: float
    effect_high: float  # upper end
    t: float  # statistic of the paired t-test; 0 where all differences are zero
    p_value: float  # its two-sided p; 1 where all differences are zero; NaN below two units
    # the same after Holm's correction for all pairs of this metric, seed and unit
    p_corrected: float
    wilcoxon_w: float  # statistic of Wilcoxon's signed-rank test
    wilcoxon_p: float  # its two-sided p
    # the same where differences are compared at nine digits; another value hangs on rounding
    wilcoxon_p_rounded: float
    r_ab: float  # dominance ratio, share of units on which a scores strictly higher
    r_ba: float  # the same for b; the rest are ties
    n_units: int  # units on which both have a score (a prompt: with every seed)
    n_missing: int  # units on which one has none; left out


def comparisons(
    table: MetricScores, plan: ResamplingPlan, level: float = LEVEL
) -> tuple[Comparison, ...]:
    """Compare each two models with each seed."""
    counts = plan.counts_of(table.prompts)
    return tuple(
        comparison
        for seed, scores in zip(table.seeds, table.scores, strict=True)
        for comparison in _compare(table, seed, "prompt", scores.T, counts=counts, level=level)
    )


def comparisons_over_seeds(
    table: MetricScores, counts: UnitCounts, level: float = LEVEL
) -> tuple[Comparison, ...]:
    """Compare each two models with all seeds together: by image and by prompt, side by side.

    Two entries per pair of models, `image` and then `prompt`; none with one seed, where they are
    the same.
    """
    if len(table.seeds) < 2:
        return ()
    both = zip(
        _compare(table, None, "image", image_scores(table), counts=counts.images, level=level),
        _compare(table, None, "prompt", prompt_scores(table), counts=counts.prompts, level=level),
        strict=True,
    )
    return tuple(comparison for pair in both for comparison in pair)


def _compare(
    table: MetricScores,
    seed: str | None,
    unit: Unit,
    values: FloatArray,
    *,
    counts: FloatArray,
    level: float,
) -> list[Comparison]:
    """Each two models by `values`, shape (units, models), with the resamples `counts` (B, units)."""
    found = paired_many(values, counts)
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
            wilcoxon_p_rounded=_rounded_p(values[:, a], values[:, b]),
            r_ab=float(dominance[a, b]),
            r_ba=float(dominance[b, a]),
            n_units=int(found.n[a, b]),
            n_missing=int(found.n_missing[a, b]),
        )
        for (a, b), p in zip(pairs, corrected, strict=True)
    ]


def _rounded_p(a: FloatArray, b: FloatArray) -> float:
    both = np.isfinite(a) & np.isfinite(b)
    return rounded_wilcoxon(a[both], b[both]).p_value


def _relation(p_value: float, difference: float, level: float) -> Relation:
    if not p_value < level:
        return "="
    return ">" if difference > 0 else "<"


# Perturbed images.


@dataclass(frozen=True)
class Perturbation:
    """Change of the scores of one model's perturbed images: delta = |J(prompt, I) - J(prompt, I')|."""

    metric: str  # the metric J
    model: str  # the model that made the images
    seed: str | None  # its seed; None for all seeds whose perturbed images were scored, together
    # what counts as one observation: with one seed `prompt`, its image; with all, `prompt` (the
    # mean delta over its seeds; trust this one) or `image` (each by itself: too narrow an interval,
    # since images of one prompt are alike)
    unit: Unit
    mean: float  # mean delta over the units, in units of the score
    # largest delta of a unit; of it there is no interval, since no resample of the prompts holds a
    # larger one
    largest: float
    # standard deviation of the model's scores over its images (those seeds), in units of the score;
    # the measure of what counts as a large change
    spread: float
    mean_of_spread: float  # mean / spread; NaN where all scores are equal
    largest_of_spread: float  # largest / spread; likewise
    n_units: int  # units with both scores
    # units for which one of the two scores is missing; left out. A prompt is missing if it has both
    # with no seed.
    n_missing: int
    ci_low: float  # lower end of the 95 % interval of the mean (units resampled); NaN below two
    ci_high: float  # upper end


def perturbations(table: MetricScores, plan: ResamplingPlan) -> tuple[Perturbation, ...]:
    """The change of the scores for each seed and model of which perturbed images were scored."""
    counts = plan.counts_of(table.prompts)
    found: list[Perturbation] = []
    for s, seed in enumerate(table.seeds):
        deltas = np.abs(table.scores[s] - table.perturbed[s]).T
        resamples = resampled_mean(deltas, counts)
        found += [
            _change(
                table, int(m), seed, "prompt", (deltas[:, m], table.scores[s, m], resamples[:, m])
            )
            for m in np.flatnonzero(np.isfinite(table.perturbed[s]).any(axis=1))
        ]
    return tuple(found)


def perturbations_over_seeds(table: MetricScores, counts: UnitCounts) -> tuple[Perturbation, ...]:
    """The change with all seeds together, by image and by prompt, side by side.

    Two entries, `image` and then `prompt`, for each model of which perturbed images of at least two
    seeds were scored.
    """
    changed: BoolArray = np.any(np.isfinite(table.perturbed), axis=2)
    models = np.flatnonzero(changed.sum(axis=0) > 1)
    deltas = np.abs(table.scores - table.perturbed)[:, models]
    of_units = {"image": by_image(deltas), "prompt": mean_of_defined(deltas).T}
    resamples = {
        unit: resampled_mean(values, counts.images if unit == "image" else counts.prompts)
        for unit, values in of_units.items()
    }
    found: list[Perturbation] = []
    for column, m in enumerate(models):
        seeds = changed[:, m]
        scores = table.scores[seeds, m]
        images, prompts = deltas[seeds, column].ravel(), of_units["prompt"][:, column]
        found += [
            _change(table, int(m), None, "image", (images, scores, resamples["image"][:, column])),
            _change(
                table, int(m), None, "prompt", (prompts, scores, resamples["prompt"][:, column])
            ),
        ]
    return tuple(found)


def _change(
    table: MetricScores,
    model: int,
    seed: str | None,
    unit: Unit,
    values: tuple[FloatArray, FloatArray, FloatArray],
) -> Perturbation:
    """Sum up the deltas of the units, given with the images' scores and the resampled means."""
    deltas, scores, resamples = values
    defined = deltas[np.isfinite(deltas)]
    mean = float(defined.mean()) if defined.size else math.nan
    largest = float(defined.max()) if defined.size else math.nan
    scale = spread(scores)
    several = defined.size > 1
    interval = _interval(resamples) if several else Interval(math.nan, math.nan)
    return Perturbation(
        metric=table.metric,
        model=table.models[model],
        seed=seed,
        unit=unit,
        mean=mean,
        largest=largest,
        spread=scale,
        mean_of_spread=mean / scale if scale else math.nan,
        largest_of_spread=largest / scale if scale else math.nan,
        n_units=int(defined.size),
        n_missing=int(deltas.size - defined.size),
        ci_low=interval.low,
        ci_high=interval.high,
    )
