"""Permutation tests of all pairs of metrics: samples by groups, swap signs, null distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.samples import sum_by_cluster


@dataclass(frozen=True)
class PermutationTests:
    """Two-sided tests of all pairs of M metrics."""

    # shape (M, M), value of metric i less that of metric j; NaN where undefined
    differences: FloatArray
    p_values: FloatArray  # shape (M, M), symmetric, in 0..1; 1 on the diagonal; NaN where undefined
    # swap patterns looked at; where all were enumerated, how many there are; 0 where the
    # distribution has a closed form
    n_draws: int
    exact: bool  # whether the p-values are exact instead of drawn
    # why the pair (i, j), i <= j, has no value
    reasons: Mapping[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True)
class PairTable:
    """Results of pairs of M metrics, filled in one by one."""

    differences: FloatArray
    p_values: FloatArray
    reasons: dict[tuple[int, int], str]

    @classmethod
    def of(cls, n_metrics: int) -> PairTable:
        """Empty table of all pairs."""
        differences, p_values = np.full((2, n_metrics, n_metrics), np.nan)
        return cls(differences, p_values, {})

    def fill(self, first: IntArray, second: IntArray, delta: FloatArray, p: FloatArray) -> None:
        """Set the results of some pairs, and of the same pairs the other way round."""
        self.differences[first, second] = delta
        self.differences[second, first] = 0.0 - delta  # no -0.0 on the diagonal
        self.p_values[first, second] = self.p_values[second, first] = p

    def tests(self, n_draws: int, exact: bool) -> PermutationTests:
        """The finished table of `n_draws` swap patterns; `exact` where these are all there are."""
        return PermutationTests(self.differences, self.p_values, n_draws, exact, self.reasons)


@dataclass(frozen=True)
class Sample:
    """Items that lie by group, with the scores of some metrics."""

    scores: FloatArray  # shape (n, M), finite
    gold: FloatArray  # shape (n,), finite, not constant in any group
    bounds: IntArray  # shape (G + 1,), where the groups begin and end; each has two items or more
    clusters: IntArray  # shape (n,), row of the signs of each item
    n_clusters: int  # number C of rows of the signs

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
        """True where item i has row i of the signs to itself."""
        return self.n_clusters == self.n_items and bool(
            (self.clusters == np.arange(self.n_items)).all()
        )

    @cached_property
    def groups_are_whole(self) -> bool:
        """True where no group is cut by the clusters: then each group swaps as one."""
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
    """Position of each label among the distinct ones, in their order."""
    found = np.asarray(labels)
    if found.shape != (n_items,):
        raise ValueError(f"labels {found.shape} are not one for each of {n_items} items")
    return np.asarray(np.unique(found, return_inverse=True)[1], np.intp)


def bounds_of(groups: IntArray) -> IntArray:
    """Bounds of runs of equal ids."""
    changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    return np.concatenate([[0], changes, [groups.size]]) if groups.size else np.zeros(1, np.intp)


def _varied(gold: FloatArray, bounds: IntArray) -> tuple[BoolArray, IntArray]:
    """Mask of the items in groups of varying gold, and the bounds of these groups."""
    if bounds.size < 2:
        return np.zeros(0, np.bool_), bounds
    starts, sizes = bounds[:-1], np.diff(bounds)
    varied = np.maximum.reduceat(gold, starts) > np.minimum.reduceat(gold, starts)
    return np.repeat(varied, sizes), np.concatenate([[0], np.cumsum(sizes[varied])])


@dataclass(frozen=True)
class Ranks:
    """Ranks of one column of a sample within its groups, which keep their places."""

    order: IntArray  # shape (n,), item at each place
    place: IntArray  # shape (n,), place of each item; tied ones in any order
    low: IntArray  # shape (n,), first place of each item's run of ties; `place` itself without ties
    high: IntArray  # shape (n,), the place after the run

    @classmethod
    def of(cls, values: FloatArray, sample: Sample) -> Ranks:
        """Sort a column (n,) of the sample."""
        one_group = sample.n_groups == 1
        order = np.argsort(values) if one_group else np.lexsort((values, sample.group))
        place = np.empty(values.size, np.intp)
        place[order] = np.arange(values.size)
        ascending = values[order]
        new = np.empty(values.size, np.bool_)
        new[:1] = True
        np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
        new[sample.starts] = True
        if new.all():
            return cls(order, place, place, place + 1)
        first = np.flatnonzero(new)
        run = (np.cumsum(new) - 1)[place]
        return cls(order, place, first[run], np.append(first[1:], values.size)[run])

    @cached_property
    def tie_free(self) -> bool:
        """True where no two items of a group are equal."""
        return self.low is self.place

    @cached_property
    def doubled(self) -> IntArray:
        """Shape (n,), twice the average place of each item's run, first and last included.

        Twice the average rank, counted from 0 over all groups: an integer in 0..2n - 2.
        """
        return self.low + self.high - 1

    def average(self, sample: Sample) -> FloatArray:
        """Average ranks within the groups, from 1, shape (n,); sums of them are exact."""
        return self.doubled / 2.0 - sample.starts[sample.group] + 1.0

    def classes(self, sample: Sample) -> IntArray:
        """Position of each item's value among the distinct ones of its group, shape (n,)."""
        first = np.zeros(self.order.size + 1, np.intp)
        first[self.low + 1] = 1
        distinct = np.cumsum(first)  # runs that begin before a place
        within: IntArray = distinct[self.low] - distinct[sample.starts][sample.group]
        return within


