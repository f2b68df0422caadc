"""Pairwise accuracy within groups of items, with one threshold of ties for all groups.

Only items of one group (the images of one prompt) are compared. Accuracy is the mean over the
groups of their shares of right pairs, as in `pairwise`, and calibration takes the threshold at
which that mean is highest (Deutsch, Foster and Freitag 2023, "Ties Matter", section 5: pairwise
accuracy grouped by item). It looks at every candidate: 0 and all differences of pairs that people
tied, since passing any other difference can only lose. Of thresholds that are equally good it is
the smallest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.grouped import Groups
from benchmarks.statistics.pair_lists import pairs_within
from benchmarks.statistics.pairwise import Calibrated

MOST_PAIRS = 1 << 26
"""Pairs are listed, at some 50 bytes each; larger pools belong to `pairwise`, which counts them."""
MOST_COMMON_MULTIPLE = 1 << 53
"""Weights of pairs are whole numbers as long as all of them add up to less than this."""
_SAMPLED = 16  # of so many pairs one is looked at to see how large the leads are

Weights = NDArray[np.int64] | FloatArray


@dataclass(frozen=True)
class GroupedPairs:
    """All pairs within groups, as the labels see them: what all metrics share.

    Attributes:
        n_items: number n of items.
        tied: shape (2, T), items of the pairs with equal labels.
        ordered: shape (2, O), items of the other pairs, the one of the lower label first.
        tied_groups: shape (T,), group of each tied pair.
        ordered_groups: shape (O,), group of each ordered pair.
        pairs: shape (G,), pairs of each group.
    """

    n_items: int
    tied: IntArray
    ordered: IntArray
    tied_groups: IntArray
    ordered_groups: IntArray
    pairs: IntArray

    @classmethod
    def of(cls, labels: ArrayLike, groups: Groups) -> GroupedPairs:
        """List the pairs.

        Args:
            labels: shape (n,), finite.
            groups: of the n items.

        Raises:
            ValueError: the lengths differ, a label is not finite, or there are more than
                `MOST_PAIRS` pairs.
        """
        y = np.asarray(labels, np.float64)
        if y.shape != groups.order.shape:
            raise ValueError(f"labels {y.shape} and {groups.order.size} grouped items do not fit")
        if not np.isfinite(y).all():
            raise ValueError("labels must be finite; leave items without one out")
        pairs = groups.sizes * (groups.sizes - 1) // 2
        if pairs.sum() > MOST_PAIRS:
            raise ValueError(
                f"{pairs.sum()} pairs within groups are too many to list; the limit is "
                f"{MOST_PAIRS}; use benchmarks.statistics.pairwise for one large pool"
            )
        listed = [np.stack(block) for block in pairs_within(groups.bounds)]
        positions = np.concatenate([np.zeros((2, 0), np.intp), *listed], axis=1)
        of_pair, items = groups.of_item[positions[0]], groups.order[positions]
        sign = np.sign(y[items[1]] - y[items[0]])
        up, down = sign > 0, sign < 0
        ordered = np.concatenate([items[:, up], items[::-1, down]], axis=1)
        in_groups = np.concatenate([of_pair[up], of_pair[down]])
        return cls(y.size, items[:, sign == 0], ordered, of_pair[sign == 0], in_groups, pairs)

    def accuracy(self, scores: ArrayLike, threshold: float = 0.0) -> FloatArray:
        """Share of right pairs of each group at a threshold; at 0 only equal scores are tied.

        Args:
            scores: shape (n,), finite.
            threshold: largest difference of scores that counts as a tie, >= 0.

        Returns:
            Shape (G,), in 0..1; NaN for groups of fewer than two items. Its mean over resampled
            groups is the accuracy of a resample at that threshold.

        Raises:
            ValueError: the lengths differ, a score is not finite, or the threshold is negative.
        """
        if not threshold >= 0.0:
            raise ValueError(f"a threshold is a difference of at least 0, not {threshold}")
        apart, gained = self._differences(scores)
        right = np.bincount(self.tied_groups[apart <= threshold], minlength=self.pairs.size)
        right += np.bincount(self.ordered_groups[gained > threshold], minlength=self.pairs.size)
        with np.errstate(invalid="ignore"):
            share: FloatArray = right / self.pairs
        return share

    def tie_calibrated(self, scores: ArrayLike) -> Calibrated:
        """The best mean accuracy over the groups with pairs, and its smallest threshold.

        Args:
            scores: shape (n,), finite.

        Returns:
            Exact where the numbers of pairs of the groups have a least common multiple below
            2^53 over, as all groups of one size have; else sums of fractions in doubles. NaN
            where no group has a pair.

        Raises:
            ValueError: the lengths differ or a score is not finite.
        """
        apart, gained = self._differences(scores)
        if not self.pairs.any():
            return Calibrated(math.nan, math.nan)
        if np.unique(self.pairs[self.pairs > 0]).size == 1:
            right, threshold = _best_of_equals(apart, gained)
            return Calibrated(right / int(self.pairs.sum()), threshold)
        concordant = gained > 0.0
        weights, whole = self._weights()
        losses = weights[self.ordered_groups[concordant]]
        gains = weights[self.tied_groups]
        weight, threshold = _best_weighted(apart, gains, gained[concordant], losses)
        return Calibrated(weight / whole, threshold)

    def _differences(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Distances of tied pairs (T,), and by how much the better item of the others leads."""
        x = np.asarray(scores, np.float64)
        if x.shape != (self.n_items,):
            raise ValueError(f"scores {x.shape} for {self.n_items} items do not fit")
        if not np.isfinite(x).all():
            raise ValueError("scores must be finite; leave items without one out")
        with np.errstate(over="ignore"):
            apart = np.abs(x[self.tied[1]] - x[self.tied[0]])
            return apart, x[self.ordered[1]] - x[self.ordered[0]]

    def _weights(self) -> tuple[Weights, float]:
        """What a pair of each group counts, shape (G,), and what all pairs count together."""
        paired = self.pairs > 0
        multiple = math.lcm(*np.unique(self.pairs[paired]).tolist())
        if multiple * int(paired.sum()) < MOST_COMMON_MULTIPLE:
            return multiple // np.maximum(self.pairs, 1), float(multiple * int(paired.sum()))
        return 1.0 / np.maximum(self.pairs, 1), float(paired.sum())


