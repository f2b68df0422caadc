"""The smallest visible-to-a-program change of an image, and what it does to a score.

Re-Thinking raises every channel value below 255 by one; nobody sees the difference, so a score
should not move. The change belongs on the decoded 8-bit image, before anything a metric does to
it, and the changed image must be kept without loss (PNG).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.rethinking.generations import MetricScores
from benchmarks.rethinking.units import Unit, UnitCounts, by_image, spread
from benchmarks.statistics.intervals import percentile
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean


@dataclass(frozen=True)
class Perturbation:
    """How far the scores of one model's images move: delta = |J(prompt, I) - J(prompt, I')|.

    Attributes:
        metric: the metric J.
        model: the model that made the images.
        seed: its seed; None for all seeds whose perturbed images were scored, together.
        unit: what counts as one observation: with one seed `prompt`, its image; with all, `prompt`
            (the mean delta over its seeds; trust this one) or `image` (each by itself: too narrow
            an interval, since images of one prompt are alike).
        mean: mean delta over the units, in units of the score.
        largest: largest delta of a unit; of it there is no interval, since no resample of the
            prompts holds a larger one.
        spread: standard deviation of the model's scores over its images (those seeds), in units
            of the score; the measure of what counts as a large change.
        mean_of_spread: mean / spread; NaN where all scores are equal.
        largest_of_spread: largest / spread; likewise.
        n_units: units with both scores.
        n_missing: units for which one of the two scores is missing; left out. A prompt is missing
            if it has both with no seed.
        ci_low: lower end of the 95 % interval of the mean (units resampled); NaN below two.
        ci_high: upper end.
    """

    metric: str
    model: str
    seed: str | None
    unit: Unit
    mean: float
    largest: float
    spread: float
    mean_of_spread: float
    largest_of_spread: float
    n_units: int
    n_missing: int
    ci_low: float
    ci_high: float


def plus_one(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Raise every channel value below 255 by one; 255 stays.

    Args:
        image: any shape, dtype uint8: decoded channel values.

    Returns:
        The changed copy.

    Raises:
        ValueError: the values are not 8-bit; a float image has no smallest step.
    """
    if image.dtype != np.uint8:
        raise ValueError(f"an image of 8-bit channel values is needed, not of {image.dtype}")
    return image + (image < 255).astype(np.uint8)


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

    Args:
        table: the scores.
        counts: the resamples, see `benchmarks.rethinking.units.unit_counts`.

    Returns:
        Two entries, `image` and then `prompt`, for each model of which perturbed images of at
        least two seeds were scored.
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
    low, high = _interval(resamples, defined.size)
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
        ci_low=low,
        ci_high=high,
    )


def _interval(resamples: FloatArray, n_units: int) -> tuple[float, float]:
    if n_units < 2:
        return math.nan, math.nan
    low, high = percentile(resamples[None, :]).ends
    return float(low[0]), float(high[0])
