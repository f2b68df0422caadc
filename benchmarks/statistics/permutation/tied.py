"""Rank correlations of both hybrids, draw by draw, for metrics with ties of their own.

Where a metric has ties, which of them a hybrid inherits depends on the draw, and so does its
denominator. Still nothing is sorted again: the levels of both metrics are merged once per pair,
and for each draw only what lies on each level is added up.

Scores of two metrics that have the same rank are not tied by the data, only by the common scale.
They count as ordered both ways, half each: ranks are averaged, denominators know only ties within
one metric. The tie-free case, with its constant denominators, follows the same rule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.permutation.kendall import all_pairs, ordered_pairs
from benchmarks.statistics.permutation.null import DirectNull
from benchmarks.statistics.permutation.ranks import Ranks, centred_ranks
from benchmarks.statistics.permutation.sample import Sample
from benchmarks.statistics.permutation.signs import Signs

_NUMBERS = 1 << 22  # numbers of a work array (32 MiB)


@dataclass(frozen=True)
class _Levels:
    """The runs of ties of one metric, group by group.

    Attributes:
        keys: shape (L,), twice the average place of each run, ascending.
        starts: shape (G,), the first level of each group.
        sums: shape (L * W, n), adds up W quantities of the items on each level.
        totals: shape (L, W, 1), these sums over all items.
    """

    keys: IntArray
    starts: IntArray
    sums: sparse.csr_array
    totals: FloatArray

    @classmethod
    def of(cls, ranks: Ranks, sample: Sample, kinds: IntArray, weights: FloatArray) -> _Levels:
        """Levels of a metric.

        Args:
            ranks: of the metric.
            sample: its groups.
            kinds: shape (R, n), to which quantity of its level an item adds.
            weights: shape (R, n), how much.
        """
        keys, level = np.unique(ranks.doubled, return_inverse=True)
        width = int(kinds.max()) + 1
        items = np.broadcast_to(np.arange(sample.n_items), kinds.shape)
        cells = (level * width + kinds).ravel(), items.ravel()
        sums = sparse.csr_array((weights.ravel(), cells), (keys.size * width, sample.n_items))
        starts = np.searchsorted(keys, 2 * sample.starts)
        return cls(keys, starts, sums, np.asarray(sums.sum(axis=1)).reshape(-1, width, 1))

    def of_chosen(self, mask: FloatArray) -> FloatArray:
        """The sums of chosen items only, shape (L, W, k), from a mask (n, k)."""
        found: FloatArray = self.sums @ mask
        return found.reshape(*self.totals.shape[:2], -1)


class TiedNull(DirectNull):
    """Differences of a rank correlation for P pairs of metrics with any ties."""

    def __init__(
        self,
        sample: Sample,
        levels: Mapping[int, _Levels],
        pairs: list[tuple[int, int]],
        scale: FloatArray,
    ) -> None:
        """Keep the levels.

        Args:
            sample: its groups and clusters.
            levels: of each metric in `pairs`.
            pairs: P pairs of metrics.
            scale: shape (G,), the gold's part of the denominator.
        """
        self._sample, self._levels, self._pairs, self._scale = sample, levels, pairs, scale
        held = sum(found.totals.size for found in levels.values())
        merged = 2 * max((found.totals.size for found in levels.values()), default=1)
        self._draws = max(_NUMBERS // max(held, merged, sample.n_items), 1)
        self.observed = self.deltas(np.ones((sample.n_clusters, 1), np.int8))[:, 0]

    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""
        found = np.empty((len(self._pairs), signs.shape[1]))
        for start in range(0, signs.shape[1], self._draws):
            block = slice(start, start + self._draws)
            stay = (signs[:, block] > 0).astype(np.float64)[self._sample.clusters]
            stays = {m: levels.of_chosen(stay) for m, levels in self._levels.items()}
            swaps = {m: levels.totals - stays[m] for m, levels in self._levels.items()}
            for row, (first, second) in enumerate(self._pairs):
                one = self._hybrid(first, stays[first], second, swaps[second])
                other = self._hybrid(first, swaps[first], second, stays[second])
                found[row, block] = (one - other).mean(axis=0)
        return found

    def _hybrid(self, first: int, a: FloatArray, second: int, b: FloatArray) -> FloatArray:
        """Correlation by group, shape (G, k), of some items' `a` scores and the others' `b`."""
        low, high = self._levels[first], self._levels[second]
        keys = np.union1d(low.keys, high.keys)
        both = np.zeros((keys.size, *a.shape[1:]))
        both[np.searchsorted(keys, low.keys)] += a
        both[np.searchsorted(keys, high.keys)] += b
        starts = np.searchsorted(keys, 2 * self._sample.starts)
        untied = self._untied(a, low.starts, b, high.starts)
        root = np.sqrt(untied) * self._scale[:, None]
        return np.divide(
            self._product(both, starts), root, out=np.zeros_like(root), where=untied > 0
        )

    @abstractmethod
    def _untied(
        self, a: FloatArray, a_starts: IntArray, b: FloatArray, b_starts: IntArray
    ) -> FloatArray:
        """The hybrid's part of the denominator, squared, shape (G, k)."""

    @abstractmethod
    def _product(self, both: FloatArray, starts: IntArray) -> FloatArray:
        """The numerator, shape (G, k), from the sums on all levels (V, W, k) by group."""


