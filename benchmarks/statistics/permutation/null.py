"""Null distributions of differences under swaps: linear in the signs, or computed draw by draw.

PERM-BOTH flips x_c = +1 or -1 for each cluster and compares the two hybrids of x, which are those
of -x the other way round. Every sum over pairs of items expands to c0 + c1 x_i + c2 x_j +
c3 x_i x_j; in the difference of the hybrids the even terms cancel, so that it is sum_c L_c x_c
wherever the denominators do not depend on x. All pairs and draws are then one matrix product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.permutation.sample import Sample
from benchmarks.statistics.permutation.signs import Signs, signed_sums, threshold

_SINGLE = 2e-5
"""Far above the error of a single-precision product, in units of the norm of its row."""


class Null(Protocol):
    """The swapped differences of P pairs of metrics."""

    @property
    def observed(self) -> FloatArray:
        """Shape (P,), the differences of the sample."""

    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""

    def hits(self, signs: Signs) -> IntArray:
        """How many of the differences are as extreme as the observed one, shape (P,)."""


class DirectNull(ABC):
    """Base of those that look at every difference."""

    observed: FloatArray

    @abstractmethod
    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""

    def hits(self, signs: Signs) -> IntArray:
        """Count of differences beyond the threshold, shape (P,)."""
        extreme = np.abs(self.deltas(signs)) >= threshold(self.observed)[:, None]
        return np.asarray(extreme.sum(axis=1), np.intp)


class LinearNull:
    """Differences sum_c L_c x_c of P pairs.

    Single precision decides the draws that are clearly above or below; the few others are
    computed again in double precision, so that the counts are those of double precision.
    """

    def __init__(
        self, pairs: Iterable[tuple[int, int]], coefficients: Callable[[int, int], FloatArray]
    ) -> None:
        """Keep the coefficients of all pairs, normalised.

        Args:
            pairs: P pairs of metrics.
            coefficients: L of a pair, shape (C,), in units of the statistic.
        """
        self._pairs = list(pairs)
        self._coefficients = coefficients
        self.observed = np.zeros(len(self._pairs))
        self._norms = np.zeros(len(self._pairs))
        rows: NDArray[np.float32] | None = None
        for row, pair in enumerate(self._pairs):
            found = coefficients(*pair)
            if rows is None:
                rows = np.empty((len(self._pairs), found.size), np.float32)
            self.observed[row] = found.sum()
            self._norms[row] = norm = np.sqrt(found @ found)
            np.divide(found, norm if norm > 0 else 1.0, out=rows[row], casting="same_kind")
        self._rows = np.zeros((0, 0), np.float32) if rows is None else rows

    def deltas(self, signs: Signs) -> FloatArray:
        """Differences in double precision, shape (P, k)."""
        wide = signs.astype(np.float64)
        return np.array([self._coefficients(*pair) @ wide for pair in self._pairs])

    def hits(self, signs: Signs) -> IntArray:
        """How many of the differences are as extreme as the observed one, shape (P,)."""
        found = signed_sums(self._rows, signs)
        np.abs(found, out=found)
        bound = threshold(self.observed)
        # A pair without any difference has all its differences at 0, as extreme as the sample's.
        relative = np.divide(
            bound, self._norms, out=np.full_like(bound, -1.0), where=self._norms > 0
        )
        certain = (found >= (relative + _SINGLE)[:, None].astype(np.float32)).sum(axis=1)
        possible = found >= (relative - _SINGLE)[:, None].astype(np.float32)
        hits = possible.sum(axis=1)
        for row in np.flatnonzero(hits > certain):
            columns = np.flatnonzero(possible[row])
            exact = np.abs(self._coefficients(*self._pairs[row]) @ signs[:, columns].astype(float))
            hits[row] = (exact >= bound[row]).sum()
        return np.asarray(hits, np.intp)


class WholeGroups(DirectNull):
    """Means over groups none of which is cut by a swap: a group's two values change places."""

    def __init__(
        self, values: FloatArray, sample: Sample, first: IntArray, second: IntArray
    ) -> None:
        """Sum the values to clusters.

        Args:
            values: shape (M, G), the statistic of each metric in each group.
            sample: the groups and the clusters they lie in.
            first: shape (P,), metrics.
            second: shape (P,), the metrics they are compared with.
        """
        self._first, self._second = first, second
        of_group = sample.clusters[sample.starts]
        sums = [np.bincount(of_group, value, sample.n_clusters) for value in values]
        self._values = np.array(sums) / sample.n_groups
        self.observed = self.deltas(np.ones((sample.n_clusters, 1), np.int8))[:, 0]

    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""
        sums = signed_sums(self._values, signs)
        differences: FloatArray = sums[self._first] - sums[self._second]
        return differences
