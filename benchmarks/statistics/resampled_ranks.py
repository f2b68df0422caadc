"""Spearman's rho in every resample of clusters, from one fixed sort of each side.

An item drawn w times is w equal values, so a run of ties that starts after c draws and holds t
draws has the average rank c + (t + 1) / 2. With all ranks doubled and less their mean, the sums
behind rho are whole numbers: sum w rx ry over the items, and (T^3 - sum t^3) / 3 over the runs of
each side for T draws (Kendall 1948, the correction for ties). They are added up in whole numbers.

The side of the labels is prepared once for all metrics. Its items are taken in groups whose ranks
hardly differ, so that what is added up within a group stays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.clustered import Clustered, blocks, require_whole
from benchmarks.statistics.moments import ratio
from benchmarks.statistics.running_sums import DrawArray, RunningSums

_CACHED_CELLS = 1 << 21  # draws of items that are held at a time (8 MiB)
_LEVEL_ITEMS = 512  # items of one label in a group
_MIXED_ITEMS = 64  # items of several labels in a group


def resampled_spearman(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Spearman's rho in each resample: average ranks of the repeated sample from one fixed sort.

    Args:
        x: shape (n,) or (n, M), finite; M samples are correlated with the same y.
        y: shape (n,), finite.
        counts: shape (B, C), non-negative whole multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item; None: item i is cluster i.

    Returns:
        Shape (B,) or (B, M); NaN where a side is constant in the resample.

    Raises:
        ValueError: shapes do not fit, or a count is negative or not whole.
    """
    work = Clustered.of(x, y, counts, clusters)
    require_whole(work.counts)
    rho = np.full(work.shape, np.nan)
    if not work.y.size:
        return work.shaped(rho)
    labels = _Labels.of(work)
    sides = [_Scores.of(column, labels, work) for column in work.x.T]
    memory = _Memory()
    for rows in blocks(np.arange(rho.shape[0]), max(_CACHED_CELLS // work.y.size, 32)):
        drawn = _Drawn.of(labels, work.counts[rows])
        for metric, side in enumerate(sides):
            rho[rows, metric] = side.rho(drawn, memory)
    return work.shaped(rho)


@dataclass(frozen=True)
class _Labels:
    """The side all metrics share: items in ascending order of label, and groups of them.

    Attributes:
        runs: the order and its ties.
        order: shape (n,), items by label.
        clusters: shape (n,), cluster of each item by label.
        sizes: shape (C,), items of each cluster.
        groups: first and last position of each group, and whether its labels are all equal.
    """

    runs: RunningSums
    order: IntArray
    clusters: IntArray
    sizes: FloatArray
    groups: list[tuple[int, int, bool]]

    @classmethod
    def of(cls, work: Clustered) -> _Labels:
        runs = RunningSums.of(work.y, work.clusters, work.counts.shape[1])
        order = np.argsort(work.y, kind="stable")
        in_order = work.y[order]
        starts = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))
        sizes = np.bincount(work.clusters, minlength=work.counts.shape[1]).astype(np.float64)
        bounds = np.append(starts, order.size)
        return cls(runs, order, work.clusters[order], sizes, _groups(bounds))


@dataclass(frozen=True)
class _Group:
    """Some items of like label, in b resamples.

    Attributes:
        items: their positions by label.
        draws: shape (items, b).
        base: shape (b,), doubled rank of the lowest label, less the mean.
        beyond: shape (items, b), draws times how much the doubled rank exceeds the base; None
            where all labels are equal.
    """

    items: slice
    draws: DrawArray
    base: FloatArray
    beyond: DrawArray | None

    def rank_sum(self, values: DrawArray) -> FloatArray:
        """Sum over the items of draws times doubled rank times value (items, b), shape (b,)."""
        found: FloatArray = self.base * np.einsum("ib,ib->b", self.draws, values)
        if self.beyond is not None:
            found += np.einsum("ib,ib->b", self.beyond, values)
        return found


