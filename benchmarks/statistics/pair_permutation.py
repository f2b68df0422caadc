"""Permutation tests of pairwise accuracy with tie calibration, for all pairs of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
from benchmarks.statistics.perm_both import DEFAULT_DRAWS, checked, patterns
from benchmarks.statistics.permutation import (
    PairTable,
    PermutationTests,
    Sample,
    SwapSigns,
    WholeGroups,
    bounds_of,
    positions,
    threshold,
)
from benchmarks.statistics.samples import pairs_within

_BLOCK = 1 << 18  # pairs of items looked at together
_ROUNDING = 1e-9  # of a pair's weight: accuracies that differ by less are equal


@dataclass(frozen=True)
class PairBlock:
    """Pairs of items, those of equal gold first."""

    low: IntArray  # shape (P,), the item of each pair that the gold ranks lower, or either one
    high: IntArray  # shape (P,), the other item
    n_tied: int  # pairs of equal gold

    def differences(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Absolute ones of pairs of equal gold; signed ones, high less low, of the others."""
        with np.errstate(over="ignore"):
            found = scores[self.high] - scores[self.low]
        tied = found[: self.n_tied]
        np.abs(tied, out=tied)
        return tied, found[self.n_tied :]

    def right(self, scores: FloatArray, threshold: float) -> BoolArray:
        """Mask of the right pairs."""
        tied, ordered = self.differences(scores)
        return np.concatenate([tied <= threshold, ordered > threshold])


@dataclass(frozen=True)
class ItemPairs:
    """Pairs of items within groups of two and more; items lie by group.

    A pair is right where metric and gold both tie it, or both order it alike; accuracies are
    averaged over the groups, and one threshold serves all of them (Deutsch et al. 2023, section 5).
    """

    gold: FloatArray  # shape (n,), finite
    bounds: IntArray  # shape (G + 1,), where the groups begin and end, from 0

    @cached_property
    def pairs_of_group(self) -> IntArray:
        """Shape (G,), pairs of items of each group."""
        sizes = np.diff(self.bounds)
        pairs: IntArray = sizes * (sizes - 1) // 2
        return pairs

    @property
    def blocks(self) -> Iterable[PairBlock]:
        """Blocks of all pairs; those of several groups are listed once, those of one group each time."""
        return self._made() if self.bounds.size == 2 else self._listed

    @cached_property
    def _listed(self) -> list[PairBlock]:
        return list(self._made())

    @cached_property
    def _group(self) -> IntArray:
        return np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))

    def _made(self) -> Iterator[PairBlock]:
        for low, high in pairs_within(self.bounds, _BLOCK):
            yield self._sorted_out(low, high)

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


def pair_swaps(
    scores: ArrayLike,
    gold: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    n_draws: int = DEFAULT_DRAWS,
    seed: int = 0,
) -> PermutationTests:
    """Test each pair of M metrics for a difference of their mean pairwise accuracies.

    A pair of items' two verdicts, right or wrong, are swapped; each metric keeps its own threshold,
    as swapped scores would have none in common. The difference of the accuracies is then a sum of
    independent signs over the pairs on which exactly one metric is right.

    Without clusters, each pair of items swaps by itself. With groups of one size, the test is the
    sign test, exact and without draws: Binomial(number of pairs on which the metrics differ, 1/2).
    With several sizes the signs are weighted by 1 / pairs of the group, and drawn. The null
    hypothesis takes the pairs of items for independent, although each item is in many, so a true
    null is rejected too often. With clusters, whole groups swap instead: prefer that.

    `scores` (n, M); NaN where a score is missing. Two metrics are calibrated and tested on the
    items that have both; `gold` (n,), finite; `groups` (n,), labels; items are compared within
    groups, and accuracies averaged over the groups of two items and more. None: all items are one
    group; `clusters` (n,), labels of what swaps together, unions of groups; `n_draws`: number K of
    draws, where any are needed; `seed`: seed of the generator; the same draws serve all pairs.
    Returns: Differences of accuracy and two-sided p-values. A constant metric has an accuracy, it
    ties all pairs. NaN, with a reason, where no group has two items or, with clusters, where there
    are fewer than two. Without clusters `n_draws` is 0 if nothing was drawn.
    """
    x, y = checked(scores, gold)
    within = np.zeros(y.size, np.intp) if groups is None else positions(groups, y.size)
    rows = within if clusters is None else positions(clusters, y.size)
    signs = SwapSigns(int(rows.max(initial=0)) + 1, n_draws, seed)
    table = PairTable.of(x.shape[1])
    drawn = clusters is not None
    for items, first, second in patterns(np.isfinite(x)):
        columns = np.unique(np.append(first, second))
        sample = _by_size(x[np.ix_(items, columns)], y[items], within[items], rows[items], signs)
        reason = _refusal(sample, by_cluster=clusters is not None)
        if reason:
            for a, b in zip(first.tolist(), second.tolist(), strict=True):
                table.reasons[a, b] = reason
            continue
        i, j = np.searchsorted(columns, first), np.searchsorted(columns, second)
        if clusters is not None:
            found = _by_cluster(sample, i, j, signs)
        else:
            verdicts = _Verdicts.of(sample)
            drawn |= not verdicts.closed
            found = verdicts.tested(i, j, signs)
        table.fill(first, second, *found)
    if clusters is not None:
        return table.tests(signs.n_patterns, signs.exact)
    return table.tests(n_draws if drawn else 0, not drawn)


