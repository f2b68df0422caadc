"""How much each cluster moves a value: the linear influence of clusters on any measure.

A plan's resamples are vectors of multiplicities, so leaving a cluster out and taking it twice are
two more resamples. Half the difference of both is the derivative of the measure by the weight of
that cluster (the infinitesimal jackknife, Efron 1982, chapter 6, as a central difference): it
needs nothing of the measure but that it can be resampled, searches and fits inside it included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.resampling import ResamplingPlan

MAX_BLOCKS = 250
"""More clusters than this are dealt into so many blocks, each left out and doubled as a whole."""
_SAME = 1e-12
"""A value that moved by less than this share of its size did not move: that is rounding."""


@dataclass(frozen=True)
class PerturbedPlan(ResamplingPlan):
    """The resamples of a plan; then each block of clusters left out; then each taken twice.

    Attributes:
        bootstrap: the plan whose resamples come first; `n_resamples` counts all draws.
        n_blocks: number G of blocks: the clusters themselves where there are few.
    """

    bootstrap: ResamplingPlan | None = None
    n_blocks: int = 0

    @classmethod
    def of(cls, plan: ResamplingPlan, most_blocks: int = MAX_BLOCKS) -> Self:
        """The perturbed plan.

        Args:
            plan: gives clusters and resamples.
            most_blocks: largest number of blocks.
        """
        n_blocks = min(len(plan.clusters), most_blocks)
        draws = plan.n_resamples + 2 * n_blocks
        return cls(plan.clusters, plan.seed, draws, bootstrap=plan, n_blocks=n_blocks)

    @cached_property
    def counts(self) -> FloatArray:
        """Shape (B + 2 G, C): multiplicities of the clusters in every draw."""
        if self.bootstrap is None:
            raise ValueError("a perturbed plan is made by PerturbedPlan.of")
        inside = self.block_of == np.arange(self.n_blocks)[:, None]
        return np.vstack([self.bootstrap.counts, 1.0 - inside, 1.0 + inside])

    @cached_property
    def block_of(self) -> IntArray:
        """Shape (C,): block of each cluster.

        They are dealt in turn, so that neighbours, which often share a skill, are in different
        blocks, and the blocks are of one size or differ by one cluster.
        """
        return np.arange(len(self.clusters)) % max(self.n_blocks, 1)

    def blocks_with(self, clusters: IntArray | None) -> BoolArray:
        """Shape (G,): whether a block holds one of these clusters (positions); None: all."""
        found = np.zeros(self.n_blocks, bool)
        found[self.block_of if clusters is None else self.block_of[clusters]] = True
        return found

    def split(self, draws: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values in all draws, shape (..., B + 2 G), as resamples, left out and taken twice."""
        ends = self.n_resamples - 2 * self.n_blocks, self.n_resamples - self.n_blocks
        resamples, without, twice = np.split(draws, ends, axis=-1)
        return resamples, without, twice


def contributions(
    value: FloatArray, without: FloatArray, twice: FloatArray, members: BoolArray
) -> FloatArray:
    """What each block adds to a value: its even share of it, and its influence.

    With D_g = (v(+g) - v(-g)) / 2 · (n² - 1) / n², less its mean over the n member blocks, the
    contribution of member g is v / n + D_g. They add up to v. For a mean of n cluster values v_g
    it is v_g / n, hence the difference of two metrics is a mean over clusters again; n times the
    contribution is the pseudo-value of Tukey's jackknife.

    Args:
        value: shape (R,), the values in the sample.
        without: shape (R, G), the values without each block.
        twice: shape (R, G), the values with each block taken twice.
        members: shape (R, G), blocks that hold clusters of the row's slice. Others may have an
            influence too, such as on a threshold that all slices share.

    Returns:
        Shape (R, G). NaN in rows whose value is undefined in the sample or in any of the draws,
        and in those of fewer than two blocks.
    """
    n = members.sum(axis=1, keepdims=True)
    centre = value[:, None]
    size = np.maximum(1.0, np.abs(centre))
    still = (np.abs(without - centre) <= _SAME * size) & (np.abs(twice - centre) <= _SAME * size)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.where(still, 0.0, (twice - without) / 2.0 * (1.0 - 1.0 / n**2))
        mean = moved.sum(axis=1, keepdims=True) / n
        found: FloatArray = moved + np.where(members, centre / n - mean, 0.0)
    found[(n[:, 0] < 2) | ~np.isfinite(found).all(axis=1)] = np.nan
    return found


def influence(shares: FloatArray, value: FloatArray, members: BoolArray) -> FloatArray:
    """The influences D inside contributions: what is left without the even share of the value.

    Args:
        shares: shape (R, G), from `contributions`.
        value: shape (R,), the values they belong to.
        members: shape (R, G), as in `contributions`.

    Returns:
        Shape (R, G).
    """
    n = np.maximum(members.sum(axis=1, keepdims=True), 1)
    moved: FloatArray = shares - np.where(members, value[:, None] / n, 0.0)
    return moved


def acceleration(moved: FloatArray) -> FloatArray:
    """The acceleration a of BCa: a sixth of the skewness of the influences over sqrt(n).

    a = Σ D³ / (6 (Σ D²)^(3/2)) (Efron and Tibshirani 1993, equation 14.15).

    Args:
        moved: shape (R, G), influences.

    Returns:
        Shape (R,); 0 where nothing moves the value, NaN where the influences are undefined.
    """
    largest = np.abs(moved).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = moved / largest
        found = (unit**3).sum(axis=1) / (6.0 * (unit**2).sum(axis=1) ** 1.5)
    return np.where(largest[:, 0] == 0.0, 0.0, found)