class TiedSpearman(TiedNull):
    """Spearman's rho; on each level the items are counted and their gold ranks added up."""

    @classmethod
    def of(cls, sample: Sample, ranks: list[Ranks], pairs: list[tuple[int, int]]) -> TiedSpearman:
        """Levels of the metrics in these pairs."""
        gold = centred_ranks(sample.gold, sample)
        kinds = np.broadcast_to([[0], [1]], (2, gold.size))
        weights = np.stack([np.ones_like(gold), gold])
        levels = {m: _Levels.of(ranks[m], sample, kinds, weights) for m in used(pairs)}
        return cls(sample, levels, pairs, np.sqrt(sample.by_group(gold**2) / 12.0))

    def _untied(
        self, a: FloatArray, a_starts: IntArray, b: FloatArray, b_starts: IntArray
    ) -> FloatArray:
        sizes = self._sample.sizes.astype(np.float64)
        untied = np.repeat((sizes**3 - sizes)[:, None], a.shape[2], axis=1)
        for sums, starts in ((a, a_starts), (b, b_starts)):
            untied -= np.add.reduceat(sums[:, 0] ** 3 - sums[:, 0], starts, axis=0)
        return untied

    def _product(self, both: FloatArray, starts: IntArray) -> FloatArray:
        # The gold of a group adds up to 0, so ranks may be counted from any place.
        ranks = np.cumsum(both[:, 0], axis=0) - both[:, 0] / 2.0
        product: FloatArray = np.add.reduceat(ranks * both[:, 1], starts, axis=0)
        return product


class TiedKendall(TiedNull):
    """Kendall's tau-b; on each level the items are counted by class of the gold."""

    @classmethod
    def of(cls, sample: Sample, ranks: list[Ranks], pairs: list[tuple[int, int]]) -> TiedKendall:
        """Levels of the metrics in these pairs."""
        gold = Ranks.of(sample.gold, sample)
        kinds, weights = gold.classes(sample)[None], np.ones((1, sample.n_items))
        levels = {m: _Levels.of(ranks[m], sample, kinds, weights) for m in used(pairs)}
        return cls(sample, levels, pairs, np.sqrt(ordered_pairs(gold, sample)))

    def _untied(
        self, a: FloatArray, a_starts: IntArray, b: FloatArray, b_starts: IntArray
    ) -> FloatArray:
        untied = np.repeat(all_pairs(self._sample)[:, None], a.shape[2], axis=1)
        for sums, starts in ((a, a_starts), (b, b_starts)):
            counts = sums.sum(axis=1)
            untied -= np.add.reduceat(counts * (counts - 1.0) / 2.0, starts, axis=0)
        return untied

    def _product(self, both: FloatArray, starts: IntArray) -> FloatArray:
        before = np.cumsum(both, axis=0) - both
        before -= np.repeat(before[starts], np.diff(np.append(starts, len(both))), axis=0)
        up_to = np.cumsum(before, axis=1)
        # Lower classes less higher ones, of what lies on lower levels.
        balance = 2.0 * up_to - before - up_to[:, -1:]
        product: FloatArray = np.add.reduceat((both * balance).sum(axis=1), starts, axis=0)
        return product


def used(pairs: list[tuple[int, int]]) -> list[int]:
    """The metrics of some pairs."""
    return sorted({metric for pair in pairs for metric in pair})
