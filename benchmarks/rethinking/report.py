"""All measures of a set of scored generations together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.rethinking.generations import MetricScores
from benchmarks.rethinking.perturbation import (
    Perturbation,
    perturbations,
    perturbations_over_seeds,
)
from benchmarks.rethinking.ranking import MetricStability, ModelScore, model_scores, stability
from benchmarks.rethinking.significance import (
    LEVEL,
    Comparison,
    comparisons,
    comparisons_over_seeds,
)
from benchmarks.rethinking.units import unit_counts
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan


@dataclass(frozen=True)
class Report:
    """Everything Re-Thinking asks of a set of scored generations.

    Attributes:
        scores: mean score and rank of each model with each seed.
        stability: whether the ranks hold over the seeds, one entry per metric.
        perturbation: change of the scores of perturbed images, with each seed.
        perturbation_over_seeds: the same for all seeds together, by image and by prompt.
        comparisons: each two models with each seed.
        comparisons_over_seeds: the same for all seeds together, by image and by prompt.
        notes: what cannot be said about a metric, and why.
        plan_seed: seed of the generator of the resamples.
        n_resamples: their number.
    """

    scores: tuple[ModelScore, ...]
    stability: tuple[MetricStability, ...]
    perturbation: tuple[Perturbation, ...]
    perturbation_over_seeds: tuple[Perturbation, ...]
    comparisons: tuple[Comparison, ...]
    comparisons_over_seeds: tuple[Comparison, ...]
    notes: tuple[str, ...]
    plan_seed: int
    n_resamples: int

    def to_json(self) -> dict[str, Any]:
        """JSON values; numbers that are not finite become null, since JSON knows none."""
        plain = _plain(asdict(self))
        assert isinstance(plain, dict)
        return plain


def report(
    tables: Sequence[MetricScores],
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = LEVEL,
) -> Report:
    """Compute all measures; metrics on the same prompts meet the same resamples.

    Args:
        tables: one per metric, see `benchmarks.rethinking.generations`.
        n_resamples: bootstrap resamples of the prompts behind the intervals.
        level: significance level of the paired t-test.
    """
    prompts = tuple(dict.fromkeys(prompt for table in tables for prompt in table.prompts))
    plan = ResamplingPlan.for_revision("rethinking", "generations", prompts, n_resamples)
    parts = [_of_metric(table, plan, level) for table in tables]
    return Report(
        scores=tuple(score for part in parts for score in part.scores),
        stability=tuple(entry for part in parts for entry in part.stability),
        perturbation=tuple(p for part in parts for p in part.perturbation),
        perturbation_over_seeds=tuple(p for part in parts for p in part.perturbation_over_seeds),
        comparisons=tuple(c for part in parts for c in part.comparisons),
        comparisons_over_seeds=tuple(c for part in parts for c in part.comparisons_over_seeds),
        notes=tuple(note for part in parts for note in part.notes),
        plan_seed=plan.seed,
        n_resamples=plan.n_resamples,
    )


def _of_metric(table: MetricScores, plan: ResamplingPlan, level: float) -> Report:
    """The report on one metric."""
    counts = unit_counts(table, plan)
    return Report(
        scores=model_scores(table, plan),
        stability=(stability(table, plan),),
        perturbation=perturbations(table, plan),
        perturbation_over_seeds=perturbations_over_seeds(table, counts),
        comparisons=comparisons(table, plan, level),
        comparisons_over_seeds=comparisons_over_seeds(table, counts, level),
        notes=tuple(_notes(table)),
        plan_seed=plan.seed,
        n_resamples=plan.n_resamples,
    )


def _notes(table: MetricScores) -> list[str]:
    """What a reader of the tables would look for in vain."""
    found = []
    if len(table.models) < 2:
        found.append("one model: no ranks to compare and no pairs to test")
    if len(table.seeds) < 2:
        found.append("one seed: nothing can be said of the stability over seeds")
    if len(table.prompts) < 2:
        found.append("one prompt: no intervals and no t-tests by prompt")
    defined = table.scores[np.isfinite(table.scores)]
    if defined.size == 0:
        found.append("no score at all")
    elif defined.size > 1 and np.ptp(defined) == 0:
        found.append("every score is the same: the metric tells no model from another")
    return [f"{table.metric}: {note}" for note in found]


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