def _best_of_equals(apart: FloatArray, gained: FloatArray) -> tuple[int, float]:
    """Right pairs at the best threshold, and the smallest such threshold, all pairs counting 1."""
    apart = np.sort(apart)
    concordant = int(np.count_nonzero(gained > 0.0))
    lost = np.searchsorted(np.sort(_smallest_leads(gained, apart.size)), apart, side="right")
    # Within a run of equal distances the last one counts most, which is all of them.
    change = np.arange(1, apart.size + 1) - lost
    at_0 = int(np.searchsorted(apart, 0.0, side="right"))
    best = int(np.argmax(change)) if change.size else 0
    if not change.size or change[best] <= at_0:
        return concordant + at_0, 0.0
    return concordant + int(change[best]), float(apart[best])


def _smallest_leads(gained: FloatArray, n_ties: int) -> FloatArray:
    """The positive ones of these, or so many of the smallest that no others matter.

    A threshold that loses more pairs than there are ties to gain is not the best, so more than
    `n_ties` of the smallest are enough. A sample tells about where these end.
    """
    sample = gained[::_SAMPLED]
    sample = sample[sample > 0.0]
    place = 5 * n_ties // (4 * _SAMPLED) + 8
    if place < sample.size:
        limit = np.partition(sample, place)[place]
        found: FloatArray = gained[(gained > 0.0) & (gained <= limit)]
        if found.size > n_ties:
            return found
    return gained[gained > 0.0]


def _best_weighted(
    apart: FloatArray, gains: Weights, leads: FloatArray, losses: Weights
) -> tuple[float, float]:
    """The same where each pair counts its own weight."""
    order, by_lead = np.argsort(apart, kind="stable"), np.argsort(leads, kind="stable")
    apart, kind = apart[order], losses.dtype
    lost_up_to = np.append(np.zeros(1, kind), np.cumsum(losses[by_lead]))
    lost = lost_up_to[np.searchsorted(leads[by_lead], apart, side="right")]
    change = np.cumsum(gains[order]) - lost
    ties = int(np.searchsorted(apart, 0.0, side="right"))
    at_0 = gains[order][:ties].sum()
    best = int(np.argmax(change)) if change.size else 0
    if not change.size or change[best] <= at_0:
        return float(lost_up_to[-1] + at_0), 0.0
    return float(lost_up_to[-1] + change[best]), float(apart[best])
