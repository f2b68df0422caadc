"""Sums of draws along a fixed order of items, for many resamples at once.

Position p of the order is kept in row (p % s) * K + p // s of a matrix of resamples: each of s
steps then adds K whole rows to the K rows before, which is several times as fast as a sum down
the columns. Position 0 holds no item, so position p holds the draws of the first p items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray

DrawArray = NDArray[np.number]
"""Whole numbers of draws, (items or clusters, resamples), in a type wide enough for their sums."""

_STEPS = 32


@dataclass(frozen=True)
class RunningSums:
    """A fixed ascending order of a sample and its runs of equal values.

    Attributes:
        clusters: shape (s, K), cluster of the item at each place; C, an empty one, where none is.
        end_rows: shape (n,), for each item the row of the last one of its run.
        start_rows: shape (n,), for each item the row before the first one of its run.
        tied: shape (R,), the first item of each run of two or more.
        untied: shape (C,), items of each cluster whose value no other item has.
    """

    clusters: IntArray
    end_rows: IntArray
    start_rows: IntArray
    tied: IntArray
    untied: FloatArray

    @classmethod
    def of(cls, values: FloatArray, clusters: IntArray, n_clusters: int) -> RunningSums:
        """Sort a sample.

        Args:
            values: shape (n,), n >= 1, finite.
            clusters: shape (n,), cluster index of each item.
            n_clusters: number C of clusters.
        """
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
    def has_ties(self) -> bool:
        """Whether two items have one value."""
        return bool(self.tied.size)

    @property
    def n_rows(self) -> int:
        """Rows of a matrix of sums, s * K."""
        return self.clusters.size

    def sums(self, counts: DrawArray, out: DrawArray | None = None) -> DrawArray:
        """Draws of the first p items for each p, as rows of shape (s * K, b).

        Args:
            counts: shape (C + 1, b), draws of each cluster; the last row is zero.
            out: memory for the result, of its shape and type and contiguous; None: new memory.
        """
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
        """Twice the average ranks of some items, less 1, shape (k, b).

        Args:
            sums: from `sums`.
            items: shape (k,).
        """
        doubled: DrawArray = sums[self.end_rows[items]]
        np.add(doubled, sums[self.start_rows[items]], out=doubled)
        return doubled

    def rank_square(
        self, sums: DrawArray, counts_cubed: FloatArray, total: FloatArray
    ) -> FloatArray:
        """Sum over all draws of the squared doubled rank, less its mean, shape (b,).

        That is (T^3 - sum t^3) / 3, t the draws of each run; 0 where one run has them all.

        Args:
            sums: from `sums`.
            counts_cubed: shape (C, b), third powers of the draws of each cluster.
            total: shape (b,), draws in all.
        """
        cubes: FloatArray = self.untied @ counts_cubed
        draws = sums[self.end_rows[self.tied]] - sums[self.start_rows[self.tied]]
        wide = draws.astype(np.float64)
        cubes += np.einsum("rb,rb,rb->b", wide, wide, wide)
        difference = total**3 - cubes
        # Two runs make it 3 T^2 - 3 T at least; less is rounding, where cubes exceed 2^53.
        return np.where(difference > total**2, difference / 3.0, 0.0)


def _rows(positions: IntArray, steps: int, width: int) -> IntArray:
    """Where the sums up to some positions are kept."""
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
