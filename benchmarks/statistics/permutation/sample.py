"""A sample by groups, within which correlations are taken; the whole sample may be one group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.correlation import sum_by_cluster


@dataclass(frozen=True)
class Sample:
    """Items that lie by group, with the scores of some metrics.

    Attributes:
        scores: shape (n, M), finite.
        gold: shape (n,), finite, not constant in any group.
        bounds: shape (G + 1,), where the groups begin and end; each has two items or more.
        clusters: shape (n,), row of the signs of each item.
        n_clusters: number C of rows of the signs.
    """

    scores: FloatArray
    gold: FloatArray
    bounds: IntArray
    clusters: IntArray
    n_clusters: int

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        gold: FloatArray,
        groups: IntArray | None,
        clusters: IntArray,
        n_clusters: int,
    ) -> Sample:
        """Lay the items by group; groups of constant gold say nothing and are left out."""
        if groups is not None:
            order = np.argsort(groups, kind="stable")
            scores, gold, clusters = scores[order], gold[order], clusters[order]
            kept, bounds = _varied(gold, bounds_of(groups[order]))
            if not kept.all():
                scores, gold, clusters = scores[kept], gold[kept], clusters[kept]
        elif gold.size and (gold != gold[0]).any():
            bounds = np.array([0, gold.size])
        else:
            scores, gold, clusters, bounds = scores[:0], gold[:0], clusters[:0], np.zeros(1, int)
        return cls(scores, gold, bounds.astype(np.intp), clusters, n_clusters)

    @property
    def n_items(self) -> int:
        """Number n of items."""
        return self.gold.size

    @property
    def n_groups(self) -> int:
        """Number G of groups."""
        return self.bounds.size - 1

    @property
    def starts(self) -> IntArray:
        """Shape (G,), the first item of each group."""
        return self.bounds[:-1]

    @cached_property
    def sizes(self) -> IntArray:
        """Shape (G,), items of each group."""
        return np.diff(self.bounds)

    @cached_property
    def group(self) -> IntArray:
        """Shape (n,), group of each item."""
        return np.repeat(np.arange(self.n_groups), self.sizes)

    @cached_property
    def one_item_each(self) -> bool:
        """Whether item i has row i of the signs to itself."""
        return self.n_clusters == self.n_items and bool(
            (self.clusters == np.arange(self.n_items)).all()
        )

    @cached_property
    def groups_are_whole(self) -> bool:
        """Whether no group is cut by the clusters: then each group swaps as one."""
        return bool((self.clusters == self.clusters[self.starts][self.group]).all())

    def by_group(self, values: FloatArray) -> FloatArray:
        """Sums over the groups along the first axis, shape (n, ...) to (G, ...)."""
        total: FloatArray = np.add.reduceat(values, self.starts, axis=0)
        return total

    def centred(self, values: FloatArray) -> FloatArray:
        """Values (n, ...) less their mean in the group."""
        sizes = self.sizes.reshape(-1, *[1] * (values.ndim - 1))
        centred: FloatArray = values - (self.by_group(values) / sizes)[self.group]
        return centred

    def by_cluster(self, values: FloatArray) -> FloatArray:
        """Sums over the clusters, shape (n,) to (C,)."""
        if self.one_item_each:
            return values
        return np.asarray(np.bincount(self.clusters, values, self.n_clusters), np.float64)

    def clustered(self, values: FloatArray) -> FloatArray:
        """Sums of columns over the clusters, shape (n, k) to (C, k)."""
        return (
            values if self.one_item_each else sum_by_cluster(values, self.clusters, self.n_clusters)
        )


def positions(labels: ArrayLike, n_items: int) -> IntArray:
    """Position of each label among the distinct ones, in their order.

    Raises:
        ValueError: there is not one label per item.
    """
    found = np.asarray(labels)
    if found.shape != (n_items,):
        raise ValueError(f"labels {found.shape} are not one for each of {n_items} items")
    return np.asarray(np.unique(found, return_inverse=True)[1], np.intp)


def bounds_of(groups: IntArray) -> IntArray:
    """Where runs of equal ids begin and end."""
    changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    return np.concatenate([[0], changes, [groups.size]]) if groups.size else np.zeros(1, np.intp)


def _varied(gold: FloatArray, bounds: IntArray) -> tuple[BoolArray, IntArray]:
    """Mask of the items in groups of varying gold, and the bounds of these groups."""
    if bounds.size < 2:
        return np.zeros(0, np.bool_), bounds
    starts, sizes = bounds[:-1], np.diff(bounds)
    varied = np.maximum.reduceat(gold, starts) > np.minimum.reduceat(gold, starts)
    return np.repeat(varied, sizes), np.concatenate([[0], np.cumsum(sizes[varied])])
