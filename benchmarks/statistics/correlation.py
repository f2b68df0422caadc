"""Pearson, Spearman and Kendall correlation of a sample, within groups, and in every resample."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.samples import (
    Clustered,
    anchored,
    blocks,
    matched,
    pairs_within,
    ratio,
    require_whole,
    sum_by_cluster,
    two_pass_pearson,
    unit_scaled,
)


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's r of two finite samples (n,), in -1..1; NaN where a side is constant or n < 2."""
    x, y = matched(x, y)
    return float(two_pass_pearson(anchored(x), anchored(y), np.ones((1, x.size)))[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of two finite samples (n,): Pearson's r of average ranks; NaN as there."""
    x, y = matched(x, y)
    return pearson(scipy.stats.rankdata(x), scipy.stats.rankdata(y))


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of two finite samples (n,) (Kendall 1945, with ties); NaN as `pearson`."""
    x, y = matched(x, y)
    if x.size < 2 or _is_constant(x) or _is_constant(y):
        return math.nan
    return float(scipy.stats.kendalltau(x, y).statistic)


def _is_constant(values: FloatArray) -> bool:
    return bool((values == values[0]).all())


@dataclass(frozen=True)
class Groups:
    """Items by group: the part that all metrics share."""

    order: IntArray  # shape (n,), items by group
    # shape (G + 1,), where each group starts and ends in `order`; a group may be empty
    bounds: IntArray

    @classmethod
    def of(cls, groups: ArrayLike, n_groups: int | None = None) -> Groups:
        """Sort items by the index (n,) of their group; G is the largest and 1 where it is not given."""
        index = np.asarray(groups, np.intp)
        count = int(index.max(initial=-1)) + 1 if n_groups is None else n_groups
        if index.ndim != 1 or (index.size and not 0 <= index.min() <= index.max() < count):
            raise ValueError(f"each item needs the index of its group, below {count}")
        sizes = np.bincount(index, minlength=count)
        bounds = np.append(0, np.cumsum(sizes)).astype(np.intp)
        return cls(np.argsort(index, kind="stable"), bounds)

    @property
    def sizes(self) -> IntArray:
        """Shape (G,), items of each group."""
        return np.diff(self.bounds)

    @cached_property
    def of_item(self) -> IntArray:
        """Shape (n,), group of each item of `order`."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums by group, shape (G, M), of values (n, M) that lie in `order`."""
        sums = np.zeros((self.sizes.size, values.shape[1]), values.dtype)
        present = np.flatnonzero(self.sizes)
        if present.size:
            sums[present] = np.add.reduceat(values, self.bounds[present], axis=0)
        return sums

    def constant(self, values: FloatArray) -> BoolArray:
        """Groups whose values (n, M), in `order`, are all equal, shape (G, M)."""
        differs = values != values[np.repeat(self.bounds[:-1], self.sizes)]
        return np.asarray(self.sums(differs.astype(np.int32)) == 0)


def pearson_by_group(x: ArrayLike, y: ArrayLike, groups: Groups) -> FloatArray:
    """Pearson's r within each group.

    All metrics and groups are computed together.

    `x` (n,) or (n, M), finite; M samples are correlated with the same y; `y` (n,), finite.
    Returns: shape (G,) or (G, M), in -1..1; NaN where a side is constant or a group has fewer than
    two items.
    """
    columns, labels = _in_order(x, y, groups)
    return _shaped(_pearson(columns, labels, groups), x)


def spearman_by_group(x: ArrayLike, y: ArrayLike, groups: Groups) -> FloatArray:
    """Spearman's rho within each group, as `pearson_by_group`: r of the average ranks there."""
    columns, labels = _in_order(x, y, groups)
    ranks = np.column_stack([_ranks(column, groups) for column in columns.T])
    return _shaped(_pearson(ranks, _ranks(labels[:, 0], groups)[:, None], groups), x)


def kendall_by_group(x: ArrayLike, y: ArrayLike, groups: Groups) -> FloatArray:
    """Kendall's tau-b within each group, as `pearson_by_group`, from all pairs of its items."""
    columns, labels = _in_order(x, y, groups)
    n_metrics = columns.shape[1]
    excess, x_pairs, y_pairs = np.zeros((3, groups.sizes.size, n_metrics))
    for low, high in pairs_within(groups.bounds):
        group = groups.of_item[low]
        starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        first = group[starts]
        y_sign = np.sign(labels[high, 0] - labels[low, 0])
        y_pairs[first] += np.add.reduceat(np.abs(y_sign), starts)[:, None]
        for metric, column in enumerate(columns.T):
            with np.errstate(over="ignore"):
                sign = np.sign(column[high] - column[low])
            x_pairs[first, metric] += np.add.reduceat(np.abs(sign), starts)
            excess[first, metric] += np.add.reduceat(sign * y_sign, starts)
    with np.errstate(invalid="ignore"):
        tau = excess / np.sqrt(x_pairs * y_pairs)
    return _shaped(np.clip(tau, -1.0, 1.0), x)


ByGroup = Callable[[ArrayLike, ArrayLike, Groups], FloatArray]
BY_GROUP: dict[str, ByGroup] = {
    "pearson": pearson_by_group,
    "srcc": spearman_by_group,
    "krcc": kendall_by_group,
}
"""Measure to its values within groups."""


def _in_order(x: ArrayLike, y: ArrayLike, groups: Groups) -> tuple[FloatArray, FloatArray]:
    """Samples (n, M) and (n, 1), by group."""
    columns, labels = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if labels.shape != groups.order.shape or columns.shape[:1] != labels.shape or columns.ndim > 2:
        shapes = f"x {columns.shape}, y {labels.shape} and {groups.order.size} grouped items"
        raise ValueError(f"{shapes} do not fit")
    table = columns[:, None] if columns.ndim == 1 else columns
    return np.asfortranarray(table[groups.order]), labels[groups.order][:, None]


def _pearson(x: FloatArray, y: FloatArray, groups: Groups) -> FloatArray:
    """Pearson's r of x (n, M) and y (n, 1), which lie by group, shape (G, M)."""
    x_dev, y_dev = _deviations(x, groups), _deviations(y, groups)
    r = np.clip(groups.sums(x_dev * y_dev), -1.0, 1.0)
    # A rounded mean leaves a constant side with deviations of 1e-17, so equality decides.
    undefined = groups.constant(x) | groups.constant(y) | (groups.sizes < 2)[:, None]
    return np.where(undefined, np.nan, r)


def _deviations(values: FloatArray, groups: Groups) -> FloatArray:
    """Deviations from the mean of the group, over the root of the sum of their squares there."""
    present = np.flatnonzero(groups.sizes)
    starts, of_item = (
        groups.bounds[present],
        np.repeat(np.arange(present.size), groups.sizes[present]),
    )
    if not present.size:
        return values
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # Halves cannot overflow; the difference of close doubles keeps what a mean would round.
        half = values / 2.0
        moved = half - half[starts][of_item]
        means = np.add.reduceat(moved, starts, axis=0) / groups.sizes[present][:, None]
        moved -= means[of_item]
        # Squares of very small or large numbers leave the range of doubles.
        moved /= np.maximum.reduceat(np.abs(moved), starts, axis=0)[of_item]
        norm = np.sqrt(np.add.reduceat(moved**2, starts, axis=0))
        scaled: FloatArray = moved / norm[of_item]
    return scaled


def _ranks(values: FloatArray, groups: Groups) -> FloatArray:
    """Average ranks (n,) within the group, less (n_g + 1) / 2 for n_g items: exact."""
    order = np.lexsort((values, groups.of_item))
    in_order = values[order]
    new = np.append(True, in_order[1:] != in_order[:-1])
    new[groups.bounds[:-1][groups.sizes > 0]] = True
    starts = np.flatnonzero(np.append(new, True))
    run = np.cumsum(new) - 1
    ranks = np.empty(values.size)
    ranks[order] = (starts[run] + starts[run + 1] - 1) / 2.0
    middle = (groups.bounds[:-1] + groups.bounds[1:] - 1) / 2.0
    return ranks - middle[groups.of_item]


def _shaped(values: FloatArray, x: ArrayLike) -> FloatArray:
    return values[:, 0] if np.ndim(x) == 1 else values


DrawArray = NDArray[np.number]
"""Whole numbers of draws, (items or clusters, resamples), in a type wide enough for their sums."""

_STEPS = 32


@dataclass(frozen=True)
class RunningSums:
    """A fixed ascending order of a sample and its runs of equal values.

    Position p of the order is kept in row (p % s) * K + p // s of a matrix of resamples: each of s
    steps then adds K whole rows to the K rows before, several times as fast as a sum down the
    columns. Position 0 holds no item, so position p holds the draws of the first p items.
    """

    # shape (s, K), cluster of the item at each place; C, an empty one, where none is
    clusters: IntArray
    end_rows: IntArray  # shape (n,), for each item the row of the last one of its run
    start_rows: IntArray  # shape (n,), for each item the row before the first one of its run
    tied: IntArray  # shape (R,), the first item of each run of two or more
    untied: FloatArray  # shape (C,), items of each cluster whose value no other item has

    @classmethod
    def of(cls, values: FloatArray, clusters: IntArray, n_clusters: int) -> RunningSums:
        """Sort a sample."""
        n = values.size
        steps = min(_STEPS, n + 1)
        width = -(-(n + 1) // steps)
        order = np.argsort(values, kind="stable")
        placed = np.full(steps * width, n_clusters, np.intp)
        placed[1 : n + 1] = clusters[order]
        in_order = values[order]
        changes = np.concatenate([[True], in_order[1:] != in_order[:-1], [True]])
        bounds = np.flatnonzero(changes)
        sizes = np.diff(bounds)
        start, end = np.empty((2, n), np.intp)
        start[order], end[order] = np.repeat(bounds[:-1], sizes), np.repeat(bounds[1:], sizes)
        row = _rows(np.arange(n + 1), steps, width)
        return cls(
            np.ascontiguousarray(placed.reshape(width, steps).T),
            row[end],
            row[start],
            order[bounds[:-1][sizes > 1]],
            np.bincount(clusters[end - start == 1], minlength=n_clusters).astype(np.float64),
        )

    @property
    def n_rows(self) -> int:
        """Rows of a matrix of sums, s * K."""
        return self.clusters.size

    def sums(self, counts: DrawArray, out: DrawArray | None = None) -> DrawArray:
        """Draws of the first p items for each p, as rows of shape (s * K, b)."""
        steps, width = self.clusters.shape
        if out is None:
            out = np.empty((self.n_rows, counts.shape[1]), counts.dtype)
        sums = out.reshape(steps, width, -1)
        for step in range(steps):
            np.take(counts, self.clusters[step], axis=0, out=sums[step], mode="clip")
            if step:
                sums[step] += sums[step - 1]
        before = sums[-1].copy()
        _run(before)
        sums[:, 1:] += before[:-1]
        return out

    def draws_between(self, sums: DrawArray, bounds: IntArray) -> FloatArray:
        """Draws of the items from each position to the next, shape (k, b), for k + 1 positions."""
        at_bounds = sums[_rows(bounds, *self.clusters.shape)]
        return np.asarray(np.diff(at_bounds.astype(np.float64), axis=0))

    def doubled_ranks(self, sums: DrawArray, items: IntArray) -> DrawArray:
        """Twice the average ranks of some items, less 1, shape (k, b)."""
        doubled: DrawArray = sums[self.end_rows[items]]
        np.add(doubled, sums[self.start_rows[items]], out=doubled)
        return doubled

    def rank_square(
        self, sums: DrawArray, counts_cubed: FloatArray, total: FloatArray
    ) -> FloatArray:
        """Sum over all draws of the squared doubled rank, less its mean, shape (b,).

        That is (T^3 - sum t^3) / 3, t the draws of each run; 0 where one run has them all.
        """
        cubes: FloatArray = self.untied @ counts_cubed
        draws = sums[self.end_rows[self.tied]] - sums[self.start_rows[self.tied]]
        wide = draws.astype(np.float64)
        cubes += np.einsum("rb,rb,rb->b", wide, wide, wide)
        difference = total**3 - cubes
        # Two runs make it 3 T^2 - 3 T at least; less is rounding, where cubes exceed 2^53.
        return np.where(difference > total**2, difference / 3.0, 0.0)


def _rows(positions: IntArray, steps: int, width: int) -> IntArray:
    """Rows of the sums up to some positions."""
    return (positions % steps) * width + positions // steps


def _run(values: DrawArray) -> None:
    """Sums down the columns of (k, b), in place."""
    steps = 16
    width = values.shape[0] // steps
    if width < 4:
        for row in range(1, values.shape[0]):
            np.add(values[row], values[row - 1], out=values[row])
        return
    whole = values[: width * steps].reshape(width, steps, -1)
    for step in range(1, steps):
        np.add(whole[:, step], whole[:, step - 1], out=whole[:, step])
    before = whole[:, -1].copy()
    _run(before)
    np.add(whole[1:], before[:-1, None], out=whole[1:])
    for row in range(width * steps, values.shape[0]):
        np.add(values[row], values[row - 1], out=values[row])


_CACHED_CELLS = 1 << 17  # cells of a matrix of weights by item (1 MiB): stays in the cache
_CANCELLATION = 1e-3  # below this share of the mean square, a variance is computed in two passes


def resampled_pearson(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Pearson's r in each resample, from weighted sums of products per cluster.

    `x` (n,) or (n, M), finite; M samples are correlated with the same y; `y` (n,), finite; `counts`
    (B, C), non-negative multiplicities of the clusters; `clusters` (n,), column of `counts` of each
    item; None: item i is cluster i.
    Returns: shape (B,) or (B, M); NaN where a side is constant in the resample.
    """
    work = Clustered.of(anchored(x), anchored(y), counts, clusters)
    n_metrics = work.x.shape[1]
    x_unit, y_unit = unit_scaled(work.x), unit_scaled(work.y[:, None])
    moments = np.hstack(
        [np.ones_like(y_unit), y_unit, y_unit**2, x_unit, x_unit**2, x_unit * y_unit]
    )
    sums = work.counts @ sum_by_cluster(moments, work.clusters, work.counts.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[:, 1:] / sums[:, :1]
        y_mean, y_square = means[:, :1], means[:, 1:2]
        x_mean, x_square, product = np.split(means[:, 2:], [n_metrics, 2 * n_metrics], axis=1)
        x_var, y_var = x_square - x_mean**2, y_square - y_mean**2
        r: FloatArray = (product - x_mean * y_mean) / np.sqrt(x_var * y_var)
    stable = (x_var > _CANCELLATION * x_square) & (y_var > _CANCELLATION * y_square)
    for metric in range(n_metrics):
        doubtful = np.flatnonzero(~stable[:, metric])
        for rows in blocks(doubtful, max(_CACHED_CELLS // max(work.y.size, 1), 8)):
            r[rows, metric] = two_pass_pearson(work.x[:, metric], work.y, work.item_counts(rows))
    return work.shaped(np.clip(r, -1.0, 1.0))


_CACHED_RANK_CELLS = 1 << 21  # draws of items that are held at a time (8 MiB)
_LEVEL_ITEMS = 512  # items of one label in a group
_MIXED_ITEMS = 64  # items of several labels in a group


def resampled_spearman(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Spearman's rho in each resample: average ranks of the repeated sample from one fixed sort.

    An item drawn w times is w equal values, so a run of ties that starts after c draws and holds t
    draws has the average rank c + (t + 1) / 2. With ranks doubled and less their mean, the sums
    behind rho are whole numbers: sum w rx ry over the items, and (T^3 - sum t^3) / 3 over the runs
    of each side for T draws (Kendall 1948). Labels are prepared once for all metrics, in groups of
    nearly equal rank, so that what is added up within a group stays small.

    `x` (n,) or (n, M), finite; M samples are correlated with the same y; `y` (n,), finite; `counts`
    (B, C), non-negative whole multiplicities of the clusters; `clusters` (n,), column of `counts`
    of each item; None: item i is cluster i.
    Returns: shape (B,) or (B, M); NaN where a side is constant in the resample.
    """
    work = Clustered.of(x, y, counts, clusters)
    require_whole(work.counts)
    rho = np.full(work.shape, np.nan)
    if not work.y.size:
        return work.shaped(rho)
    labels = _Labels.of(work)
    sides = [_Scores.of(column, labels, work) for column in work.x.T]
    memory = _Memory()
    for rows in blocks(np.arange(rho.shape[0]), max(_CACHED_RANK_CELLS // work.y.size, 32)):
        drawn = _Drawn.of(labels, work.counts[rows])
        for metric, side in enumerate(sides):
            rho[rows, metric] = side.rho(drawn, memory)
    return work.shaped(rho)


@dataclass(frozen=True)
class _Labels:
    """The side all metrics share: items in ascending order of label, and groups of them."""

    runs: RunningSums  # the order and its ties
    order: IntArray  # shape (n,), items by label
    clusters: IntArray  # shape (n,), cluster of each item by label
    sizes: FloatArray  # shape (C,), items of each cluster
    # first and last position of each group, and whether its labels are all equal
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
    """Some items of like label, in b resamples."""

    items: slice  # their positions by label
    draws: DrawArray  # shape (items, b)
    base: FloatArray  # shape (b,), doubled rank of the lowest label, less the mean
    # shape (items, b), draws times how much the doubled rank exceeds the base; None where all
    # labels are equal
    beyond: DrawArray | None

    def rank_sum(self, values: DrawArray) -> FloatArray:
        """Sum over the items of draws times doubled rank times value (items, b), shape (b,)."""
        found: FloatArray = self.base * np.einsum("ib,ib->b", self.draws, values)
        if self.beyond is not None:
            found += np.einsum("ib,ib->b", self.beyond, values)
        return found


@dataclass(frozen=True)
class _Drawn:
    """Draws of a block of b resamples, and its ranks of the labels."""

    counts: DrawArray  # shape (C + 1, b), draws of each cluster; the last row is zero
    cubes: FloatArray  # shape (C, b), third powers of the draws of each cluster
    total: FloatArray  # shape (b,), draws in all
    groups: list[_Group]  # the items by label
    own: FloatArray  # shape (b,), sum of squared draws times doubled rank
    label_square: FloatArray  # shape (b,), sum of the squared doubled ranks of the labels

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
    """Order of the items by one metric; rows of `RunningSums` for the items by label."""

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
        tied = bool(self.runs.tied.size)
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
