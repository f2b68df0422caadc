"""Signed-rank sums of many rows of differences, from one sort of plain integers each.

A non-negative double and its bit pattern read as an integer are in the same order, so the absolute
difference moved up by one bit leaves room for its sign: sorting these integers orders the absolute
differences and carries the signs along, without an index to sort by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class SignedRanks:
    """What Wilcoxon's test needs of each of k rows; differences of zero and NaN are left out.

    Attributes:
        positive: shape (k,), sum of the average ranks of the positive differences; a multiple of
            one half, exact.
        ties: shape (k,), sum of t^3 - t over the runs of t equal absolute differences.
        wins: shape (k,), positive differences.
        losses: shape (k,), negative ones.
        zeros: shape (k,), differences of exactly zero.
    """

    positive: FloatArray
    ties: FloatArray
    wins: IntArray
    losses: IntArray
    zeros: IntArray


def signed_ranks(differences: FloatArray) -> SignedRanks:
    """Rank the absolute differences of each row and add up by sign.

    Args:
        differences: shape (k, n), finite, or NaN where there is none.
    """
    d = np.ascontiguousarray(differences)
    above, zero = d > 0, d == 0
    keys = np.abs(d).view(np.uint64) << np.uint64(1) | above
    keys.sort(axis=1)
    wins, zeros = above.sum(axis=1), zero.sum(axis=1)
    losses = (d < 0).sum(axis=1)
    positive, ties = np.zeros(len(d)), np.zeros(len(d))
    for row, ordered in enumerate(keys):
        # Zeros come first, NaN last: its bits are above those of every number.
        of_row = ordered[zeros[row] : zeros[row] + wins[row] + losses[row]]
        positive[row], ties[row] = _rank_sums(of_row)
    return SignedRanks(positive, ties, wins, losses, zeros)


def _rank_sums(keys: NDArray[np.uint64]) -> tuple[float, float]:
    """Rank sum of the positive differences and the term for ties of one sorted row."""
    size = keys >> np.uint64(1)
    above = (keys & np.uint64(1)).astype(np.float64)
    changes = size[1:] != size[:-1]
    if changes.all():
        return float(above @ np.arange(1.0, keys.size + 1.0)), 0.0
    starts = np.r_[0, np.flatnonzero(changes) + 1]
    sizes = np.diff(starts, append=keys.size).astype(np.float64)
    ranks = starts + (sizes + 1.0) / 2.0
    return float(np.add.reduceat(above, starts) @ ranks), float((sizes**3 - sizes).sum())
