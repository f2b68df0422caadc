"""Kendall's tau-b of both hybrids where the gold has too many classes for tables of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy import stats

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.permutation.kendall import ordered_pairs
from benchmarks.statistics.permutation.null import DirectNull
from benchmarks.statistics.permutation.ranks import Ranks
from benchmarks.statistics.permutation.sample import Sample
from benchmarks.statistics.permutation.signs import Signs

CELLS_PER_ITEM = 256
"""Above so many pairs of a level and a class of the gold per item, tables cost more than this."""


class TiedKendallByDraw(DirectNull):
    """As `TiedKendall`, but discordant pairs are counted anew for each draw and group."""

    def __init__(self, sample: Sample, ranks: list[Ranks], pairs: list[tuple[int, int]]) -> None:
        """Keep the ranks of all metrics."""
        gold = Ranks.of(sample.gold, sample)
        self._sample, self._ranks, self._pairs = sample, ranks, pairs
        self._gold = gold.classes(sample)
        self._scale = np.sqrt(ordered_pairs(gold, sample))
        self.observed = self.deltas(np.ones((sample.n_clusters, 1), np.int8))[:, 0]

    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""
        found = np.empty((len(self._pairs), signs.shape[1]))
        for draw, stay in enumerate((signs > 0).T[:, self._sample.clusters]):
            for row, (first, second) in enumerate(self._pairs):
                one = self._tau(stay, first, second) - self._tau(~stay, first, second)
                found[row, draw] = one.mean()
        return found

    def _tau(self, stay: BoolArray, first: int, second: int) -> FloatArray:
        """Tau-b by group, shape (G,), of `first` on the items that stay, else of `second`."""
        a, b = self._ranks[first].doubled, self._ranks[second].doubled
        merged, bounds = np.where(stay, a, b), self._sample.bounds
        # Keys by metric: equal ranks of different metrics are no tie of the denominator.
        own = Ranks.of(2.0 * merged + stay, self._sample)
        untied = ordered_pairs(own, self._sample)
        scores = [
            _balance(merged[start:end], self._gold[start:end]) for start, end in pairwise(bounds)
        ]
        root = np.sqrt(untied) * self._scale
        tau: FloatArray = np.zeros_like(root)
        np.divide(np.array(scores), root, out=tau, where=untied > 0)
        return tau


def too_many_cells(sample: Sample, ranks: list[Ranks]) -> bool:
    """Whether the tables of `TiedKendall` would be too large."""
    classes = int(Ranks.of(sample.gold, sample).classes(sample).max(initial=0)) + 1
    levels = max((int(np.count_nonzero(r.low == r.place)) for r in ranks), default=0)
    return 2 * levels * classes > CELLS_PER_ITEM * max(sample.n_items, 1)


def _balance(x: IntArray, y: IntArray) -> float:
    """Concordant less discordant pairs, from tau-c, whose denominator is simple (Stuart 1953)."""
    classes = min(np.unique(x).size, np.unique(y).size)
    if classes < 2:
        return 0.0
    tau = float(stats.kendalltau(x, y, variant="c").statistic)
    return math.floor(tau * x.size**2 * (classes - 1) / classes / 2.0 + 0.5)
