"""Gain of choosing the best of n images of a prompt by one score, in another: expected over all subsets.

Of N images of one prompt, n are drawn without replacement, and the one with the highest score is
taken. Its expected value, less that of a random image, is the gain G_n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined

LEVEL = 0.95
"""Of the intervals."""
FEWEST = 20
"""Clusters that an interval needs: of 8 it holds the truth in 87 of 100 samples, of 20 in 94."""
_ROUNDING = 1e-12
"""Of a chance: what differs by less is equal."""


def choice_weights(n_images: int, size: int) -> FloatArray:
    """Chance of each image, by ascending score, to be the best of a random subset.

    C(r-1, n-1) / C(N, n) for the r-th of N images and subsets of n, by logarithms of gammas.
    """
    if not 1 <= size <= n_images:
        raise ValueError(f"subsets of {size} cannot be drawn from {n_images} images")
    rank = np.arange(size, n_images + 1)
    log_ways = _log_binomial(rank - 1, size - 1) - _log_binomial(np.array(n_images), size)
    return np.concatenate([np.zeros(size - 1), np.exp(log_ways)])


def expected_gains(scores: ArrayLike, values: ArrayLike, sizes: Sequence[int]) -> FloatArray:
    """Gain of each prompt by n, exact over all subsets; images with equal scores are taken alike.

    `scores` and `values` (P, N), larger is better; `sizes` (S,), each from 1 to N. Returns: shape
    (P, S), in units of the value; NaN where a prompt lacks a score or a value.
    """
    chosen_by, valued = np.asarray(scores, np.float64), np.asarray(values, np.float64)
    if chosen_by.ndim != 2 or chosen_by.shape != valued.shape:
        raise ValueError(f"scores {chosen_by.shape} and values {valued.shape} are no two tables")
    n_prompts, n_images = chosen_by.shape
    known = ~(np.isnan(chosen_by) | np.isnan(valued)).any(axis=1)
    gains = np.full((n_prompts, len(sizes)), np.nan)
    if not known.any():
        return gains
    whole, centred = chosen_by[known], valued[known]
    centred = centred - centred.mean(axis=1, keepdims=True)
    first = scipy.stats.rankdata(whole, "min", axis=1).astype(np.intp) - 1
    last = scipy.stats.rankdata(whole, "max", axis=1).astype(np.intp)
    for column, size in enumerate(sizes):
        # The weights of ranks first + 1 to last, shared.
        summed = np.concatenate([[0.0], np.cumsum(choice_weights(n_images, size))])
        excess = (summed[last] - summed[first]) / (last - first) - 1.0 / n_images
        excess[np.abs(excess) < _ROUNDING] = 0.0
        gains[known, column] = (excess * centred).sum(axis=1)
    return gains


def gains_between_raters(ratings: ArrayLike, sizes: Sequence[int]) -> FloatArray:
    """What choosing by half of the raters gains under the others; shape (P, S), as `expected_gains`.

    Who chooses and values by the same noisy ratings takes luck for quality, and claims more than
    there is. `ratings` (P, N, R), those of an image first and NaN after them. Of the r ratings of each
    image, r // 2 neighbours in their circle choose and the others value; the mean is over as many
    turns of the circles as the image with the most has ratings, so that all of that image choose
    equally often. NaN for a prompt with an image of fewer than two.
    """
    given = np.asarray(ratings, np.float64)
    if given.ndim != 3:
        raise ValueError(f"ratings {given.shape} are not those of images of prompts")
    n_raters = np.isfinite(given).sum(axis=2)
    turns = np.where((n_raters >= 2).all(axis=1), n_raters.max(axis=1, initial=0), 0)
    totals = np.zeros((len(given), len(sizes)))
    for turn in range(turns.max(initial=0)):
        turned = turn < turns
        of, n = given[turned], n_raters[turned, :, np.newaxis]
        chooses = (np.arange(given.shape[2]) - turn) % n < n // 2
        by, under = np.where(chooses, of, np.nan), np.where(chooses, np.nan, of)
        totals[turned] += expected_gains(mean_of_defined(by, 2), mean_of_defined(under, 2), sizes)
    gains: FloatArray = np.where(turns > 0, totals.T / np.maximum(turns, 1), np.nan).T
    return gains


@dataclass(frozen=True, eq=False)
class GainCurve:
    """Mean gain over prompts for each of S sizes, with 95 % intervals over resampled clusters."""

    sizes: tuple[int, ...]  # n, images that are chosen from, ascending
    draws: FloatArray  # shape (1 + B, S), the sample and its resamples; NaN without any cluster
    n_prompts: int  # with a gain
    n_missing: int  # without one
    n_clusters: int  # with a gain

    @property
    def values(self) -> FloatArray:
        """Shape (S,), in units of the value."""
        found: FloatArray = self.draws[0]
        return found

    @cached_property
    def ends(self) -> FloatArray:
        """Shape (2, S), lower and upper ends of the intervals; NaN with fewer than `FEWEST` clusters."""
        return self._interval(self.draws, LEVEL)

    def share_of(self, other: GainCurve) -> FloatArray:
        """Shape (3, S): this gain as a share of another over the same resamples, and its interval.

        NaN where the interval of the other holds 0: a share of what may be nothing says nothing.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = self.draws / other.draws
        found = np.vstack([shares[:1], self._interval(shares, LEVEL)])
        found[:, ~(other.ends[0] > 0.0)] = np.nan
        return found

    @cached_property
    def falls_from(self) -> int | None:
        """The n from which on choosing from more surely gains less; None where none is.

        Of the smaller n whose gain exceeds that of the largest by an interval, corrected for all of
        them (Bonferroni), the one with the highest gain.
        """
        tested = len(self.sizes) - 1
        if tested < 1:
            return None
        level = 1.0 - (1.0 - LEVEL) / tested
        change = self._interval(self.draws[:, -1:] - self.draws[:, :-1], level)
        fallen = np.flatnonzero(change[1] < 0.0)
        return self.sizes[int(fallen[np.argmax(self.values[fallen])])] if fallen.size else None

    def _interval(self, draws: FloatArray, level: float) -> FloatArray:
        found = np.full((2, draws.shape[1]), np.nan)
        if self.n_clusters >= FEWEST:
            known, tail = np.isfinite(draws[0]), (1.0 - level) / 2.0
            # A resample without any of these clusters says nothing.
            drawn = draws[1:][np.isfinite(draws[1:, known]).all(axis=1)]
            found[:, known] = np.quantile(drawn[:, known], [tail, 1.0 - tail], axis=0)
        return found


