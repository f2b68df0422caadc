"""Pairwise accuracy at a fixed threshold in every bootstrap resample of clusters.

A resample repeats cluster c of the sample w_c times. Its right pairs are a quadratic form of w:
pairs of different items are counted by cluster once, and two copies of one item are equal in
score and label, hence tied on both sides and right. Nothing is repeated or compared again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.pair_counts import reach

_BLOCK_CELLS = 1 << 21  # pairs of items compared at a time (2 MiB per mask)


@dataclass(frozen=True)
class PairForms:
    """Pairs of a sample by the clusters of their items, at one threshold.

    Memory is 8 bytes for each pair of clusters; items are compared by blocks.

    Attributes:
        concordant: shape (C, C), concordant pairs beyond the threshold whose item of the lower
            label is in the cluster of the row.
        tied: shape (C, C), symmetric: ordered pairs of items of equal label within the
            threshold, each item with itself included.
        labels: shape (C, L), items of each cluster with each distinct label.
        scores: shape (C, V), items of each cluster with each distinct score.
        sizes: shape (C,), items of each cluster.
    """

    concordant: NDArray[np.int32]
    tied: NDArray[np.int32]
    labels: sparse.csr_array
    scores: sparse.csr_array
    sizes: FloatArray

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        clusters: ArrayLike,
        n_clusters: int,
        threshold: float = 0.0,
    ) -> PairForms:
        """Compare all items with all items.

        Args:
            scores: shape (n,), finite.
            labels: shape (n,), finite.
            clusters: shape (n,), cluster index of each item.
            n_clusters: number C of clusters.
            threshold: largest difference of scores that counts as a tie, >= 0.

        Raises:
            ValueError: the lengths differ.
        """
        x, y = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
        index = np.asarray(clusters, np.intp)
        if x.ndim != 1 or x.shape != y.shape or index.shape != x.shape:
            raise ValueError(f"scores {x.shape}, labels {y.shape}, clusters {index.shape} differ")
        forms = np.zeros((2, n_clusters, n_clusters), np.int32)
        sizes = np.bincount(index, minlength=n_clusters).astype(np.float64)
        order = np.argsort(index, kind="stable")
        values, value = np.unique(x[order], return_inverse=True)
        level = np.unique(y[order], return_inverse=True)[1]
        small = np.min_scalar_type(x.size)  # narrow numbers compare faster
        end = reach(values, threshold)[value].astype(small)
        place, rank = value.astype(small), level.astype(small)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        present = np.flatnonzero(sizes)
        starts = bounds[present]
        for first, last in _blocks(np.append(starts, x.size)):
            rows = slice(starts[first], np.append(starts, x.size)[last])
            masks = (
                (rank[rows, None] < rank) & (place >= end[rows, None]),
                (rank[rows, None] == rank) & (place < end[rows, None]) & (place[rows, None] < end),
            )
            block = np.ix_(present[first:last], present)
            for form, mask in zip(forms, masks, strict=True):
                form[block] = _summed(mask, starts[first:last] - rows.start, starts)
        return cls(
            forms[0],
            forms[1],
            _by_cluster(index[order], level, n_clusters),
            _by_cluster(index[order], value, n_clusters),
            sizes,
        )

    def among(self, clusters: IntArray) -> PairForms:
        """The forms of some clusters only, in the order given."""
        block = np.ix_(clusters, clusters)
        return PairForms(
            self.concordant[block],
            self.tied[block],
            self.labels[clusters],
            self.scores[clusters],
            self.sizes[clusters],
        )

    def drawn(self, counts: FloatArray) -> DrawnPairs:
        """Pairs of draws in each resample.

        Args:
            counts: shape (B, C), non-negative whole multiplicities of the clusters.
        """
        items = counts @ self.sizes
        return DrawnPairs(
            pairs=items * (items - 1.0) / 2.0,
            concordant=_quadratic(self.concordant, counts),
            # The symmetric form holds each pair of draws twice, and each draw with itself.
            both_tied=(_quadratic(self.tied, counts) - items) / 2.0,
            label_tied=_pairs_within(counts, self.labels),
            score_tied=_pairs_within(counts, self.scores),
        )


@dataclass(frozen=True)
class DrawnPairs:
    """Counts of pairs in each resample, shape (B,) each.

    Attributes:
        pairs: all of them.
        concordant: ordered alike, and beyond the threshold in score.
        both_tied: of equal label, and within the threshold in score.
        label_tied: of equal label.
        score_tied: of equal score, whatever the threshold.
    """

    pairs: FloatArray
    concordant: FloatArray
    both_tied: FloatArray
    label_tied: FloatArray
    score_tied: FloatArray

    @property
    def accuracy(self) -> FloatArray:
        """Share of right pairs; NaN for resamples of fewer than two items."""
        return _share(self.concordant + self.both_tied, self.pairs)

    @property
    def accuracy_ignoring_ties(self) -> FloatArray:
        """Concordant pairs over pairs of different labels; NaN without any. For threshold 0."""
        return _share(self.concordant, self.pairs - self.label_tied)

    @property
    def tau_b(self) -> FloatArray:
        """Kendall's tau-b; NaN where scores or labels are constant. For threshold 0."""
        by_label, by_score = self.pairs - self.label_tied, self.pairs - self.score_tied
        ordered = by_label + by_score - self.pairs + self.both_tied
        return _share(2.0 * self.concordant - ordered, np.sqrt(by_label) * np.sqrt(by_score))


