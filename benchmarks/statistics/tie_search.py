"""The exact threshold of highest pairwise accuracy, by branch and bound.

Let right(e) be the right pairs where scores that differ by at most e are tied. Between two counted
thresholds a < b it is at most right(a) plus the tied pairs in between, and at most right(b) plus
the concordant ones. The best e is 0 or the difference of a pair of equal labels, so a stretch
without such pairs holds none. Stretches that may still hold the best e are cut at differences that
occur in them, until so few pairs are left that these are listed and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.pair_counts import Pairs, reach

_LISTED = 1 << 21  # differences that are listed and sorted together (16 MiB)
_BLOCK = 1 << 18  # differences that are computed at a time
_SPLITS = 96  # differences around which the counts are taken in one round


def best_threshold(pairs: Pairs) -> tuple[int, float]:
    """The threshold of most right pairs among 0 and all observed differences of scores.

    Args:
        pairs: at least one.

    Returns:
        How many are right there, and the smallest such threshold.
    """
    return _Search(pairs).best()


class _Search:
    """The thresholds counted so far, ascending, and what they leave open."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        with np.errstate(over="ignore"):
            widest = pairs.values[-1] - pairs.values[0]
        self._edges = np.zeros(1)
        self._tied, self._concordant = np.zeros((2, 1), np.int64)
        self._count(np.array([widest]))

    def best(self) -> tuple[int, float]:
        """Right pairs at the best threshold, and the smallest such threshold."""
        while True:
            live = self._live()
            rows = [self._rows(low, high) for low, high in live]
            if sum(int(row[1].sum()) for row in rows) <= _LISTED:
                break
            self._count(self._typical_differences(rows))
        found = [(self._pairs.right_at_0, 0.0), *self._single_differences()]
        found += [self._best_listed(low, *row) for (low, _), row in zip(live, rows, strict=True)]
        return max(found, key=lambda candidate: (candidate[0], -candidate[1]))

    @property
    def _right(self) -> IntArray:
        return self._pairs.right_at_0 + self._tied - self._concordant

    def _count(self, thresholds: FloatArray) -> None:
        new = np.setdiff1d(thresholds, self._edges)
        tied, concordant = self._pairs.within(new)
        order = np.argsort(np.append(self._edges, new))
        self._edges = np.append(self._edges, new)[order]
        self._tied = np.append(self._tied, tied)[order]
        self._concordant = np.append(self._concordant, concordant)[order]

    def _live(self) -> list[tuple[float, float]]:
        """Stretches a < e <= b that may hold the best threshold and are not yet one number."""
        right, edges = self._right, self._edges
        tied, concordant = np.diff(self._tied), np.diff(self._concordant)
        bound = np.minimum(right[:-1] + tied, right[1:] + concordant)
        first = int(np.argmax(right))
        promising = (bound > right[first]) | (
            (bound == right[first]) & (np.arange(bound.size) < first)
        )
        promising &= (tied > 0) & (np.nextafter(edges[:-1], np.inf) < edges[1:])
        return [(float(edges[k]), float(edges[k + 1])) for k in np.flatnonzero(promising)]

    def _single_differences(self) -> Iterator[tuple[int, float]]:
        """Stretches of one number that is the difference of a tied pair."""
        single = np.nextafter(self._edges[:-1], np.inf) == self._edges[1:]
        for k in np.flatnonzero(single & (np.diff(self._tied) > 0)):
            yield int(self._right[k + 1]), float(self._edges[k + 1])

    def _rows(self, low: float, high: float) -> tuple[IntArray, IntArray]:
        """For each group, the first group in a stretch above it, and how many there are."""
        pairs = self._pairs
        start = np.searchsorted(pairs.value, np.arange(pairs.values.size + 1))
        first = start[reach(pairs.values, low)][pairs.value]
        return first, start[reach(pairs.values, high)][pairs.value] - first

    def _typical_differences(self, rows: list[tuple[IntArray, IntArray]]) -> FloatArray:
        """Every so many-th difference of the live stretches.

        One that many pairs share, or that ends a stretch, comes with the number just below, so
        that it becomes a stretch of its own.
        """
        firsts, counts = (np.concatenate(part) for part in zip(*rows, strict=True))
        ends = np.cumsum(counts)
        chosen = (2 * np.arange(_SPLITS) + 1) * int(ends[-1]) // (2 * _SPLITS)
        row = np.searchsorted(ends, chosen, side="right")
        partner = firsts[row] + chosen - (ends[row] - counts[row])
        pairs = self._pairs
        of_group = pairs.values[pairs.value]
        with np.errstate(over="ignore"):
            found = of_group[partner] - of_group[row % of_group.size]
        found, times = np.unique(found, return_counts=True)
        alone = found[(times > 1) | np.isin(found, self._edges)]
        return np.concatenate([found, np.nextafter(alone, 0.0)])

    def _best_listed(self, low: float, first: IntArray, count: IntArray) -> tuple[int, float]:
        """The best of all differences of a stretch, listed and sorted."""
        parts = [self._gains(group, first, count) for group in _blocks(count)]
        differences = np.concatenate([part[0] for part in parts])
        order = np.argsort(differences, kind="stable")
        differences = differences[order]
        right = np.cumsum(np.concatenate([part[1] for part in parts])[order])
        right += int(self._right[np.searchsorted(self._edges, low)])
        whole = np.append(differences[1:] != differences[:-1], True)  # all pairs of a difference
        best = int(np.argmax(np.where(whole, right, -1)))
        return int(right[best]), float(differences[best])

    def _gains(self, group: slice, first: IntArray, count: IntArray) -> tuple[FloatArray, IntArray]:
        """Differences of some groups from those in a stretch above; what passing each one gains."""
        pairs, count, first = self._pairs, count[group], first[group]
        row = np.repeat(np.arange(group.start, group.stop), count)
        partner = np.arange(row.size) + np.repeat(first - (np.cumsum(count) - count), count)
        with np.errstate(over="ignore"):
            difference = pairs.values[pairs.value[partner]] - pairs.values[pairs.value[row]]
        level, other = pairs.level[row], pairs.level[partner]
        sign = (level == other).astype(np.int64) - (level < other)
        kept = sign != 0
        gain = (sign * pairs.size[row] * pairs.size[partner])[kept]
        listed, position = np.unique(difference[kept], return_inverse=True)
        gains = np.zeros(listed.size, np.int64)
        np.add.at(gains, position, gain)
        return listed, gains


def _blocks(count: IntArray) -> Iterator[slice]:
    """Ranges of rows of about `_BLOCK` entries together."""
    ends = np.cumsum(count)
    first = 0
    while first < count.size:
        done = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, done + _BLOCK, side="right")), first + 1)
        yield slice(first, last)
        first = last