def gain_curve(
    gains: FloatArray, sizes: Sequence[int], cluster_of: IntArray, plan: ResamplingPlan
) -> GainCurve:
    """Mean of the gains of prompts; beyond half of the images it rests on few independent subsets.

    `gains` (P, S); NaN in a row: no gain of that prompt is known; `cluster_of` (P,): places in the
    clusters of the plan, which are resampled.
    """
    known = np.isfinite(gains).all(axis=1)
    totals = np.zeros((len(plan.clusters), len(sizes) + 1))
    np.add.at(totals, cluster_of[known], np.column_stack([gains[known], np.ones(known.sum())]))
    summed = plan.draws @ totals
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = summed[:, :-1] / summed[:, -1:]
    return GainCurve(
        sizes=tuple(sizes),
        draws=draws,
        n_prompts=int(known.sum()),
        n_missing=int((~known).sum()),
        n_clusters=int((totals[:, -1] > 0).sum()),
    )


def mean_curve(curves: Sequence[GainCurve]) -> GainCurve:
    """Mean of several curves over the same resamples; the fewest prompts of any, the most missing."""
    return GainCurve(
        curves[0].sizes,
        np.mean([one.draws for one in curves], axis=0),
        min(one.n_prompts for one in curves),
        max(one.n_missing for one in curves),
        min(one.n_clusters for one in curves),
    )


def _log_binomial(n: np.ndarray, k: int) -> FloatArray:
    found: FloatArray = (
        scipy.special.gammaln(n + 1) - math.lgamma(k + 1) - scipy.special.gammaln(n - k + 1)
    )
    return found
