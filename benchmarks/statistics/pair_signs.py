"""Concordant less discordant pairs by the clusters of both items, without a look at all pairs.

Items are cut into ranges of scores and ranges of labels. For pairs that differ in both, the signs
are those of the ranges, so that counts of items by range and cluster suffice; only pairs that
share a range are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.pair_lists import pairs_within

_RANGE_ITEMS = 96  # items of a range of several values; so few labels that each is a range
_TABLE_CELLS = 1 << 23  # counts by range and cluster (32 MiB)


def signs_by_cluster(
    x: FloatArray, y: FloatArray, clusters: IntArray, n_clusters: int
) -> NDArray[np.int32]:
    """Products of the signs of all pairs, summed by the clusters of both items.

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.
        clusters: shape (n,), cluster index of each item.
        n_clusters: number C of clusters.

    Returns:
        Shape (C, C), symmetric: concordant less discordant pairs of an item in the cluster of the
        row and one in that of the column.
    """
    if not x.size:
        return np.zeros((n_clusters, n_clusters), np.int32)
    labels = _Ranges.of(y, _RANGE_ITEMS)
    # Labels in many ranges leave room in the tables for few ranges of scores.
    cells = (int(labels.number.max()) + 1) * n_clusters
    scores = _Ranges.of(x, max(_RANGE_ITEMS, -(-x.size * cells // _TABLE_CELLS)))
    half = _between_ranges(scores.number, labels.number, clusters, n_clusters)
    seen = np.zeros(n_clusters * n_clusters)
    for side, looked_at in ((scores, None), (labels, scores)):
        for i, j in side.pairs_within():
            sign = np.sign(scores.rank[i] - scores.rank[j])
            sign *= np.sign(labels.rank[i] - labels.rank[j])
            if looked_at is not None:
                sign[looked_at.number[i] == looked_at.number[j]] = 0
            seen += np.bincount(clusters[i] * n_clusters + clusters[j], sign, minlength=seen.size)
    half += seen.reshape(n_clusters, n_clusters).astype(np.int32)
    return half + half.T


@dataclass(frozen=True)
class _Ranges:
    """A sample in ranges of values.

    Attributes:
        rank: shape (n,), which of the distinct values, ascending.
        number: shape (n,), which of the ranges, ascending.
        mixed: which ranges hold several values.
    """

    rank: IntArray
    number: IntArray
    mixed: BoolArray

    @classmethod
    def of(cls, values: FloatArray, size: int) -> _Ranges:
        """Ranges of up to 2 `size` items, or of one value where there are few or it is common."""
        _, rank, runs = np.unique(values, return_inverse=True, return_counts=True)
        number = np.arange(runs.size)
        if runs.size > _RANGE_ITEMS:
            starts, large = np.cumsum(runs) - runs, runs >= size
            new = (np.diff(starts // size) > 0) | large[1:] | large[:-1]
            number = np.cumsum(np.append(False, new))
        return cls(rank, number[rank], np.bincount(number) > 1)

    def pairs_within(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Pairs of items that share a range of several values."""
        items = np.flatnonzero(self.mixed[self.number])
        order = items[np.argsort(self.number[items], kind="stable")]
        sizes = np.bincount(self.number[order])
        for low, high in pairs_within(np.append(0, np.cumsum(sizes))):
            yield order[low], order[high]


def _between_ranges(
    scores: IntArray, labels: IntArray, clusters: IntArray, n_clusters: int
) -> NDArray[np.int32]:
    """Signs of pairs that differ in both ranges, by the clusters of the higher and lower score."""
    n_scores, n_labels = int(scores.max()) + 1, int(labels.max()) + 1
    below = np.zeros((n_scores, n_labels, n_clusters), np.int32)
    inner = scores < n_scores - 1
    np.add.at(below, (scores[inner] + 1, labels[inner], clusters[inner]), 1)
    for k in range(1, n_scores):
        below[k] += below[k - 1]
    # Of the items with lower scores: those of lower labels less those of higher ones.
    reached = np.zeros((n_scores, n_clusters), np.int32)
    for label in range(n_labels):
        before = reached.copy()
        reached += below[:, label]
        np.add(before, reached, out=below[:, label])
    below -= reached[:, None]
    items = sparse.csr_array(
        (np.ones(scores.size, np.int32), (clusters, scores * n_labels + labels)),
        shape=(n_clusters, n_scores * n_labels),
    )
    signs: NDArray[np.int32] = items @ below.reshape(n_scores * n_labels, n_clusters)
    return signs
