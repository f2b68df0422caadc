"""The answer side of GenAI-Bench, and of any benchmark whose images are rated several times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.schema import Answers

LOWEST, HIGHEST = 1, 5
"""Ends of the rating scale."""


@dataclass(frozen=True)
class GenAiAnswers(Answers):
    """Ratings of images and tags of prompts. The clusters are the prompts.

    Attributes:
        images: one row per image, in the benchmark's order: `pair_id` (str), `prompt_id` (str, a
            cluster id), `model` (str, who made the image).
        ratings: shape (images, raters), as released: a few lie outside 1..5. At least one per
            image; NaN where an image has fewer than others.
        skills: tag to the ids of its prompts; a prompt may have none, or several.
    """

    images: pd.DataFrame
    ratings: FloatArray
    skills: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def labels(self) -> FloatArray:
        """Shape (images,): mean rating."""
        mean: FloatArray = np.nanmean(self.ratings, axis=1)
        return mean

    @cached_property
    def cleaned_labels(self) -> FloatArray:
        """Shape (images,): mean of the ratings in 1..5; NaN for an image without one."""
        inside = self._inside
        with np.errstate(invalid="ignore"):
            mean: FloatArray = np.where(inside, self.ratings, 0).sum(axis=1) / inside.sum(axis=1)
        return mean

    @property
    def cleaned_ratings(self) -> FloatArray:
        """`ratings` with NaN for those outside 1..5."""
        return np.where(self._inside, self.ratings, np.nan)

    @property
    def n_outside(self) -> int:
        """Ratings outside 1..5."""
        return int((~self._inside & ~np.isnan(self.ratings)).sum())

    @property
    def untagged(self) -> tuple[str, ...]:
        """Prompts without a tag, in the benchmark's order."""
        tagged = frozenset().union(*self.skills.values())
        return tuple(prompt for prompt in self.clusters if prompt not in tagged)

    def counts(self) -> dict[str, int]:
        """Images, prompts, models and ratings, and the prompts of each tag."""
        return {
            "images": len(self.images),
            "prompts": len(self.clusters),
            "models": self.images["model"].nunique(),
            "ratings": int(np.isfinite(self.ratings).sum()),
            "ratings outside 1-5": self.n_outside,
            "untagged prompts": len(self.untagged),
            **{f"{skill}: prompts": len(prompts) for skill, prompts in self.skills.items()},
        }

    @property
    def _inside(self) -> NDArray[np.bool_]:
        return np.asarray((self.ratings >= LOWEST) & (self.ratings <= HIGHEST))
