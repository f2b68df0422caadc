"""Pearson, Spearman and Kendall correlation of a sample, and within groups of items."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.resampling import resampled_mean
from benchmarks.statistics.samples import anchored, matched, pairs_within, two_pass_pearson


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's r of two finite samples (n,), in -1..1; NaN where a side is constant or n < 2."""
    x, y = matched(x, y)
    return float(two_pass_pearson(anchored(x), anchored(y), np.ones((1, x.size)))[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of two finite samples (n,): Pearson's r of average ranks; NaN as there."""
    x, y = matched(x, y)
    return pearson(stats.rankdata(x), stats.rankdata(y))


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of two finite samples (n,) (Kendall 1945, with ties); NaN as `pearson`."""
    x, y = matched(x, y)
    if x.size < 2 or _is_constant(x) or _is_constant(y):
        return math.nan
    return float(stats.kendalltau(x, y).statistic)


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


def resampled_grouped(
    measure: str, x: ArrayLike, y: ArrayLike, groups: Groups, counts: ArrayLike
) -> FloatArray:
    """Mean over the groups of a measure of `BY_GROUP` in each resample, shape (B,) or (B, M).

    Each row of the counts (B, G) says how often the groups are drawn; values within groups do not
    change. NaN where a resample draws no group with a value.
    """
    return resampled_mean(BY_GROUP[measure](x, y, groups), np.asarray(counts, np.float64))


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