def _blocks(starts: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of whole clusters of about `_BLOCK_CELLS` pairs (one cluster at least)."""
    first, n_clusters = 0, starts.size - 1
    rows = max(_BLOCK_CELLS // max(int(starts[-1]), 1), 1)
    while first < n_clusters:
        last = int(np.searchsorted(starts, starts[first] + rows, side="right")) - 1
        last = min(max(last, first + 1), n_clusters)
        yield first, last
        first = last


def _summed(mask: NDArray[np.bool_], rows: IntArray, columns: IntArray) -> NDArray[np.int32]:
    """Sums of a mask over runs of rows and of columns that start there."""
    longest = int(np.diff(np.append(rows, mask.shape[0])).max())
    # Sums in the mask's own narrow type, where they fit, are several times as fast.
    first = np.uint8 if longest < 256 else np.int32
    by_row = np.add.reduceat(mask.view(np.uint8), rows, axis=0, dtype=first)
    widest = int(np.diff(np.append(columns, mask.shape[1])).max())
    second = np.uint8 if longest * widest < 256 else np.int32
    return np.asarray(np.add.reduceat(by_row, columns, axis=1, dtype=second), np.int32)


def _by_cluster(clusters: IntArray, kinds: IntArray, n_clusters: int) -> sparse.csr_array:
    """Items of each cluster of each kind, shape (C, kinds)."""
    shape = (n_clusters, int(kinds.max(initial=0)) + 1)
    return sparse.csr_array((np.ones(kinds.size), (clusters, kinds)), shape=shape)


def _pairs_within(counts: FloatArray, kinds: sparse.csr_array) -> FloatArray:
    """Pairs of draws of one kind in each resample, shape (B,); some resamples at a time."""
    pairs = np.zeros(counts.shape[0])
    step = max(_BLOCK_CELLS // kinds.shape[1], 1)
    for start in range(0, counts.shape[0], step):
        drawn = counts[start : start + step] @ kinds
        pairs[start : start + step] = (drawn * (drawn - 1.0)).sum(axis=1) / 2.0
    return pairs


def _quadratic(form: NDArray[np.int32], counts: FloatArray) -> FloatArray:
    """Value w' A w for each row w of counts, exact below 2^53."""
    largest = form.max(initial=0) * counts.sum(axis=1).max(initial=0.0)
    # Sums of whole numbers below 2^24 are exact in single precision, which is twice as fast.
    kind = np.float32 if largest < 1 << 24 else np.float64
    partners = counts.astype(kind) @ form.astype(kind)
    value: FloatArray = np.einsum("bc,bc->b", counts, partners, dtype=np.float64)
    return value


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, part / whole, np.nan)
