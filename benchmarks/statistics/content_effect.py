"""Effect on a score of changes that leave the content, in units of its spread over right and wrong.

A score that is about what the prompt says hardly moves when a picture is saved as JPEG or framed. The
limit of the verdict is a constant, stated before results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray, unit_of
from benchmarks.statistics.prompt_effect import MIN_SIZE

LIMIT = 0.5
"""A change moves a score where the whole interval of its effect lies further from 0 than this."""
ChangeVerdict = Literal["moved", "undecided", "steady"]

_LEVEL = 0.95


@dataclass(frozen=True)
class ChangeEffect:
    """Mean change of a score, in units of its spread, with an interval.

    The intervals of all changes of one table hold together in 95 of 100 tables (Bonferroni).
    """

    n_images: int  # with the score before and after
    n_missing: int  # images without one of the two
    value: float  # NaN where fewer than `MIN_SIZE` images have both scores
    low: float  # NaN likewise, and where one prompt makes the whole spread
    high: float

    @property
    def verdict(self) -> ChangeVerdict:
        """Whether the interval lies beyond the limit, within it, or on both sides of it."""
        if self.low > LIMIT or self.high < -LIMIT:
            return "moved"
        return "steady" if self.low > -LIMIT and self.high < LIMIT else "undecided"


@dataclass(frozen=True)
class ContentEffect:
    """Effects of several changes on one score."""

    spread: float  # of right and wrong pairs, in units of the score; NaN where it is not known
    changes: tuple[ChangeEffect, ...]


def content_effect(
    scores: ArrayLike, own: ArrayLike, changed: ArrayLike, signs: ArrayLike, rounding: float = 0.0
) -> ContentEffect:
    """Measure how far changes that leave the content move a score.

    The spread is the standard deviation of right and of wrong pairs, half of the weight each, so
    that what lies between the two counts: sqrt((var_r + var_w)/2 + (mean_r - mean_w)^2/4). An effect
    is the mean over images of sign x (after - before), divided by it; its interval is by Student's t
    from the jackknife over prompts, each left out with its images, so that the spread is uncertain
    as well (Quenouille 1956).

    `scores` (P, J), NaN where missing; `own` (J,), right prompt of each image, 0..P-1; `changed`
    (K, J), score of each image with its own prompt under each change; `signs` (K, J), +1 or -1, the
    direction in which each was changed; `rounding`, largest spread that is none, in units of the
    score.
    """
    table, of_image = np.asarray(scores, np.float64), np.asarray(own, np.intp)
    after, turned = np.asarray(changed, np.float64), np.asarray(signs, np.float64)
    if table.ndim != 2 or of_image.shape != table.shape[1:]:
        raise ValueError(f"scores {table.shape} need one prompt for each image: {of_image.shape}")
    if after.ndim != 2 or after.shape[1:] != of_image.shape or turned.shape != after.shape:
        raise ValueError(
            f"changed {after.shape} and signs {turned.shape} need a column for each of "
            f"{len(of_image)} images"
        )
    # Scores near the ends of the range of doubles have squares beyond it.
    unit = unit_of(table, after)
    sample = _Sample(table / unit, after / unit, turned, of_image)
    everything = np.ones(len(table), bool)
    spread = sample.spread(everything)
    known = sample.known
    if spread <= _least(sample):
        spread = 0.0
    if not spread > rounding / unit:
        none = (ChangeEffect(*_counts(row), math.nan, math.nan, math.nan) for row in known)
        return ContentEffect(unit * spread, tuple(none))
    return ContentEffect(unit * spread, tuple(_effects(sample, known)))


@dataclass(frozen=True)
class _Sample:
    """Scores of a table and of its images under each change."""

    table: FloatArray  # shape (P, J)
    after: FloatArray  # shape (K, J)
    signs: FloatArray  # shape (K, J)
    own: IntArray  # shape (J,)

    @property
    def before(self) -> FloatArray:
        """Scores of the right pairs, shape (J,)."""
        found: FloatArray = self.table[self.own, np.arange(len(self.own))]
        return found

    @property
    def known(self) -> BoolArray:
        """Shape (K, J), whether both scores are there."""
        found: BoolArray = ~np.isnan(self.after - self.before)
        return found

    def spread(self, prompts: BoolArray) -> float:
        """Of the pairs of these prompts with their own images; NaN where one kind has no score."""
        images = prompts[self.own]
        part = self.table[np.ix_(prompts, images)]
        right = np.flatnonzero(prompts)[:, None] == self.own[images]
        known = ~np.isnan(part)
        both = part[right & known], part[~right & known]
        if not all(len(one) for one in both):
            return math.nan
        gap = float(both[0].mean() - both[1].mean())
        return math.sqrt(float(both[0].var() + both[1].var()) / 2.0 + gap**2 / 4.0)

    def slope(self, change: int, images: BoolArray) -> float:
        """Mean change of these images, as if all were changed in one direction."""
        moved = self.signs[change] * (self.after[change] - self.before)
        return float(moved[images].mean())


def _effects(sample: _Sample, known: BoolArray) -> Sequence[ChangeEffect]:
    """Of every change; a prompt is left out of numerator and spread together."""
    n_prompts = len(sample.table)
    without = ~np.eye(n_prompts, dtype=bool)
    spreads = np.array([sample.spread(row) or math.nan for row in without])
    spread, found = sample.spread(np.ones(n_prompts, bool)), []
    for change, images in enumerate(known):
        taking_part = np.unique(sample.own[images])
        n = len(taking_part)
        if int(images.sum()) < MIN_SIZE or n < MIN_SIZE:
            found.append(ChangeEffect(*_counts(images), math.nan, math.nan, math.nan))
            continue
        value = sample.slope(change, images) / spread
        left_out = np.array(
            [sample.slope(change, images & (sample.own != p)) / spreads[p] for p in taking_part]
        )
        error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
        level = 1.0 - (1.0 - _LEVEL) / (2.0 * len(known))
        reach = float(scipy.special.stdtrit(n - 1, level)) * error
        found.append(ChangeEffect(*_counts(images), value, value - reach, value + reach))
    return found


def _counts(known: BoolArray) -> tuple[int, int]:
    return int(known.sum()), int((~known).sum())


def _least(sample: _Sample) -> float:
    """What the rounding of the scores themselves can spread them by."""
    size = float(np.abs(sample.table[~np.isnan(sample.table)]).max(initial=0.0))
    return 16.0 * float(np.finfo(np.float64).eps) * size