def centred_ranks(values: FloatArray, sample: Sample) -> FloatArray:
    """Average ranks less their mean in the group, multiples of a half: exact."""
    ranks = Ranks.of(values, sample).average(sample)
    centred: FloatArray = ranks - ((sample.sizes + 1) / 2.0)[sample.group]
    return centred


ENUMERATED = 12
"""Up to so many clusters every pattern is looked at: 2,048 of them by symmetry."""

BLOCK = 64
"""Draws at a time: a block of signs stays in the cache, a whole matrix of them does not."""

_TOLERANCE = 1e-9  # relative: as large but for rounding is as large
_ROUNDING = 1e-12  # absolute, of a difference of correlations

_CHUNK = 2048  # clusters whose signs are widened at a time (1 MiB of float64)
_FEW = 4  # rows that are multiplied faster one by one than as a matrix

Signs = NDArray[np.int8]
Number = TypeVar("Number", np.float32, np.float64)


@dataclass(frozen=True)
class SwapSigns:
    """Signs +1 (stay) and -1 (swap) of C clusters in K patterns."""

    n_clusters: int  # number C, at least 1
    n_draws: int  # patterns to draw where C is too large to enumerate
    seed: int  # seed of the generator

    def __post_init__(self) -> None:
        if self.n_draws < 1:
            raise ValueError(f"at least 1 draw is needed, not {self.n_draws}")

    @property
    def exact(self) -> bool:
        """True where every pattern is looked at."""
        return self.n_clusters <= ENUMERATED

    @property
    def n_patterns(self) -> int:
        """Number K of patterns; of two opposite ones, enumeration takes one."""
        return 1 << max(self.n_clusters - 1, 0) if self.exact else self.n_draws

    def blocks(self) -> Iterator[Signs]:
        """Blocks of all patterns, the same ones each time."""
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.n_patterns, BLOCK):
            width = min(BLOCK, self.n_patterns - start)
            if self.exact:
                patterns = np.arange(start, start + width, dtype=np.int64)
                bits = patterns[None, :] >> np.arange(self.n_clusters)[:, None] & 1
                signs = bits.astype(np.int8)
            else:
                words = rng.integers(0, 1 << 64, self.n_clusters, np.uint64, endpoint=False)
                swaps = np.unpackbits(words.view(np.uint8)).reshape(-1, BLOCK)
                signs = swaps[:, :width].view(np.int8)
            signs *= -2
            signs += 1
            yield signs

    def p_values(self, hits: IntArray) -> FloatArray:
        """Shares of patterns at least as extreme as the sample.

        The sample is one of the enumerated patterns; to drawn ones it is added (Phipson and
        Smyth 2010, equation 2), so that no p-value is 0.
        """
        if self.exact:
            return np.asarray(hits / self.n_patterns, np.float64)
        return np.asarray((1 + hits) / (1 + self.n_patterns), np.float64)


def signed_sums(values: NDArray[Number], signs: Signs) -> NDArray[Number]:
    """Products with the signs, in the precision of the values."""
    sums = np.zeros((len(values), signs.shape[1]), values.dtype)
    # Widened signs of some clusters at a time stay in the cache.
    room = np.empty((min(_CHUNK, len(signs)), signs.shape[1]), values.dtype)
    for start in range(0, len(signs), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        wide = room[: len(signs) - start]
        np.copyto(wide, signs[chunk])
        if len(values) > _FEW:
            sums += values[:, chunk] @ wide
        else:
            for row, value in zip(sums, values, strict=True):
                np.add(row, value[chunk] @ wide, out=row)
    return sums


def threshold(observed: FloatArray) -> FloatArray:
    """From which absolute value on a difference is as extreme as the observed one.

    Equal differences come out of sums in another order with other roundings, so a little less
    counts as equal.
    """
    bound: FloatArray = np.abs(observed) * (1.0 - _TOLERANCE) - _ROUNDING
    return bound


_SINGLE = 2e-5
"""Far above the error of a single-precision product, in units of the norm of its row."""


class Null(ABC):
    """Swapped differences of P pairs of metrics.

    PERM-BOTH flips x_c = +1 or -1 for each cluster and compares the two hybrids of x, which are
    those of -x the other way round. Sums over pairs of items expand to c0 + c1 x_i + c2 x_j + c3
    x_i x_j; in the difference of the hybrids the even terms cancel, so it is sum_c L_c x_c wherever
    the denominators do not depend on x: one matrix product for all pairs and draws.
    """

    observed: FloatArray  # shape (P,), the differences of the sample

    @abstractmethod
    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""

    def hits(self, signs: Signs) -> IntArray:
        """Number of differences as extreme as the observed one, shape (P,)."""
        extreme = np.abs(self.deltas(signs)) >= threshold(self.observed)[:, None]
        return np.asarray(extreme.sum(axis=1), np.intp)


class LinearNull(Null):
    """Differences sum_c L_c x_c of P pairs.

    Single precision decides the draws that are clearly above or below; the few others are
    computed again in double precision, so that the counts are those of double precision.
    """

    def __init__(
        self, pairs: Iterable[tuple[int, int]], coefficients: Callable[[int, int], FloatArray]
    ) -> None:
        """Keep the coefficients of all pairs, normalised."""
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
        """Number of differences as extreme as the observed one, shape (P,)."""
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


class WholeGroups(Null):
    """Means over groups none of which is cut by a swap: a group's two values change places."""

    def __init__(
        self, values: FloatArray, sample: Sample, first: IntArray, second: IntArray
    ) -> None:
        """Sum the values to clusters."""
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
