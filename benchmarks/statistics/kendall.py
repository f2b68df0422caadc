"""Kendall's tau-b in every resample of clusters, by quadratic forms or by looking at all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.samples import (
    Clustered,
    blocks,
    labelled,
    pairs_within,
    ratio,
    require_whole,
    spans,
)

_RANGE_ITEMS = 96  # items of a range of several values; so few labels that each is a range
_TABLE_CELLS = 1 << 23  # counts by range and cluster (32 MiB)


def signs_by_cluster(
    x: FloatArray, y: FloatArray, clusters: IntArray, n_clusters: int
) -> NDArray[np.int32]:
    """Products of the signs of all pairs, summed by the clusters of both items.

    Items are cut into ranges of scores and of labels. Pairs that differ in both have the sign of
    their ranges, so counts by range and cluster suffice; only pairs that share a range are
    compared.
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
    """A sample in ranges of values."""

    rank: IntArray  # shape (n,), which of the distinct values, ascending
    number: IntArray  # shape (n,), which of the ranges, ascending
    mixed: BoolArray  # which ranges hold several values

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
    items = scipy.sparse.csr_array(
        (np.ones(scores.size, np.int32), (clusters, scores * n_labels + labels)),
        shape=(n_clusters, n_scores * n_labels),
    )
    signs: NDArray[np.int32] = items @ below.reshape(n_scores * n_labels, n_clusters)
    return signs


_SIGN_CELLS = 1 << 23  # cells of a block of pair signs (8 MiB of int8)


