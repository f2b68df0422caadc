"""Which pairs of items within groups a metric calls right, at its own calibrated threshold.

The definitions are those of `pairwise`: a pair is right where metric and gold both tie it, or
both order it alike. Over groups the accuracies are averaged, and one threshold serves all of them
(Deutsch et al. 2023, section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.pairwise import tie_calibrated

_BLOCK = 1 << 18  # pairs of items looked at together
_ROUNDING = 1e-9  # of a pair's weight: accuracies that differ by less are equal


@dataclass(frozen=True)
class PairBlock:
    """Pairs of items, those of equal gold first.

    Attributes:
        low: shape (P,), the item of each pair that the gold ranks lower, or either one.
        high: shape (P,), the other item.
        n_tied: pairs of equal gold.
    """

    low: IntArray
    high: IntArray
    n_tied: int

    def differences(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Absolute ones of pairs of equal gold; signed ones, high less low, of the others."""
        with np.errstate(over="ignore"):
            found = scores[self.high] - scores[self.low]
        tied = found[: self.n_tied]
        np.abs(tied, out=tied)
        return tied, found[self.n_tied :]

    def right(self, scores: FloatArray, threshold: float) -> BoolArray:
        """Which pairs are right."""
        tied, ordered = self.differences(scores)
        return np.concatenate([tied <= threshold, ordered > threshold])


@dataclass(frozen=True)
class ItemPairs:
    """All pairs of items within groups of two and more; items lie by group.

    Attributes:
        gold: shape (n,), finite.
        bounds: shape (G + 1,), where the groups begin and end, from 0.
    """

    gold: FloatArray
    bounds: IntArray

    @cached_property
    def pairs_of_group(self) -> IntArray:
        """Shape (G,), pairs of items of each group."""
        sizes = np.diff(self.bounds)
        pairs: IntArray = sizes * (sizes - 1) // 2
        return pairs

    @property
    def blocks(self) -> Iterable[PairBlock]:
        """All pairs; those of several groups are listed once, those of one group each time."""
        return self._made() if self.bounds.size == 2 else self._listed

    @cached_property
    def _listed(self) -> list[PairBlock]:
        return list(self._made())

    @cached_property
    def _group(self) -> IntArray:
        return np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))

    def _made(self) -> Iterator[PairBlock]:
        partners = self.bounds[1:][self._group] - np.arange(self.gold.size) - 1
        ends = np.cumsum(partners)
        first = 0
        while first < self.gold.size:
            done = ends[first - 1] if first else 0
            last = max(int(np.searchsorted(ends, done + _BLOCK, side="right")), first + 1)
            counts = partners[first:last]
            i = np.repeat(np.arange(first, last), counts)
            begin = ends[first:last] - counts - done
            j = np.arange(i.size) - np.repeat(begin, counts) + i + 1
            yield self._sorted_out(i, j)
            first = last

    def _sorted_out(self, i: IntArray, j: IntArray) -> PairBlock:
        lower, upper = self.gold[i], self.gold[j]
        tied = lower == upper
        up = lower < upper
        low, high = np.where(up, i, j), np.where(up, j, i)
        order = np.concatenate([np.flatnonzero(tied), np.flatnonzero(~tied)])
        return PairBlock(low[order], high[order], int(np.count_nonzero(tied)))

    def accuracies(self, scores: FloatArray, threshold: float) -> FloatArray:
        """Share of right pairs in each group, shape (G,)."""
        right = np.zeros(self.pairs_of_group.size)
        for block in self.blocks:
            found = block.right(scores, threshold)
            right += np.bincount(self._group[block.low], found, right.size)
        return right / self.pairs_of_group

    def threshold(self, scores: FloatArray) -> float:
        """The smallest threshold of the best mean accuracy, among 0 and all differences.

        One group is searched without listing its pairs; several ones take about 50 bytes for each
        pair of items.
        """
        if self.bounds.size == 2:
            return tie_calibrated(scores, self.gold).threshold
        parts = [block.differences(scores) for block in self.blocks]
        tied, ordered = (np.concatenate(part) for part in zip(*parts, strict=True))
        won, lost = tied > 0, ordered > 0
        thresholds, gain = _sums(tied[won], self._weights[0][won])
        # Of equal distances only the last sum holds all of them; it is the highest of theirs.
        highest, loss = _sums(ordered[lost], self._weights[1][lost])
        gain -= np.append(0.0, loss)[np.searchsorted(highest, thresholds, side="right")]
        best = gain.max(initial=0.0)
        if best <= _ROUNDING:
            return 0.0
        return float(thresholds[np.argmax(gain >= best - _ROUNDING)])

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray]:
        """Weights in the mean of all pairs of equal gold, and of all others; up to a factor."""
        of_item = (self.pairs_of_group[-1] / self.pairs_of_group)[self._group]
        tied = [of_item[block.low[: block.n_tied]] for block in self.blocks]
        ordered = [of_item[block.low[block.n_tied :]] for block in self.blocks]
        return np.concatenate(tied), np.concatenate(ordered)


def _sums(distances: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distances ascending, and the weight up to each one in this order."""
    if (weights == 1.0).all():
        return np.sort(distances), np.arange(1.0, distances.size + 1.0)
    order = np.argsort(distances)
    return distances[order], np.cumsum(weights[order])
