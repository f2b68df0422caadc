"""Concordant less discordant pairs of resamples by looking at all pairs, for very many clusters.

Where a matrix of clusters by clusters does not fit, some rows of it are made at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray

_SIGN_CELLS = 1 << 23  # cells of a block of pair signs (8 MiB of int8)


def excess_by_blocks(
    x: FloatArray, y: FloatArray, clusters: IntArray, counts: FloatArray
) -> FloatArray:
    """Concordant less discordant pairs of draws in each resample, shape (B,).

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.
        clusters: shape (n,), cluster index of each item; every cluster holds an item.
        counts: shape (B, C), non-negative whole multiplicities of the clusters.
    """
    order = np.argsort(clusters, kind="stable")
    bounds = np.searchsorted(clusters[order], np.arange(counts.shape[1] + 1))
    x_rank, y_rank = (_dense_ranks(values[order]) for values in (x, y))
    excess = np.zeros(counts.shape[0])
    for first, last in _cluster_blocks(bounds, max(_SIGN_CELLS // max(x.size, 1), 1)):
        items = slice(bounds[first], bounds[last])
        signs = _signs(x_rank[items], x_rank) * _signs(y_rank[items], y_rank)
        by_column = np.add.reduceat(signs, bounds[:-1], axis=1, dtype=np.int32)
        by_block = np.add.reduceat(by_column, bounds[first:last] - bounds[first], axis=0)
        partners = counts @ by_block.T.astype(np.float64)
        excess += np.einsum("bc,bc->b", counts[:, first:last], partners) / 2.0
    return excess


def _dense_ranks(values: FloatArray) -> NDArray[np.int32]:
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def _cluster_blocks(bounds: IntArray, max_items: int) -> Iterator[tuple[int, int]]:
    """Ranges of whole clusters of at most `max_items` items (one cluster at least)."""
    first, n_clusters = 0, bounds.size - 1
    while first < n_clusters:
        last = int(np.searchsorted(bounds, bounds[first] + max_items, side="right")) - 1
        last = min(max(last, first + 1), n_clusters)
        yield first, last
        first = last


def _signs(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int8]:
    above, below = a[:, None] > b[None, :], a[:, None] < b[None, :]
    return above.view(np.int8) - below.view(np.int8)