def excess_by_blocks(
    x: FloatArray, y: FloatArray, clusters: IntArray, counts: FloatArray
) -> FloatArray:
    """Concordant less discordant pairs of draws in each resample, shape (B,).

    For clusters so many that a matrix of them does not fit: some of its rows at a time.
    """
    order = np.argsort(clusters, kind="stable")
    bounds = np.searchsorted(clusters[order], np.arange(counts.shape[1] + 1))
    x_rank, y_rank = (_dense_ranks(values[order]) for values in (x, y))
    excess = np.zeros(counts.shape[0])
    for part in spans(bounds[1:], max(_SIGN_CELLS // max(x.size, 1), 1)):
        items = slice(bounds[part.start], bounds[part.stop])
        signs = _signs(x_rank[items], x_rank) * _signs(y_rank[items], y_rank)
        by_column = np.add.reduceat(signs, bounds[:-1], axis=1, dtype=np.int32)
        by_block = np.add.reduceat(by_column, bounds[part] - bounds[part.start], axis=0)
        partners = counts @ by_block.T.astype(np.float64)
        excess += np.einsum("bc,bc->b", counts[:, part], partners) / 2.0
    return excess


def _dense_ranks(values: FloatArray) -> NDArray[np.int32]:
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def _signs(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int8]:
    above, below = a[:, None] > b[None, :], a[:, None] < b[None, :]
    return above.view(np.int8) - below.view(np.int8)


_MOST_CLUSTERS = 4096  # with more, the matrix (64 MiB and more) is not held
_CACHED_CELLS = 1 << 20  # draws by cluster that are held at a time (8 MiB)


def resampled_kendall(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Kendall's tau-b in each resample, as a quadratic form of the multiplicities.

    Arguments, shape and errors as in `resampled_pearson`; counts are whole numbers.
    """
    work = Clustered.of(x, y, counts, clusters)
    require_whole(work.counts)
    tau = np.full(work.shape, np.nan)
    n_clusters = work.counts.shape[1]
    labels = Ties.of(work.y, work.clusters, n_clusters)
    label_pairs = labels.untied_pairs(work.counts)
    for metric, column in enumerate(work.x.T):
        if n_clusters <= _MOST_CLUSTERS:
            forms = KendallForms.of(column, work.y, work.clusters, n_clusters, labels)
            tau[:, metric] = forms.tau_b(work.counts, label_pairs)
            continue
        excess = excess_by_blocks(column, work.y, work.clusters, work.counts)
        scores = Ties.of(column, work.clusters, n_clusters).untied_pairs(work.counts)
        tau[:, metric] = ratio(excess, scores, label_pairs)
    return work.shaped(tau)


@dataclass(frozen=True)
class Ties:
    """Equal values of one sample, by cluster."""

    sizes: FloatArray  # shape (C,), items of each cluster
    alone: FloatArray  # shape (C,), items whose value no other item has
    shared: scipy.sparse.csr_array  # shape (C, V), items with each value that several have

    @classmethod
    def of(cls, values: FloatArray, clusters: IntArray, n_clusters: int) -> Ties:
        """Find the ties of values (n,) in clusters (n,), each index below C."""
        _, value, times = np.unique(values, return_inverse=True, return_counts=True)
        tied = times[value] > 1
        kinds = np.cumsum(times > 1) - 1
        shape = (n_clusters, int((times > 1).sum()))
        shared = scipy.sparse.csr_array(
            (np.ones(int(tied.sum())), (clusters[tied], kinds[value[tied]])), shape=shape
        )
        sizes, alone = (
            np.bincount(index, minlength=n_clusters).astype(np.float64)
            for index in (clusters, clusters[~tied])
        )
        return cls(sizes, alone, shared)

    def among(self, clusters: IntArray) -> Ties:
        """The ties among the items of some clusters, in the order given."""
        return Ties(self.sizes[clusters], self.alone[clusters], self.shared[clusters])

    def untied_pairs(self, counts: FloatArray) -> FloatArray:
        """Pairs of draws that differ in value, shape (B,), for counts (B, C)."""
        total = counts @ self.sizes
        tied = (counts**2 - counts) @ self.alone
        for rows in blocks(np.arange(total.size), _CACHED_CELLS // max(self.shared.shape[1], 1)):
            drawn = counts[rows] @ self.shared
            tied[rows] += np.einsum("bv,bv->b", drawn, drawn) - drawn.sum(axis=1)
        untied: FloatArray = (total * (total - 1.0) - tied) / 2.0
        return untied


@dataclass(frozen=True)
class KendallForms:
    """Quadratic forms of Kendall's tau-b for any selection and repetition of whole clusters.

    Concordant less discordant pairs of draws are w' E w / 2 for multiplicities w, where E holds the
    products of pair signs summed by the clusters of both items.

    Memory is 4 bytes for each pair of clusters.
    """

    # shape (C, C), symmetric: concordant less discordant ordered pairs of items with the first in
    # the cluster of the row
    excess: NDArray[np.int32]
    scores: Ties  # ties of the scores
    labels: Ties  # ties of the labels

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        clusters: ArrayLike,
        n_clusters: int,
        label_ties: Ties | None = None,
    ) -> KendallForms:
        """Compare all items with all items.

        `scores` (n,), finite; `labels` (n,), finite; `clusters` (n,), cluster index of each item;
        `label_ties`: of these labels, where other metrics need them too.
        """
        x, y, index = labelled(scores, labels, clusters)
        ties = Ties.of(y, index, n_clusters) if label_ties is None else label_ties
        excess = signs_by_cluster(x, y, index, n_clusters)
        return cls(excess, Ties.of(x, index, n_clusters), ties)

    def among(self, clusters: IntArray) -> KendallForms:
        """The forms of some clusters only, in the order given."""
        block = np.ix_(clusters, clusters)
        return KendallForms(
            self.excess[block], self.scores.among(clusters), self.labels.among(clusters)
        )

    def tau_b(self, counts: ArrayLike, label_pairs: FloatArray | None = None) -> FloatArray:
        """Kendall's tau-b (B,) in each resample of counts (B, C); NaN where a side is constant.

        `label_pairs` are `labels.untied_pairs` of the same counts, where other metrics need them
        too.
        """
        drawn = np.asarray(counts, np.float64)
        by_label = self.labels.untied_pairs(drawn) if label_pairs is None else label_pairs
        by_score = self.scores.untied_pairs(drawn)
        return ratio(quadratic(self.excess, drawn) / 2.0, by_score, by_label)


def quadratic(form: NDArray[np.int32], counts: FloatArray) -> FloatArray:
    """Value w' A w for each row w of counts (B, C), exact below 2^53, shape (B,)."""
    value = np.zeros(counts.shape[0])
    largest = np.abs(form).sum(axis=0, dtype=np.float64).max(initial=0.0)
    # Sums of whole numbers below 2^24 are exact in single precision, which is twice as fast.
    single = largest * counts.max(initial=0.0) < 1 << 24
    kind = np.dtype(np.float32 if single else np.float64)
    matrix = form.astype(kind)
    for rows in blocks(np.arange(value.size), _CACHED_CELLS // max(form.shape[0], 1)):
        partners = np.matmul(counts[rows].astype(kind), matrix)
        value[rows] = np.vecdot(counts[rows], partners)
    return value