def _by_size(
    scores: FloatArray, gold: FloatArray, groups: IntArray, clusters: IntArray, signs: SwapSigns
) -> Sample:
    """Items by group, small groups first, without groups of a single item."""
    sizes = np.bincount(groups)[groups] if groups.size else groups
    order = np.lexsort((groups, sizes))
    order = order[sizes[order] > 1]
    return Sample(
        scores[order], gold[order], bounds_of(groups[order]), clusters[order], signs.n_clusters
    )


def _refusal(sample: Sample, *, by_cluster: bool) -> str | None:
    if not sample.n_groups:
        return "no two items of a group have both scores"
    if by_cluster and not sample.groups_are_whole:
        raise ValueError("a group lies in more than one cluster: its pairs cannot be swapped")
    if by_cluster and (sample.clusters == sample.clusters[0]).all():
        return "fewer than two clusters: there is nothing to swap"
    return None


def _by_cluster(
    sample: Sample, first: IntArray, second: IntArray, signs: SwapSigns
) -> tuple[FloatArray, FloatArray]:
    pairs = ItemPairs(sample.gold, sample.bounds)
    values = [pairs.accuracies(column, pairs.threshold(column)) for column in sample.scores.T]
    null = WholeGroups(np.array(values), sample, first, second)
    hits = np.zeros(first.size, np.intp)
    for block in signs.blocks():
        hits += null.hits(block)
    return null.observed, signs.p_values(hits)


@dataclass(frozen=True)
class _Verdicts:
    """On how many pairs of items one metric is right and the other is not."""

    # shape (S, M, M), pairs that the metric of the row is right on, but not that of the column, in
    # groups of each of S sizes
    only: FloatArray
    weights: FloatArray  # shape (S,), of such a pair in the mean accuracy

    @classmethod
    def of(cls, sample: Sample) -> _Verdicts:
        """Calibrate all metrics, then compare their verdicts."""
        pairs = ItemPairs(sample.gold, sample.bounds)
        limits = [pairs.threshold(column) for column in np.ascontiguousarray(sample.scores.T)]
        sizes, starts = np.unique(sample.sizes, return_index=True)
        only = []
        for first, last in pairwise([*starts.tolist(), sample.n_groups]):
            bounds = sample.bounds[first : last + 1]
            rows = slice(bounds[0], bounds[-1])
            columns = np.ascontiguousarray(sample.scores[rows].T)
            # Groups of one size are all of them: their pairs are listed already.
            part = pairs if sizes.size == 1 else ItemPairs(sample.gold[rows], bounds - bounds[0])
            both = np.zeros((len(limits), len(limits)))
            for block in part.blocks:
                right = [block.right(x, e) for x, e in zip(columns, limits, strict=True)]
                single = np.array(right, np.float32)
                both += single @ single.T  # whole numbers below 2^24: exact
            only.append(np.diag(both)[:, None] - both)
        return cls(np.array(only), 2.0 / (sizes * (sizes - 1.0)) / sample.n_groups)

    @property
    def closed(self) -> bool:
        """True where the null distribution of every pair of metrics has a closed form."""
        return self.weights.size == 1

    def tested(
        self, first: IntArray, second: IntArray, signs: SwapSigns
    ) -> tuple[FloatArray, FloatArray]:
        """Differences and p-values of some pairs, shape (P,) each."""
        won, lost = self.only[:, first, second], self.only[:, second, first]
        observed = self.weights @ (won - lost)
        if self.weights.size == 1:
            tail = scipy.stats.binom.cdf(np.minimum(won, lost)[0], (won + lost)[0], 0.5)
            return observed, np.minimum(2.0 * tail, 1.0)
        counts = (won + lost).astype(np.int64)
        p_values = [
            self._drawn(counts[:, pair], float(observed[pair]), signs) for pair in range(first.size)
        ]
        return observed, np.array(p_values)

    def _drawn(self, counts: IntArray, observed: float, signs: SwapSigns) -> float:
        """P-value of a pair of metrics from drawn numbers of signs; each pair draws anew."""
        rng = np.random.default_rng(signs.seed)
        heads = rng.binomial(counts, 0.5, (signs.n_draws, counts.size))
        deltas = np.abs((2 * heads - counts) @ self.weights)
        hits = (deltas >= threshold(np.array(observed))).sum()
        return float((1 + hits) / (1 + signs.n_draws))
