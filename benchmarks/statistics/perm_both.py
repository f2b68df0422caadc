"""PERM-BOTH (Deutsch et al. 2021): differences of metrics' correlations with one gold."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.permutation import (
    LinearNull,
    Null,
    PairTable,
    PermutationTests,
    Ranks,
    Sample,
    Signs,
    SwapSigns,
    WholeGroups,
    centred_ranks,
    positions,
    signed_sums,
)
from benchmarks.statistics.samples import blocks

# Pearson's r.


_CELLS = 1 << 20  # numbers of a work array (8 MiB)
_NO_SPREAD = 1e-12  # share of the sum of squares below which a hybrid is constant but for rounding


def standardised(sample: Sample) -> FloatArray:
    """Scores (n, M) as z-scores within the groups; 0 where a metric is constant there."""
    centred = sample.centred(sample.scores)
    largest = np.maximum.reduceat(np.abs(centred), sample.starts, axis=0)
    spread = np.maximum.reduceat(sample.scores, sample.starts, axis=0) > np.minimum.reduceat(
        sample.scores, sample.starts, axis=0
    )
    # Squares of deviations in units of the largest one neither overflow nor vanish.
    unit = np.where(spread & (largest > 0), largest, np.inf)[sample.group]
    scaled = sample.centred(centred / unit)
    square = sample.by_group(scaled**2) / sample.sizes[:, None]
    z: FloatArray = scaled / np.sqrt(np.where(square > 0, square, 1.0))[sample.group]
    return z


def _unit_gold(sample: Sample) -> FloatArray:
    """Gold centred within the groups, of sum of squares 1."""
    gold = sample.centred(sample.gold)
    gold = gold / np.maximum.reduceat(np.abs(gold), sample.starts)[sample.group]
    unit: FloatArray = gold / np.sqrt(sample.by_group(gold**2))[sample.group]
    return unit


def pearson_values(sample: Sample) -> FloatArray:
    """Pearson's r of each metric in each group, shape (M, G); 0 where the metric is constant."""
    products = sample.by_group(standardised(sample) * _unit_gold(sample)[:, None])
    return np.asarray((products / np.sqrt(sample.sizes)[:, None]).T, np.float64)


