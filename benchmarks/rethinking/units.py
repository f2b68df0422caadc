"""What counts as one observation where every prompt has an image with each of several seeds.

The images of one prompt are alike: a model that draws hands badly draws them badly with every seed.
Counted as independent, S seeds make the sample look S times as large as it is, intervals too narrow
and p-values too small. So the unit is the prompt, with the mean over its seeds; the image stands
beside it for whoever wants to compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.rethinking.generations import MetricScores
from benchmarks.statistics.resampling import ResamplingPlan

Unit = Literal["image", "prompt"]
"""One image of one seed, or one prompt with the mean over its seeds."""


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
    """How often each unit is drawn in each of B resamples.

    Attributes:
        prompts: shape (B, P), prompts drawn with all their images.
        images: shape (B, S P), images drawn one by one, in the order of `image_scores`.
    """

    prompts: FloatArray
    images: FloatArray


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
