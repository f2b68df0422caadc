"""Spearman's rho: values by group, and the linear form of its swapped differences."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.statistics.permutation.ranks import Ranks, centred_ranks
from benchmarks.statistics.permutation.sample import Sample


class SpearmanForm:
    """Coefficients L of pairs of metrics without ties, both standardised to ranks.

    With g the centred ranks of the gold and r those of a metric, the hybrids differ by

        L_k = g_k (r_a,k - r_b,k) + (T(r_a,k) - T(r_b,k)) / 2,   T = T_a + T_b,

    times 1 / sqrt(SS_g SS_r), where T_m(r) adds up the g of the items that m ranks above r, and
    half of it at r. Since both metrics hold every rank once, as many scores of b as of a lie
    below a given rank: no merging, only T to be looked up.
    """

    def __init__(self, sample: Sample, ranks: list[Ranks]) -> None:
        """Prepare what depends on one metric only.

        Args:
            sample: its gold.
            ranks: of each metric; those with ties are never asked for.
        """
        gold = centred_ranks(sample.gold, sample)
        sizes = sample.sizes.astype(np.float64)
        square = sample.by_group(gold**2) * (sizes**3 - sizes) / 12.0
        self._weight = (1.0 / np.sqrt(square) / sample.n_groups)[sample.group]
        self._sample, self._ranks = sample, ranks
        self._above = [_above(gold[r.order]) for r in ranks]
        own = zip(self._above, ranks, strict=True)
        self._own = [gold * r.place + above[r.place] for above, r in own]

    def coefficients(self, first: int, second: int) -> FloatArray:
        """L of a pair, shape (C,); it adds up to the difference of the correlations."""
        form = self._own[first] - self._own[second]
        form += self._above[second][self._ranks[first].place]
        form -= self._above[first][self._ranks[second].place]
        form *= self._weight
        return self._sample.by_cluster(form)


def _above(gold: FloatArray) -> FloatArray:
    """Half of T at each place, from the gold in ascending order of the metric.

    The gold of a group adds up to 0, so the sums start anew with each group by themselves; they
    are of halves, hence exact.
    """
    above = np.cumsum(gold)
    above -= gold / 2.0
    above *= -0.5
    return above


def spearman_values(ranks: list[Ranks], sample: Sample) -> FloatArray:
    """Spearman's rho of each metric in each group, shape (M, G); 0 where the metric is constant."""
    gold = centred_ranks(sample.gold, sample)
    values = np.zeros((len(ranks), sample.n_groups))
    gold_square = sample.by_group(gold**2)
    for row, found in zip(values, ranks, strict=True):
        own = found.average(sample) - ((sample.sizes + 1) / 2.0)[sample.group]
        square = sample.by_group(own**2)
        root = np.sqrt(square) * np.sqrt(gold_square)
        np.divide(sample.by_group(own * gold), root, out=row, where=square > 0)
    return values
