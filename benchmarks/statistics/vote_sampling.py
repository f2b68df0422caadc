"""Draw of the pair of models that the next votes are about, with its chances.

A draw that depends on earlier votes alone leaves the likelihood as it is, so Bradley-Terry strengths
need no weights for pairs; a mean over prompts does need the chance of each prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics.bradley_terry import Posterior

UNIFORM_SHARE = 0.2
"""Share of the draws that every pair or prompt has the same part in: no chance is near 0."""


@dataclass(frozen=True)
class PairDraw:
    """A pair of models, `first` < `second`, and the chance that it had in this draw, 0..1."""

    first: int
    second: int
    chance: float


def pair_chances(
    found: Posterior, allowed: BoolArray | None = None, uniform: float = UNIFORM_SHARE
) -> FloatArray:
    """Chance of each pair of models to be drawn: the larger, the more a vote can tell about order.

    The weight of a pair is v I / (1 + v I) · φ(δ / √v), with δ and v posterior mean and variance of
    the difference of the strengths and I = p (1 - p) the information of a vote: what the vote takes
    off the variance, where the order is open.

    `found`: posterior of n models; `allowed` (n, n), True above the diagonal for pairs that may be
    drawn; None: all; `uniform`: share that all allowed pairs have alike, 0..1.
    Returns: shape (n, n), summing to 1; 0 on and below the diagonal and where not allowed.
    Raises: ValueError where no pair is allowed.
    """
    n = len(found.strengths)
    first, second = np.nonzero(np.triu(np.ones((n, n), bool) if allowed is None else allowed, 1))
    if not first.size:
        raise ValueError("no pair of models may be drawn")
    difference = found.contrasts[first, second]
    variance = found.variances[first, second]
    # In logarithms: else decided pairs would all have the weight 0.
    information = -np.logaddexp(0.0, difference) - np.logaddexp(0.0, -difference)
    gain = -np.logaddexp(0.0, -np.log(variance) - information)
    level = gain - difference**2 / (2.0 * variance)
    weights = np.exp(level - level.max())
    chances: FloatArray = np.zeros((n, n))
    chances[first, second] = (1.0 - uniform) * weights / weights.sum() + uniform / first.size
    return chances


def draw_pair(
    found: Posterior,
    rng: np.random.Generator,
    allowed: BoolArray | None = None,
    uniform: float = UNIFORM_SHARE,
) -> PairDraw:
    """A pair of models drawn by `pair_chances`, whose arguments these are."""
    chances = pair_chances(found, allowed, uniform)
    place = int(rng.choice(chances.size, p=chances.ravel()))
    first, second = divmod(place, len(chances))
    return PairDraw(first, second, float(chances[first, second]))