class PearsonNull(Null):
    """The sums of h, h^2 and h g over a hybrid h, for three columns per metric instead of pair.

    A hybrid's sum of a column is half the sum of both metrics' columns, plus or minus half the
    difference of their products with the signs.
    """

    def __init__(self, sample: Sample, first: IntArray, second: IntArray) -> None:
        """Prepare the columns of all metrics."""
        z, gold = standardised(sample), _unit_gold(sample)
        self._sample, self._first, self._second = sample, first, second
        self._columns = np.stack([z, z**2, z * gold[:, None]])  # (3, n, M)
        self._totals = np.stack([sample.by_group(column) for column in self._columns])
        self._by_pair = first.size < z.shape[1]
        if self._by_pair:  # then the differences are fewer
            self._columns = self._columns[..., first] - self._columns[..., second]
        if sample.n_groups == 1:
            summed = [sample.clustered(column) for column in self._columns]
            by_row = [column.T for column in summed]
            self._columns = np.concatenate(by_row).copy("C")  # (3 M, C), or per pair
        self.observed = self.deltas(np.ones((sample.n_clusters, 1), np.int8))[:, 0]

    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""
        swapped = self._swapped_sums(signs)
        width = max(_CELLS // max(swapped[0, 0].size, 1), 1)
        parts = [
            self._differences(swapped, rows)
            for start in range(0, self._first.size, width)
            for rows in [slice(start, start + width)]
        ]
        return np.concatenate(parts) if parts else np.zeros((0, signs.shape[1]))

    def _swapped_sums(self, signs: Signs) -> FloatArray:
        """Products of the columns with the signs by group, shape (3, M or P, G, k)."""
        if self._sample.n_groups == 1:
            flat = signed_sums(self._columns, signs)
            return flat.reshape(3, -1, 1, signs.shape[1])
        of_items = signs.astype(np.float64)[self._sample.clusters]
        n_columns = self._columns.shape[2]
        sums = np.empty((3, n_columns, self._sample.n_groups, signs.shape[1]))
        for kind, column in enumerate(self._columns):
            for metric in range(n_columns):
                sums[kind, metric] = self._sample.by_group(column[:, metric, None] * of_items)
        return sums

    def _differences(self, swapped: FloatArray, rows: slice) -> FloatArray:
        first, second = self._first[rows], self._second[rows]
        both = self._totals[:, :, first] + self._totals[:, :, second]  # (3, G, pairs)
        even = both.transpose(0, 2, 1)[..., None] / 2.0
        odd = swapped[:, rows] if self._by_pair else swapped[:, first] - swapped[:, second]
        odd = odd / 2.0
        difference = self._correlations(even + odd) - self._correlations(even - odd)
        mean: FloatArray = difference.mean(axis=1)
        return mean

    def _correlations(self, sums: FloatArray) -> FloatArray:
        """Pearson's r from its three sums (3, pairs, G, k); 0 for a constant hybrid."""
        total, square, product = sums
        spread = square - total**2 / self._sample.sizes[:, None]
        varied = spread > _NO_SPREAD * square
        root = np.sqrt(np.where(varied, spread, 1.0))
        correlations: FloatArray = np.where(varied, product / root, 0.0)
        return correlations


# Spearman's rho.


class SpearmanForm:
    """Coefficients L of pairs of metrics without ties, both standardised to ranks.

    With g the centred ranks of the gold and r those of a metric, the hybrids differ by

        L_k = g_k (r_a,k - r_b,k) + (T(r_a,k) - T(r_b,k)) / 2,   T = T_a + T_b,

    times 1 / sqrt(SS_g SS_r), where T_m(r) adds up the g of the items that m ranks above r, and
    half of it at r. Since both metrics hold every rank once, as many scores of b as of a lie
    below a given rank: no merging, only T to be looked up.
    """

    def __init__(self, sample: Sample, ranks: list[Ranks]) -> None:
        """Prepare what depends on one metric only."""
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


# Kendall's tau-b.


class PrefixOrder:
    """Balance of a stretch of classes: its lower members less its higher ones.

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
        """Members of start..end - 1 in a lower class than given, less those in a higher one."""
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
        """Prepare what depends on one metric only."""
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


CELLS_PER_ITEM = 256
"""Above so many pairs of a level and a class of the gold per item, tables cost more than this."""


class TiedKendallByDraw(Null):
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
    """Test for tables of `TiedKendall` that would be too large."""
    classes = int(Ranks.of(sample.gold, sample).classes(sample).max(initial=0)) + 1
    levels = max((int(np.count_nonzero(r.low == r.place)) for r in ranks), default=0)
    return 2 * levels * classes > CELLS_PER_ITEM * max(sample.n_items, 1)


def _balance(x: IntArray, y: IntArray) -> float:
    """Concordant less discordant pairs, from tau-c, whose denominator is simple (Stuart 1953)."""
    classes = min(np.unique(x).size, np.unique(y).size)
    if classes < 2:
        return 0.0
    tau = float(scipy.stats.kendalltau(x, y, variant="c").statistic)
    return math.floor(tau * x.size**2 * (classes - 1) / classes / 2.0 + 0.5)


_NUMBERS = 1 << 22  # numbers of a work array (32 MiB)


@dataclass(frozen=True)
class _Levels:
    """The runs of ties of one metric, group by group."""

    keys: IntArray  # shape (L,), twice the average place of each run, ascending
    starts: IntArray  # shape (G,), the first level of each group
    sums: (
        scipy.sparse.csr_array
    )  # shape (L * W, n), adds up W quantities of the items on each level
    totals: FloatArray  # shape (L, W, 1), these sums over all items

    @classmethod
    def of(cls, ranks: Ranks, sample: Sample, kinds: IntArray, weights: FloatArray) -> _Levels:
        """Levels of a metric."""
        keys, level = np.unique(ranks.doubled, return_inverse=True)
        width = int(kinds.max()) + 1
        items = np.broadcast_to(np.arange(sample.n_items), kinds.shape)
        cells = (level * width + kinds).ravel(), items.ravel()
        sums = scipy.sparse.csr_array((weights.ravel(), cells), (keys.size * width, sample.n_items))
        starts = np.searchsorted(keys, 2 * sample.starts)
        return cls(keys, starts, sums, np.asarray(sums.sum(axis=1)).reshape(-1, width, 1))

    def of_chosen(self, mask: FloatArray) -> FloatArray:
        """The sums of chosen items only, shape (L, W, k), from a mask (n, k)."""
        found: FloatArray = self.sums @ mask
        return found.reshape(*self.totals.shape[:2], -1)


class TiedNull(Null):
    """Differences of a rank correlation for P pairs of metrics with any ties.

    Where a metric has ties, which of them a hybrid inherits depends on the draw, and so does its
    denominator. The levels of both metrics are merged once per pair, and for each draw only what
    lies on each level is added up. Equal ranks of two metrics are no tie of the data: they count as
    ordered both ways, half each, and denominators know only ties within one metric.
    """

    def __init__(
        self,
        sample: Sample,
        levels: Mapping[int, _Levels],
        pairs: list[tuple[int, int]],
        scale: FloatArray,
    ) -> None:
        """Keep the levels."""
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


Statistic = Literal["pearson", "spearman", "kendall"]

_COEFFICIENTS = 1 << 24  # numbers of a matrix of coefficients (64 MiB of float32)


def nulls(
    sample: Sample, statistic: Statistic, first: IntArray, second: IntArray
) -> Iterator[tuple[IntArray, Null]]:
    """The null distributions of some pairs of metrics, in batches that fit in memory."""
    if not first.size:
        return
    everything = np.arange(first.size)
    if statistic == "pearson":
        if sample.n_groups > 1 and sample.groups_are_whole:
            yield everything, WholeGroups(pearson_values(sample), sample, first, second)
        else:
            yield everything, PearsonNull(sample, first, second)
        return
    ranks = [Ranks.of(column, sample) for column in sample.scores.T]
    if sample.n_groups > 1 and sample.groups_are_whole:
        values = spearman_values if statistic == "spearman" else kendall_values
        yield everything, WholeGroups(values(ranks, sample), sample, first, second)
        return
    tied = np.array([not found.tie_free for found in ranks])
    plain = ~(tied[first] | tied[second])
    if plain.any():
        form = (SpearmanForm if statistic == "spearman" else KendallForm)(sample, ranks)
        for batch in blocks(np.flatnonzero(plain), _COEFFICIENTS // sample.n_clusters):
            yield batch, LinearNull(_listed(first[batch], second[batch]), form.coefficients)
    if not plain.all():
        rest = np.flatnonzero(~plain)
        yield rest, _tied(sample, statistic, ranks, _listed(first[rest], second[rest]))


def _listed(first: IntArray, second: IntArray) -> list[tuple[int, int]]:
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _tied(
    sample: Sample, statistic: Statistic, ranks: list[Ranks], pairs: list[tuple[int, int]]
) -> Null:
    if statistic == "spearman":
        return TiedSpearman.of(sample, ranks, pairs)
    if too_many_cells(sample, ranks):
        return TiedKendallByDraw(sample, ranks, pairs)
    return TiedKendall.of(sample, ranks, pairs)


DEFAULT_DRAWS = 1000


def perm_both(
    scores: ArrayLike,
    gold: ArrayLike,
    statistic: Statistic,
    *,
    clusters: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_draws: int = DEFAULT_DRAWS,
    seed: int = 0,
) -> PermutationTests:
    """Test each pair of M metrics for a difference of their correlations with the gold.

    Deutsch, Dror and Roth (2021), TACL 9, section 5: both inputs are standardised, their scores are
    swapped at random, and the difference of the correlations is looked at again. The null
    hypothesis is that the two metrics are exchangeable on every cluster.

    Scores of different metrics have different units, so swapping raw ones would mix, say, 0..1
    with 0..100, and the hybrids would follow the wider metric. Hence Pearson's r swaps z-scores,
    the rank correlations swap average ranks: both unchanged by what the correlation itself does
    not see. Where correlations are taken within groups, so is the standardisation. Equal ranks of
    two metrics are no tie of the data: see `tied`.

    A correlation that is undefined because a metric, or a hybrid, is constant in a group counts
    as 0. Groups of fewer than two items or of constant gold are left out for all metrics.

    One matrix product serves all pairs of metrics without ties, and all metrics where no cluster
    cuts a group. Ties in a metric cost about ten times as much per pair (tau by group with item
    swaps a thousand times): their denominators change with each draw.

    Swap signs are drawn for clusters in the order of their labels (of items, without labels), once
    for all pairs: the p-value of a pair does not depend on other metrics. Up to 12 clusters, all
    patterns are looked at instead; the p-value then does not depend on the seed either.

    `scores` (n, M); NaN where a score is missing. A pair is tested on the items that have both;
    `gold` (n,), finite; `statistic`: `pearson`, `spearman` or `kendall` (tau-b); `clusters` (n,),
    labels; the items of a cluster swap together. None: each by itself; `groups` (n,), labels; the
    correlation is taken in each group, and averaged over the groups. None: over all items;
    `n_draws`: number K of patterns to draw, at least 1.
    Returns: Differences and two-sided p-values: the share of patterns with a difference as large as
    the observed one, (1 + hits) / (K + 1) for drawn ones. NaN, with a reason, where one of the
    metrics is constant on the items, the gold is constant, or there are fewer than two clusters. No
    pairs for M < 2.
    """
    x, y = checked(scores, gold)
    if statistic not in get_args(Statistic):
        raise ValueError(f"statistic {statistic!r} is none of {get_args(Statistic)}")
    rows = np.arange(y.size) if clusters is None else positions(clusters, y.size)
    within = None if groups is None else positions(groups, y.size)
    signs = SwapSigns(int(rows.max(initial=0)) + 1, n_draws, seed)
    table = PairTable.of(x.shape[1])
    for items, first, second in patterns(np.isfinite(x)):
        columns = np.unique(np.append(first, second))
        sample = Sample.of(
            x[np.ix_(items, columns)],
            y[items],
            None if within is None else within[items],
            rows[items],
            signs.n_clusters,
        )
        reasons = _undefined(sample)
        i, j = np.searchsorted(columns, first), np.searchsorted(columns, second)
        for pair in np.flatnonzero(np.isin(i, list(reasons)) | np.isin(j, list(reasons))):
            reason = reasons.get(int(i[pair])) or reasons[int(j[pair])]
            table.reasons[int(first[pair]), int(second[pair])] = reason
        good = ~(np.isin(i, list(reasons)) | np.isin(j, list(reasons)))
        table.fill(first[good], second[good], *_tested(sample, statistic, i[good], j[good], signs))
    return table.tests(signs.n_patterns, signs.exact)


def checked(scores: ArrayLike, gold: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Scores (n, M) and gold (n,) as arrays."""
    x, y = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    if x.ndim != 2 or y.ndim != 1 or len(x) != y.size:
        raise ValueError(f"scores {x.shape} and gold {y.shape} are not (n, M) and (n,)")
    if np.isinf(x).any():
        raise ValueError("a score is infinite; a missing one is NaN")
    if not np.isfinite(y).all():
        raise ValueError("the gold is not finite; leave items without gold out")
    return x, y


def patterns(present: BoolArray) -> Iterator[tuple[BoolArray, IntArray, IntArray]]:
    """Pairs of metrics, each with itself included, by the items that both have scores for."""
    bits = np.packbits(present.T, axis=1)
    first, second = np.triu_indices(len(bits))
    found: dict[bytes, list[int]] = {}
    for pair, (a, b) in enumerate(zip(first, second, strict=True)):
        found.setdefault((bits[a] & bits[b]).tobytes(), []).append(pair)
    for pairs in found.values():
        one, other = first[pairs[0]], second[pairs[0]]
        yield present[:, one] & present[:, other], first[pairs], second[pairs]


def _undefined(sample: Sample) -> dict[int, str]:
    """Metrics of the sample that cannot be tested, and why."""
    metrics = range(sample.scores.shape[1])
    if not sample.n_groups:
        return dict.fromkeys(metrics, "the gold is constant on the items that both have scores for")
    if (sample.clusters == sample.clusters[0]).all():
        return dict.fromkeys(metrics, "fewer than two clusters: there is nothing to swap")
    constant = (sample.scores == sample.scores[sample.starts][sample.group]).all(axis=0)
    return dict.fromkeys(np.flatnonzero(constant).tolist(), "a metric has constant scores")


def _tested(
    sample: Sample, statistic: Statistic, first: IntArray, second: IntArray, signs: SwapSigns
) -> tuple[FloatArray, FloatArray]:
    """Differences and p-values of some pairs, shape (P,) each."""
    observed, p_values = np.zeros(first.size), np.ones(first.size)
    others = np.flatnonzero(first != second)
    for rows, null in nulls(sample, statistic, first[others], second[others]):
        hits = np.zeros(rows.size, np.intp)
        for block in signs.blocks():
            hits += null.hits(block)
        observed[others[rows]] = null.observed
        p_values[others[rows]] = signs.p_values(hits)
    return observed, p_values
