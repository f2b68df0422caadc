"""Samples whose items come in clusters that resamples repeat: the checked arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Clustered:
    """M samples, one that they are correlated with, and how often resamples draw each cluster.

    Attributes:
        x: shape (n, M).
        y: shape (n,).
        counts: shape (B, C), for the clusters that hold items only.
        clusters: shape (n,), column of `counts` of each item.
        one_column: whether x came as shape (n,).
    """

    x: FloatArray
    y: FloatArray
    counts: FloatArray
    clusters: IntArray
    one_column: bool

    @classmethod
    def of(
        cls, x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None
    ) -> Clustered:
        """Check the arguments of a resampled statistic.

        Raises:
            ValueError: shapes do not fit.
        """
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        counts = np.asarray(counts, np.float64)
        index = np.arange(y.size) if clusters is None else np.asarray(clusters, np.intp)
        if y.ndim != 1 or x.shape[:1] != y.shape or index.shape != y.shape or x.ndim > 2:
            raise ValueError(f"x {x.shape}, y {y.shape} and clusters {index.shape} do not fit")
        if counts.ndim != 2 or (index.size and index.max() >= counts.shape[1]):
            raise ValueError(f"counts {counts.shape} do not cover every cluster")
        used, index = np.unique(index, return_inverse=True)
        columns = x[:, None] if x.ndim == 1 else x
        return cls(columns, y, counts[:, used], index, one_column=x.ndim == 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Resamples and samples, (B, M)."""
        return self.counts.shape[0], self.x.shape[1]

    def item_counts(self, rows: IntArray) -> FloatArray:
        """Multiplicity of each item in some resamples, shape (len(rows), n)."""
        drawn: FloatArray = self.counts[rows][:, self.clusters]
        return drawn

    def shaped(self, values: FloatArray) -> FloatArray:
        """Values (B, M), or (B,) where x came as one sample."""
        return values[:, 0] if self.one_column else values


def require_whole(counts: FloatArray) -> None:
    """Refuse multiplicities that are no multiplicities.

    Raises:
        ValueError: a count is negative or not whole.
    """
    if counts.size and not (counts.min() >= 0.0 and (counts == np.rint(counts)).all()):
        raise ValueError("counts say how often a cluster is drawn: whole numbers of at least 0")


def blocks(rows: IntArray, size: int) -> Iterator[IntArray]:
    """Groups of at most `size` (at least one) resamples."""
    for start in range(0, rows.size, max(size, 1)):
        yield rows[start : start + max(size, 1)]
