"""What several metrics say together of M models: who is better, where they contradict each other.

Nothing is averaged over metrics. A model is better than another where at least one metric says so
with significance and none says the contrary with significance; where both is said, the metrics
disagree, and the two models stay without an order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Consensus:
    """How M models stand to each other.

    Attributes:
        better: shape (M, M), whether a (first axis) is better than b.
        disputed: shape (M, M), whether metrics order the two in opposite ways; symmetric.
        rank_low: shape (M,), 1 + the number of models that are better.
        rank_high: shape (M,), M less the number of models that are worse.
        order: shape (M,), places of the models, the first of the board first.
        tiers: shape (M,), from 1; no two models of a tier are told apart.
    """

    better: BoolArray
    disputed: BoolArray
    rank_low: IntArray
    rank_high: IntArray
    order: IntArray
    tiers: IntArray


def consensus(relations: IntArray, lead: FloatArray) -> Consensus:
    """Join the relations that J metrics find.

    Args:
        relations: shape (J, M, M), 1 where a is better than b, -1 where it is worse, 0 where the
            metric does not tell; antisymmetric in the models.
        lead: shape (M,), values by which models with equal rank ranges are put in order, higher
            first; NaN comes last.
    """
    above, below = (np.asarray(side.any(axis=0)) for side in (relations > 0, relations < 0))
    better: BoolArray = above & ~below
    n_models = len(lead)
    rank_low = 1 + better.sum(axis=0)
    rank_high = n_models - better.sum(axis=1)
    order = _in_order(better, np.lexsort((-np.nan_to_num(lead, nan=-np.inf), rank_high, rank_low)))
    return Consensus(
        better, above & below, rank_low, rank_high, order, tiers_down(better | better.T, order)
    )


def _in_order(better: BoolArray, preferred: IntArray) -> IntArray:
    """By rank range and value, save that nobody stands below a model that it is better than.

    Significance is no transitive relation, and only where it is would rank ranges alone do that.
    Of models that are better than each other in a circle, the preferred one comes first.
    """
    left = list(preferred)
    worse_than = better.sum(axis=0)
    found: list[int] = []
    while left:
        place = next((i for i in left if not worse_than[i]), left[0])
        left.remove(place)
        found.append(int(place))
        worse_than = worse_than - better[place]
    return np.array(found, np.intp)


def tiers_down(told: BoolArray, order: IntArray) -> IntArray:
    """Down the board, a model opens a new tier if it is told apart from any of the current one.

    Args:
        told: shape (M, M), whether two models are told apart; symmetric.
        order: shape (K,), places of the models on the board, the first first; K <= M.

    Returns:
        Shape (M,), tiers from 1; 0 for models that are not in the order.
    """
    tiers = np.zeros(len(told), np.intp)
    # Whether a model is told apart from any member of the current tier.
    apart = np.zeros(len(told), bool)
    tier = 0
    for place in order:
        if not tier or apart[place]:
            tier, apart = tier + 1, np.zeros(len(told), bool)
        apart |= told[place]
        tiers[place] = tier
    return tiers
