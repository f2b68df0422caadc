"""Pairwise accuracy with tie calibration (Deutsch et al. 2023): of samples, groups, resamples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.correlation import Groups
from benchmarks.statistics.kendall import quadratic
from benchmarks.statistics.samples import labelled, matched, pairs_within, spans

CountTable = NDArray[np.int32]

_TABLE_CELLS = 1 << 21  # entries of a table of counts by label (8 MiB of int32)


@dataclass(frozen=True)
class Pairs:
    """Unordered pairs of a sample, as groups of items with one score and one label.

    Counts come from tables of how many items lie before a score: time and memory grow with the
    items, not with their pairs.
    """

    values: FloatArray  # shape (V,), distinct scores, ascending
    value: IntArray  # shape (G,), index into `values` of each group, ascending
    level: IntArray  # shape (G,), rank of each group's label among the distinct labels
    size: IntArray  # shape (G,), number of items of each group

    @classmethod
    def of(cls, scores: ArrayLike, labels: ArrayLike) -> Pairs:
        """Group a sample of finite scores and labels, shape (n,) each."""
        x, y = matched(scores, labels)
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

        Two counts for each of the thresholds (E,), which are >= 0.
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
        """Items before each value by label, for as many labels at a time as the memory allows."""
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


_LISTED = 1 << 21  # differences that are listed and sorted together (16 MiB)
_BLOCK = 1 << 18  # differences that are computed at a time
_SPLITS = 96  # differences around which the counts are taken in one round


def best_threshold(pairs: Pairs) -> tuple[int, float]:
    """The threshold of most right pairs among 0 and all observed differences of scores.

    Let right(e) be the right pairs where scores that differ by at most e are tied. Between two
    counted thresholds a < b it is at most right(a) plus the tied pairs in between, and at most
    right(b) plus the concordant ones. The best e is 0 or the difference of a pair of equal labels.
    Stretches that may hold it are cut at differences that occur in them, until few enough pairs are
    left to list and sort.

    Returns: How many are right there, and the smallest such threshold.
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
        parts = [self._gains(group, first, count) for group in spans(np.cumsum(count), _BLOCK)]
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


@dataclass(frozen=True)
class Calibrated:
    """The best accuracy in 0..1 and the smallest threshold that reaches it; NaN without pairs."""

    accuracy: float
    threshold: float


def tie_calibrated(scores: ArrayLike, labels: ArrayLike) -> Calibrated:
    """Pairwise accuracy at the threshold that is best on these items.

    Two items are tied for the metric where their scores differ by at most a threshold e, and tied
    for people where their labels are equal. A pair is right where both call it tied, or where
    neither does and both order it alike (Deutsch et al. 2023). The threshold is the smallest best
    one among 0 and all observed differences, as float64 has them.

    `scores` (n,), finite; `labels` (n,), finite.
    """
    return calibrated(Pairs.of(scores, labels))


def calibrated(pairs: Pairs) -> Calibrated:
    """`tie_calibrated` of a sample whose pairs are also counted otherwise."""
    if not pairs.n_pairs:
        return Calibrated(math.nan, math.nan)
    right, threshold = best_threshold(pairs)
    return Calibrated(right / pairs.n_pairs, threshold)


def pairwise_accuracy(scores: ArrayLike, labels: ArrayLike, threshold: float = 0.0) -> float:
    """Share of right pairs at a given threshold; at 0 only equal scores are tied.

    `scores` (n,), finite; `labels` (n,), finite; `threshold`: largest difference of scores that
    counts as a tie, >= 0.
    Returns: A value in 0..1; NaN for fewer than two items.
    """
    if not threshold >= 0.0:
        raise ValueError(f"a threshold is a difference of at least 0, not {threshold}")
    return Pairs.of(scores, labels).accuracy(threshold)


_BLOCK_CELLS = 1 << 21  # pairs of items compared at a time (2 MiB per mask)


