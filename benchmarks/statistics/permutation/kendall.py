"""Kendall's tau-b: values by group, and the linear form of its swapped differences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.permutation.ranks import Ranks
from benchmarks.statistics.permutation.sample import Sample


class PrefixOrder:
    """Of a sequence of classes: how many of a prefix are lower, less how many are higher.

    A wavelet matrix (Claude, Navarro and Ordonez 2015): one table of counts for each bit of the
    classes, so that any number of queries costs as many look-ups each as there are bits.
    """

    def __init__(self, classes: IntArray) -> None:
        """Split the sequence (n,) of non-negative classes bit by bit, the highest first."""
        self._levels: list[tuple[int, NDArray[np.int32]]] = []
        rest = classes
        for bit in reversed(range(max(int(classes.max(initial=0)).bit_length(), 1))):
            one = (rest >> bit & 1).astype(np.bool_)
            zeros = np.zeros(rest.size + 1, np.int32)
            np.cumsum(~one, out=zeros[1:])
            self._levels.append((bit, zeros))
            rest = np.concatenate([rest[~one], rest[one]])

    def balance(self, start: IntArray, end: IntArray, than: IntArray) -> IntArray:
        """Members of start..end - 1 in a lower class than given, less those in a higher one.

        Args:
            start: shape (q,).
            end: shape (q,), >= start.
            than: shape (q,), classes of the sequence.
        """
        left, right = start.astype(np.int32), end.astype(np.int32)
        lower = np.zeros(end.size, np.int32)
        for bit, zeros in self._levels:
            low, high = zeros[left], zeros[right]
            one = (than >> bit & 1).astype(np.bool_)
            lower += (high - low) * one
            left = np.where(one, left - low + zeros[-1], low)
            right = np.where(one, right - high + zeros[-1], high)
        # What is left between the two are the members of the class itself.
        balance: IntArray = (2 * lower + (right - left)).astype(np.intp) - (end - start)
        return balance


class KendallForm:
    """Coefficients L of pairs of metrics without ties, both standardised to ranks.

    With s the sign of a difference, F_m(k, r) = sum_j s(g_k - g_j) s(r - r_m,j), and the gold's
    pairs of different value n_g of all n (n - 1) / 2,

        L_k = (F(k, r_a,k) - F(k, r_b,k)) / 2 / sqrt(n_g n (n - 1) / 2),   F = F_a + F_b.
    """

    def __init__(self, sample: Sample, ranks: list[Ranks]) -> None:
        """Prepare what depends on one metric only.

        Args:
            sample: its gold.
            ranks: of each metric; those with ties are never asked for.
        """
        gold = Ranks.of(sample.gold, sample)
        self._sample, self._ranks = sample, ranks
        self._gold = gold.classes(sample)
        self._start = sample.starts[sample.group]
        pairs = all_pairs(sample) * ordered_pairs(gold, sample)
        self._weight = (0.5 / np.sqrt(pairs) / sample.n_groups)[sample.group]
        self._orders = [PrefixOrder(self._gold[r.order]) for r in ranks]
        self._own = [self._balance(m, r.place) for m, r in enumerate(ranks)]

    def _balance(self, metric: int, place: IntArray) -> FloatArray:
        """F of a metric at the given places, less what only depends on the item."""
        before = self._orders[metric].balance(self._start, place, self._gold)
        there = np.sign(self._gold - self._gold[self._ranks[metric].order][place])
        return np.asarray(2 * before + there, np.float64)

    def coefficients(self, first: int, second: int) -> FloatArray:
        """L of a pair, shape (C,); it adds up to the difference of the correlations."""
        form = self._own[first] - self._own[second]
        form += self._balance(second, self._ranks[first].place)
        form -= self._balance(first, self._ranks[second].place)
        form *= self._weight
        return self._sample.by_cluster(form)


def kendall_values(ranks: list[Ranks], sample: Sample) -> FloatArray:
    """Tau-b of each metric in each group, shape (M, G); 0 where the metric is constant."""
    gold = Ranks.of(sample.gold, sample)
    classes = gold.classes(sample)
    start, end = sample.starts[sample.group], sample.bounds[1:][sample.group]
    untied = ordered_pairs(gold, sample)
    values = np.zeros((len(ranks), sample.n_groups))
    for row, found in zip(values, ranks, strict=True):
        order = PrefixOrder(classes[found.order])
        score = order.balance(start, found.low, classes) - order.balance(found.high, end, classes)
        ordered = ordered_pairs(found, sample)
        root = np.sqrt(untied) * np.sqrt(ordered)
        np.divide(sample.by_group(score / 2.0), root, out=row, where=ordered > 0)
    return values


def all_pairs(sample: Sample) -> FloatArray:
    """Pairs of items within each group, shape (G,)."""
    sizes = sample.sizes.astype(np.float64)
    pairs: FloatArray = sizes * (sizes - 1.0) / 2.0
    return pairs


def ordered_pairs(ranks: Ranks, sample: Sample) -> FloatArray:
    """Pairs of items of different value within each group, shape (G,)."""
    tied = (ranks.high - ranks.low - 1) / 2.0  # half of each item's partners in its run
    pairs: FloatArray = all_pairs(sample) - sample.by_group(tied)
    return pairs
