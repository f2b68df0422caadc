"""Kendall's tau-b of resamples of clusters, as quadratic forms of their multiplicities.

Concordant less discordant pairs of draws are w' E w / 2, where E holds the products of pair signs
summed by the clusters of both items. E serves every selection and repetition of whole clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.clustered import Clustered, blocks, require_whole
from benchmarks.statistics.kendall_blocks import excess_by_blocks
from benchmarks.statistics.moments import ratio
from benchmarks.statistics.pair_signs import signs_by_cluster

_MOST_CLUSTERS = 4096  # with more, the matrix (64 MiB and more) is not held
_CACHED_CELLS = 1 << 20  # draws by cluster that are held at a time (8 MiB)


def resampled_kendall(
    x: ArrayLike, y: ArrayLike, counts: ArrayLike, clusters: ArrayLike | None = None
) -> FloatArray:
    """Kendall's tau-b in each resample, as a quadratic form of the multiplicities.

    Args:
        x: shape (n,) or (n, M), finite; M samples are correlated with the same y.
        y: shape (n,), finite.
        counts: shape (B, C), non-negative whole multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item; None: item i is cluster i.

    Returns:
        Shape (B,) or (B, M); NaN where a side is constant in the resample.

    Raises:
        ValueError: shapes do not fit, or a count is negative or not whole.
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
    """Which items of one sample have equal values, by cluster.

    Attributes:
        sizes: shape (C,), items of each cluster.
        alone: shape (C,), items whose value no other item has.
        shared: shape (C, V), items with each value that several have.
    """

    sizes: FloatArray
    alone: FloatArray
    shared: sparse.csr_array

    @classmethod
    def of(cls, values: FloatArray, clusters: IntArray, n_clusters: int) -> Ties:
        """Find the ties of values (n,) in clusters (n,), each index below C."""
        _, value, times = np.unique(values, return_inverse=True, return_counts=True)
        tied = times[value] > 1
        kinds = np.cumsum(times > 1) - 1
        shape = (n_clusters, int((times > 1).sum()))
        shared = sparse.csr_array(
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
    """All that Kendall's tau-b of any selection and repetition of whole clusters needs.

    Memory is 4 bytes for each pair of clusters.

    Attributes:
        excess: shape (C, C), symmetric: concordant less discordant ordered pairs of items with
            the first in the cluster of the row.
        scores: ties of the scores.
        labels: ties of the labels.
    """

    excess: NDArray[np.int32]
    scores: Ties
    labels: Ties

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

        Args:
            scores: shape (n,), finite.
            labels: shape (n,), finite.
            clusters: shape (n,), cluster index of each item.
            n_clusters: number C of clusters.
            label_ties: of these labels, where other metrics need them too.

        Raises:
            ValueError: the lengths differ.
        """
        x, y = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
        index = np.asarray(clusters, np.intp)
        if x.ndim != 1 or x.shape != y.shape or index.shape != x.shape:
            raise ValueError(f"scores {x.shape}, labels {y.shape}, clusters {index.shape} differ")
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
        """Kendall's tau-b in each resample.

        Args:
            counts: shape (B, C), non-negative whole multiplicities of the clusters.
            label_pairs: shape (B,), `labels.untied_pairs` of the same counts, where other metrics
                need them too.

        Returns:
            Shape (B,); NaN where a side is constant in the resample.
        """
        drawn = np.asarray(counts, np.float64)
        by_label = self.labels.untied_pairs(drawn) if label_pairs is None else label_pairs
        by_score = self.scores.untied_pairs(drawn)
        return ratio(quadratic(self.excess, drawn) / 2.0, by_score, by_label)


def quadratic(form: NDArray[np.int32], counts: FloatArray) -> FloatArray:
    """Value w' A w for each row w of counts (B, C), exact below 2^53, shape (B,).

    Args:
        form: shape (C, C), whole numbers.
        counts: shape (B, C), non-negative whole numbers.
    """
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