@dataclass(frozen=True)
class PairForms:
    """Pairs of a sample by the clusters of their items, at one threshold.

    A resample's right pairs are a quadratic form of the multiplicities of clusters: pairs of
    different items are counted by cluster once, and two copies of one item are tied on both sides,
    hence right.

    Memory is 8 bytes for each pair of clusters; items are compared by blocks.
    """

    # shape (C, C), concordant pairs beyond the threshold whose item of the lower label is in the
    # cluster of the row
    concordant: NDArray[np.int32]
    # shape (C, C), symmetric: ordered pairs of items of equal label within the threshold, each item
    # with itself included
    tied: NDArray[np.int32]
    labels: scipy.sparse.csr_array  # shape (C, L), items of each cluster with each distinct label
    scores: scipy.sparse.csr_array  # shape (C, V), items of each cluster with each distinct score
    sizes: FloatArray  # shape (C,), items of each cluster

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        clusters: ArrayLike,
        n_clusters: int,
        threshold: float = 0.0,
    ) -> PairForms:
        """Compare all items with all items.

        `scores` (n,), finite; `labels` (n,), finite; `clusters` (n,), cluster index of each item;
        `threshold`: largest difference of scores that counts as a tie, >= 0.
        """
        x, y, index = labelled(scores, labels, clusters)
        forms = np.zeros((2, n_clusters, n_clusters), np.int32)
        sizes = np.bincount(index, minlength=n_clusters).astype(np.float64)
        order = np.argsort(index, kind="stable")
        values, value = np.unique(x[order], return_inverse=True)
        level = np.unique(y[order], return_inverse=True)[1]
        small = np.min_scalar_type(x.size)  # narrow numbers compare faster
        end = reach(values, threshold)[value].astype(small)
        place, rank = value.astype(small), level.astype(small)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        present = np.flatnonzero(sizes)
        starts = bounds[present]
        ends = np.append(starts[1:], x.size)[: present.size]
        for part in spans(ends, max(_BLOCK_CELLS // max(x.size, 1), 1)):
            rows = slice(starts[part.start], ends[part.stop - 1])
            masks = (
                (rank[rows, None] < rank) & (place >= end[rows, None]),
                (rank[rows, None] == rank) & (place < end[rows, None]) & (place[rows, None] < end),
            )
            block = np.ix_(present[part], present)
            for form, mask in zip(forms, masks, strict=True):
                form[block] = _summed(mask, starts[part] - rows.start, starts)
        return cls(
            forms[0],
            forms[1],
            _by_cluster(index[order], level, n_clusters),
            _by_cluster(index[order], value, n_clusters),
            sizes,
        )

    def among(self, clusters: IntArray) -> PairForms:
        """The forms of some clusters only, in the order given."""
        block = np.ix_(clusters, clusters)
        return PairForms(
            self.concordant[block],
            self.tied[block],
            self.labels[clusters],
            self.scores[clusters],
            self.sizes[clusters],
        )

    def drawn(self, counts: FloatArray) -> DrawnPairs:
        """Pairs of draws in each resample, for non-negative whole counts (B, C)."""
        items = counts @ self.sizes
        return DrawnPairs(
            pairs=items * (items - 1.0) / 2.0,
            concordant=quadratic(self.concordant, counts),
            # The symmetric form holds each pair of draws twice, and each draw with itself.
            both_tied=(quadratic(self.tied, counts) - items) / 2.0,
            label_tied=_resampled_pairs_within(counts, self.labels),
            score_tied=_resampled_pairs_within(counts, self.scores),
        )


@dataclass(frozen=True)
class DrawnPairs:
    """Counts of pairs in each resample, shape (B,) each."""

    pairs: FloatArray  # all of them
    concordant: FloatArray  # ordered alike, and beyond the threshold in score
    both_tied: FloatArray  # of equal label, and within the threshold in score
    label_tied: FloatArray  # of equal label
    score_tied: FloatArray  # of equal score, whatever the threshold

    @property
    def accuracy(self) -> FloatArray:
        """Share of right pairs; NaN for resamples of fewer than two items."""
        return _share(self.concordant + self.both_tied, self.pairs)

    @property
    def accuracy_ignoring_ties(self) -> FloatArray:
        """Concordant pairs over pairs of different labels; NaN without any. For threshold 0."""
        return _share(self.concordant, self.pairs - self.label_tied)

    @property
    def tau_b(self) -> FloatArray:
        """Kendall's tau-b; NaN where scores or labels are constant. For threshold 0."""
        by_label, by_score = self.pairs - self.label_tied, self.pairs - self.score_tied
        ordered = by_label + by_score - self.pairs + self.both_tied
        return _share(2.0 * self.concordant - ordered, np.sqrt(by_label) * np.sqrt(by_score))


def _summed(mask: NDArray[np.bool_], rows: IntArray, columns: IntArray) -> NDArray[np.int32]:
    """Sums of a mask over runs of rows and of columns that start there."""
    longest = int(np.diff(np.append(rows, mask.shape[0])).max())
    # Sums in the mask's own narrow type, where they fit, are several times as fast.
    first = np.uint8 if longest < 256 else np.int32
    by_row = np.add.reduceat(mask.view(np.uint8), rows, axis=0, dtype=first)
    widest = int(np.diff(np.append(columns, mask.shape[1])).max())
    second = np.uint8 if longest * widest < 256 else np.int32
    return np.asarray(np.add.reduceat(by_row, columns, axis=1, dtype=second), np.int32)


def _by_cluster(clusters: IntArray, kinds: IntArray, n_clusters: int) -> scipy.sparse.csr_array:
    """Items of each cluster of each kind, shape (C, kinds)."""
    shape = (n_clusters, int(kinds.max(initial=0)) + 1)
    return scipy.sparse.csr_array((np.ones(kinds.size), (clusters, kinds)), shape=shape)


def _resampled_pairs_within(counts: FloatArray, kinds: scipy.sparse.csr_array) -> FloatArray:
    """Pairs of draws of one kind in each resample, shape (B,); some resamples at a time."""
    pairs = np.zeros(counts.shape[0])
    step = max(_BLOCK_CELLS // kinds.shape[1], 1)
    for start in range(0, counts.shape[0], step):
        drawn = counts[start : start + step] @ kinds
        pairs[start : start + step] = (drawn * (drawn - 1.0)).sum(axis=1) / 2.0
    return pairs


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


MOST_PAIRS = 1 << 26
"""Pairs are listed, at some 50 bytes each; larger pools belong to `pairwise`, which counts them."""
MOST_COMMON_MULTIPLE = 1 << 53
"""Weights of pairs are whole numbers as long as all of them add up to less than this."""
_SAMPLED = 16  # of so many pairs one is looked at to see how large the leads are

Weights = NDArray[np.int64] | FloatArray


@dataclass(frozen=True)
class GroupedPairs:
    """Pairs within groups, as the labels see them: shared by all metrics.

    Accuracy is the mean over the groups of their shares of right pairs; one threshold serves all
    groups (Deutsch, Foster and Freitag 2023, section 5). Every candidate is looked at: 0 and all
    differences of pairs that people tied.
    """

    n_items: int  # number n of items
    tied: IntArray  # shape (2, T), items of the pairs with equal labels
    ordered: IntArray  # shape (2, O), items of the other pairs, the one of the lower label first
    tied_groups: IntArray  # shape (T,), group of each tied pair
    ordered_groups: IntArray  # shape (O,), group of each ordered pair
    pairs: IntArray  # shape (G,), pairs of each group

    @classmethod
    def of(cls, labels: ArrayLike, groups: Groups) -> GroupedPairs:
        """Pairs of items with finite labels (n,) in these groups."""
        y = np.asarray(labels, np.float64)
        if y.shape != groups.order.shape:
            raise ValueError(f"labels {y.shape} and {groups.order.size} grouped items do not fit")
        if not np.isfinite(y).all():
            raise ValueError("labels must be finite; leave items without one out")
        pairs = groups.sizes * (groups.sizes - 1) // 2
        if pairs.sum() > MOST_PAIRS:
            raise ValueError(
                f"{pairs.sum()} pairs within groups are too many to list; the limit is "
                f"{MOST_PAIRS}; use benchmarks.statistics.pairwise_accuracy for one large pool"
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

        `scores` (n,), finite; `threshold`: largest difference of scores that counts as a tie, >= 0.
        Returns: shape (G,), in 0..1; NaN for groups of fewer than two items. Its mean over
        resampled groups is the accuracy of a resample at that threshold.
        """
        if not threshold >= 0.0:
            raise ValueError(f"a threshold is a difference of at least 0, not {threshold}")
        apart, gained = self._differences(scores)
        right = np.bincount(self.tied_groups[apart <= threshold], minlength=self.pairs.size)
        right += np.bincount(self.ordered_groups[gained > threshold], minlength=self.pairs.size)
        with np.errstate(invalid="ignore"):
            share: FloatArray = right / self.pairs
        return share

    def accuracy_ignoring_ties(self, scores: ArrayLike) -> FloatArray:
        """Concordant pairs over pairs of different labels in each group, shape (G,), or NaN."""
        leading = self.ordered_groups[self._differences(scores)[1] > 0.0]
        size = self.pairs.size
        ordered = np.bincount(self.ordered_groups, minlength=size)
        with np.errstate(invalid="ignore"):
            share: FloatArray = np.bincount(leading, minlength=size) / ordered
        return share

    def tie_calibrated(self, scores: ArrayLike) -> Calibrated:
        """The best mean accuracy over the groups with pairs, and its smallest threshold.

        `scores` (n,), finite.
        Returns: Exact where the numbers of pairs of the groups have a least common multiple below
        2^53 over, as all groups of one size have; else sums of fractions in doubles. NaN where no
        group has a pair.
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
        """Weights of a pair of each group, shape (G,), and of all pairs together."""
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