@dataclass(frozen=True)
class _Drawn:
    """What a block of b resamples draws, and its ranks of the labels.

    Attributes:
        counts: shape (C + 1, b), draws of each cluster; the last row is zero.
        cubes: shape (C, b), third powers of the draws of each cluster.
        total: shape (b,), draws in all.
        groups: the items by label.
        own: shape (b,), sum of squared draws times doubled rank.
        label_square: shape (b,), sum of the squared doubled ranks of the labels.
    """

    counts: DrawArray
    cubes: FloatArray
    total: FloatArray
    groups: list[_Group]
    own: FloatArray
    label_square: FloatArray

    @classmethod
    def of(cls, labels: _Labels, counts: FloatArray) -> _Drawn:
        """Draw and rank the labels, in the narrowest numbers that no sum can overflow."""
        total = counts @ labels.sizes
        padded = np.zeros((counts.shape[1] + 1, counts.shape[0]), _narrowest(2.0 * total))
        padded[:-1] = counts.T
        sums = labels.runs.sums(padded)
        bounds = np.array([0, *(last for _, last, _ in labels.groups)])
        held = labels.runs.draws_between(sums, bounds)
        # Doubled ranks differ by at most twice the draws of a group.
        weight = np.where([[level] for _, _, level in labels.groups], held, 2.0 * held**2)
        wide = padded.astype(np.promote_types(np.uint32, _narrowest(2.0 * weight * total)))
        groups = []
        for first, last, level in labels.groups:
            draws = wide[labels.clusters[first:last]]
            ranked = labels.order[first : first + 1 if level else last]
            ranks = labels.runs.doubled_ranks(sums, ranked)
            beyond = None if level else draws * (ranks - ranks[0])
            groups.append(_Group(slice(first, last), draws, ranks[0] - total, beyond))
        cubes = counts.T**3
        square = labels.runs.rank_square(sums, cubes, total)
        own = np.sum([group.rank_sum(group.draws) for group in groups], axis=0)
        return cls(padded, cubes, total, groups, own, square)


@dataclass(frozen=True)
class _Scores:
    """One metric's order of the items; rows of `RunningSums` for the items by label."""

    runs: RunningSums
    ends: IntArray
    starts: IntArray

    @classmethod
    def of(cls, scores: FloatArray, labels: _Labels, work: Clustered) -> _Scores:
        runs = RunningSums.of(scores, work.clusters, work.counts.shape[1])
        return cls(runs, runs.end_rows[labels.order], runs.start_rows[labels.order])

    def rho(self, drawn: _Drawn, memory: _Memory) -> FloatArray:
        """Spearman's rho in each resample of a block, shape (b,)."""
        sums = self.runs.sums(drawn.counts, memory.like(drawn.counts, self.runs.n_rows))
        square = self.runs.rank_square(sums, drawn.cubes, drawn.total)
        product = np.zeros(drawn.total.size)
        tied = self.runs.has_ties
        for group in drawn.groups:
            rows = np.take(sums, self.ends[group.items], axis=0, mode="clip")
            if tied:
                rows += np.take(sums, self.starts[group.items], axis=0, mode="clip")
            product += group.rank_sum(rows)
        # Twice an average rank is the sums up to the first and to the last item of its run; alone
        # in its run, an item is all that lies between.
        return ratio(product if tied else 2.0 * product - drawn.own, square, drawn.label_square)


class _Memory:
    """Memory of sums that is used again: new pages cost more than what is written to them."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def like(self, counts: DrawArray, n_rows: int) -> DrawArray:
        """An array (n_rows, b) of the type of `counts` (C, b), with anything in it."""
        needed = n_rows * counts.shape[1] * counts.itemsize
        if self._bytes.size < needed:
            self._bytes = np.empty(needed, np.uint8)
        return self._bytes[:needed].view(counts.dtype).reshape(n_rows, -1)


def _narrowest(values: FloatArray) -> np.dtype[np.number]:
    """The type that holds whole numbers up to the largest of these; floats where none does."""
    largest = values.max(initial=0.0)
    for kind in (np.uint16, np.uint32, np.uint64):
        if largest < 256.0 ** np.dtype(kind).itemsize:
            return np.dtype(kind)
    return np.dtype(np.float64)


def _groups(bounds: IntArray) -> list[tuple[int, int, bool]]:
    """Cut runs of equal labels, given their bounds, into groups: first, last, whether one label."""
    groups: list[tuple[int, int, bool]] = []
    open_from = 0
    for start, end in pairwise(bounds.tolist()):
        long = end - start >= _MIXED_ITEMS
        if open_from < start and (long or end - open_from > _MIXED_ITEMS):
            groups.append((open_from, start, False))
            open_from = start
        if long:
            cuts = [*range(start, end, _LEVEL_ITEMS), end]
            groups += [(first, last, True) for first, last in pairwise(cuts)]
            open_from = end
    if open_from < bounds[-1]:
        groups.append((open_from, int(bounds[-1]), False))
    return groups
