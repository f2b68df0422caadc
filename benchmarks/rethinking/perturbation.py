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

from benchmarks.rethinking.generations import MetricScores
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean


@dataclass(frozen=True)
class Perturbation:
    """How far the scores of one model's images move: delta = |J(prompt, I) - J(prompt, I')|.

    Attributes:
        metric: the metric J.
        model: the model that made the images.
        seed: its seed.
        mean: mean delta, in units of the score.
        largest: largest delta.
        n_prompts: prompts with both scores.
        n_missing: prompts for which one of the two scores is missing; left out.
        ci_low: lower end of the 95 % interval of the mean (prompts resampled).
        ci_high: upper end.
    """

    metric: str
    model: str
    seed: str
    mean: float
    largest: float
    n_prompts: int
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
    deltas = np.abs(table.scores - table.perturbed)
    counts = plan.counts_of(table.prompts)
    found = []
    for s, seed in enumerate(table.seeds):
        for m, model in enumerate(table.models):
            if np.isnan(table.perturbed[s, m]).all():
                continue
            values = deltas[s, m]
            defined = values[np.isfinite(values)]
            low, high = _interval(resampled_mean(values, counts), defined.size)
            found.append(
                Perturbation(
                    metric=table.metric,
                    model=model,
                    seed=seed,
                    mean=float(defined.mean()) if defined.size else math.nan,
                    largest=float(defined.max()) if defined.size else math.nan,
                    n_prompts=int(defined.size),
                    n_missing=int(values.size - defined.size),
                    ci_low=low,
                    ci_high=high,
                )
            )
    return tuple(found)


def _interval(resamples: NDArray[np.float64], n_prompts: int) -> tuple[float, float]:
    if n_prompts < 2:
        return math.nan, math.nan
    low, high = np.nanquantile(resamples, [0.025, 0.975])
    return float(low), float(high)
