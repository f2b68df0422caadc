"""Counts of the pairs of a sample: tied or ordered alike in scores and labels, within thresholds.

Pairs are counted by distinct score and label, from tables of how many items lie before a score:
time and memory grow with the items, not with their pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import FloatArray, IntArray

CountTable = NDArray[np.int32]

_TABLE_CELLS = 1 << 21  # entries of a table of counts by label (8 MiB of int32)


@dataclass(frozen=True)
class Pairs:
    """All unordered pairs of a sample, as groups of items with one score and one label.

    Attributes:
        values: shape (V,), distinct scores, ascending.
        value: shape (G,), index into `values` of each group, ascending.
        level: shape (G,), rank of each group's label among the distinct labels.
        size: shape (G,), number of items of each group.
    """

    values: FloatArray
    value: IntArray
    level: IntArray
    size: IntArray

    @classmethod
    def of(cls, scores: ArrayLike, labels: ArrayLike) -> Pairs:
        """Group a sample.

        Args:
            scores: shape (n,), finite.
            labels: shape (n,), finite.

        Raises:
            ValueError: the lengths differ or a value is not finite.
        """
        x, y = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
        if x.ndim != 1 or x.shape != y.shape:
            raise ValueError(f"two samples of one length are needed, not {x.shape} and {y.shape}")
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            raise ValueError("scores and labels must be finite; leave missing scores out")
        values, value = np.unique(x, return_inverse=True)
        levels, level = np.unique(y, return_inverse=True)
        keys, size = np.unique(value * max(levels.size, 1) + level, return_counts=True)
        return cls(values, *np.divmod(keys, max(levels.size, 1)), size)

    @cached_property
    def n_pairs(self) -> int:
        """Number of unordered pairs."""
        return _pairs_within(self.size.sum())

    @cached_property
    def both_tied(self) -> int:
        """Pairs of equal scores and equal labels."""
        return _pairs_within(self.size)

    @cached_property
    def label_tied(self) -> int:
        """Pairs of equal labels."""
        return _pairs_within(np.bincount(self.level, self.size))

    @cached_property
    def concordant(self) -> int:
        """Pairs that scores and labels order alike."""
        return int(self.within(np.array([np.inf]))[1][0])

    @property
    def accuracy_ignoring_ties(self) -> float:
        """Concordant pairs over pairs of different labels; NaN where there are none."""
        ordered = self.n_pairs - self.label_tied
        return self.concordant / ordered if ordered else math.nan

    def accuracy(self, threshold: float) -> float:
        """Share of right pairs at a threshold >= 0; NaN for fewer than two items."""
        if not self.n_pairs:
            return math.nan
        tied, concordant = self.within(np.array([threshold]))
        return (self.right_at_0 + int(tied[0]) - int(concordant[0])) / self.n_pairs

    @property
    def right_at_0(self) -> int:
        """Right pairs where only equal scores are tied."""
        return self.concordant + self.both_tied

    def within(self, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
        """Pairs of scores that differ, but by at most e: with equal labels, and concordant ones.

        Args:
            thresholds: shape (E,), >= 0.

        Returns:
            Two counts for each threshold, shape (E,) each.
        """
        tied, concordant = np.zeros((2, thresholds.size), np.int64)
        if not self.values.size:
            return tied, concordant
        ends = [reach(self.values, float(threshold)) for threshold in thresholds]
        for group, column, same, above in self._tables():
            value, size = self.value[group], self.size[group]
            same_before = size @ same[value + 1, column]
            above_before = size @ above[value + 1, column]
            for k, end in enumerate(ends):
                last = end[value]
                tied[k] += size @ same[last, column] - same_before
                concordant[k] += size @ above[last, column] - above_before
        return tied, concordant

    def _tables(self) -> Iterator[tuple[IntArray, IntArray, CountTable, CountTable]]:
        """Items before each value by label, for as many labels at a time as the memory allows.

        Yields:
            The groups with these labels, the column of each, and two tables of shape
            (V + 1, labels): items before value v with that label, and with a higher one.
        """
        n_values = self.values.size
        width = max(_TABLE_CELLS // (n_values + 1), 1)
        for low in range(0, int(self.level.max()) + 1, width):
            group = np.flatnonzero((self.level >= low) & (self.level < low + width))
            column = self.level[group] - low
            same = np.zeros((n_values + 1, int(column.max()) + 1), np.int32)
            same[self.value[group] + 1, column] = self.size[group]
            np.cumsum(same, axis=0, out=same)
            beyond = np.zeros(n_values + 1, np.int32)
            higher = self.level >= low + width
            np.add.at(beyond, self.value[higher] + 1, self.size[higher])
            above: CountTable = np.cumsum(same[:, ::-1], axis=1, dtype=np.int32)[:, ::-1] - same
            above += np.cumsum(beyond, dtype=np.int32)[:, None]
            yield group, column, same, above


def reach(values: FloatArray, threshold: float) -> IntArray:
    """For each of the distinct ascending values, the first one that lies above it by more.

    A difference counts as float64 subtraction gives it.

    Args:
        values: shape (V,), ascending, each once.
        threshold: >= 0.

    Returns:
        Shape (V,), indices in 1..V.
    """
    if not values.size:
        return np.zeros(0, np.intp)
    last = values.size - 1
    with np.errstate(over="ignore"):
        # The rounded sum may miss by some values what the rounded differences say.
        end = np.searchsorted(values, values + threshold, side="right")
        beyond = (end > last) | (values[np.minimum(end, last)] - values > threshold)
        rows = np.flatnonzero(~beyond | (values[end - 1] - values > threshold))
        inside, outside = rows.copy(), np.full(rows.size, values.size)
        while (outside - inside > 1).any():
            middle = (inside + outside) // 2
            near = values[middle] - values[rows] <= threshold
            inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
    end[rows] = outside
    return end


def _pairs_within(sizes: ArrayLike) -> int:
    """Unordered pairs within groups of these sizes."""
    n = np.asarray(sizes, np.int64)
    return int((n * (n - 1)).sum()) // 2
