"""Scores of M models by one metric on the n prompts of a slice, and the mean that stands for each.

Where the metric scores whole images, a model's value is the mean over the prompts. Where it scores
the elements of a prompt, the value of a skill is the mean over all elements of that skill
(EvalMuse-40K, Table 10), and a prompt weighs as much as it has elements: a ratio of two sums over
prompts. The first is the second with weights of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.arrays import FloatArray, IntArray

_SMALL, _LARGE = 1e-100, 1e100
"""Squares of numbers between these, and sums of many, are within the range of doubles."""


@dataclass(frozen=True)
class SliceScores:
    """One metric on one slice.

    Attributes:
        sums: shape (n, M), summed scores of each prompt; 0 where there is none.
        weights: shape (n, M), how many scores were summed; 0 where there is none.
        plain: whether every weight is 0 or 1.
    """

    sums: FloatArray
    weights: FloatArray
    plain: bool = False

    @classmethod
    def of_prompts(cls, values: FloatArray) -> SliceScores:
        """One value for each prompt and model, shape (n, M); NaN where there is none."""
        there = np.isfinite(values)
        return cls(np.where(there, values, 0.0), there.astype(np.float64), plain=True)

    @classmethod
    def of_elements(cls, scores: FloatArray, prompts: IntArray, n_prompts: int) -> SliceScores:
        """Scores of elements.

        Args:
            scores: shape (E, M), NaN where there is none.
            prompts: shape (E,), place of each element's prompt in the slice.
            n_prompts: of the slice.
        """
        there = np.isfinite(scores)
        sums, weights = np.zeros((2, n_prompts, scores.shape[1]))
        np.add.at(sums, prompts, np.where(there, scores, 0.0))
        np.add.at(weights, prompts, there)
        return cls(sums, weights)

    def of_models(self, places: IntArray) -> SliceScores:
        """Those of some models."""
        return SliceScores(self.sums[:, places], self.weights[:, places], self.plain)

    @cached_property
    def n_prompts(self) -> IntArray:
        """Shape (M,), prompts with a score."""
        return np.asarray((self.weights > 0).sum(axis=0), np.intp)

    @cached_property
    def means(self) -> FloatArray:
        """Shape (M,); NaN for a model without any score."""
        with np.errstate(invalid="ignore"):
            found: FloatArray = self.sums.sum(axis=0) / self.weights.sum(axis=0)
        return found

    @cached_property
    def by_prompt(self) -> FloatArray:
        """Shape (n, M), values whose mean over the prompts is the model's; NaN where there is none.

        Of a ratio these are the pseudo-values of its linearisation, R + (s - R w) / mean w, so
        that what holds for means of prompts holds for ratios too (Cochran 1977, section 2.11). Of
        plain values they are the values.
        """
        if self.plain:
            return np.where(self.weights > 0, self.sums, np.nan)
        with np.errstate(invalid="ignore"):
            mean_weight = self.weights.sum(axis=0) / self.n_prompts
            moved = (self.sums - self.means * self.weights) / mean_weight
        return np.where(self.weights > 0, self.means + moved, np.nan)

    @cached_property
    def unit(self) -> float:
        """1, or a power of two near the largest value where squares would leave their range."""
        largest = float(np.abs(np.nan_to_num(self.by_prompt)).max(initial=0.0))
        if not largest or _SMALL < largest < _LARGE:
            return 1.0
        return math.ldexp(1.0, max(-1000, min(1000, math.frexp(largest)[1])))

    @property
    def in_range(self) -> FloatArray:
        """`by_prompt` in this unit: no test depends on the unit of a score."""
        return self.by_prompt if self.unit == 1.0 else self.by_prompt / self.unit

    def resampled(self, counts: FloatArray) -> FloatArray:
        """The means in each resample of the prompts.

        Args:
            counts: shape (B, n), how often each prompt is drawn.

        Returns:
            Shape (M, B); NaN where nothing with a score is drawn.
        """
        if self.plain and self.weights.all():
            drawn = counts.sum(axis=1)
        else:
            drawn = self.weights.T @ counts.T
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = (self.sums.T @ counts.T) / drawn
        return found
