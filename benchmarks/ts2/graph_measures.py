"""Rank, separation and delta of one graph, for all metrics at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.ts2.walks import EQUATION, PAPER, GraphWalks, graph_walks

MeasureKey = tuple[str, str]
"""Measure and variant, e.g. `("rank", "paper")`."""

KEYS: tuple[MeasureKey, ...] = (
    ("rank", "paper"),
    ("sep", "paper"),
    ("delta", "paper"),
    ("rank", "equation"),
    ("sep", "equation"),
    ("delta", "equation"),
    ("rank_midrank", "equation"),
)


class Graph:
    """One semantic error graph, with its walks counted once where every image has a score.

    Args:
        levels: shape (I,), error count of each image.
        labels: length I, node of each image.
    """

    def __init__(self, levels: IntArray, labels: Sequence[str]) -> None:
        self._levels = levels
        self._labels = tuple(labels)
        self._complete = self._walks(np.ones(len(self._labels), dtype=bool))

    def measures(self, scores: FloatArray) -> Mapping[MeasureKey, FloatArray]:
        """Every measure of every metric on this graph.

        Metrics that lack the same images are computed together; most lack none.

        Args:
            scores: shape (I, M), higher is better; NaN where a metric gave no score.

        Returns:
            Per measure and variant an array of shape (M,): NaN where the metric has no score in
            this graph (for `rank`, `paper`: no walk with two scores). Delta is not normalised.
        """
        scored = np.isfinite(scores)
        values = {key: np.empty(scores.shape[1]) for key in KEYS}
        for pattern, columns in _patterns(scored):
            walks = self._complete if pattern.all() else self._walks(pattern)
            # The filler is never seen: images without a score have no weight in any walk.
            block = np.where(pattern[:, None], scores[:, columns], 0.0)
            for key, found in _measures(*walks, block).items():
                values[key][columns] = found
        return values

    def _walks(self, scored: BoolArray) -> tuple[GraphWalks, GraphWalks]:
        return (
            graph_walks(self._levels, self._labels, scored, PAPER),
            graph_walks(self._levels, self._labels, scored, EQUATION),
        )


def _patterns(scored: BoolArray) -> list[tuple[BoolArray, IntArray]]:
    """The distinct columns of (I, M) `scored`, each with the metrics that have it."""
    if scored.all():
        return [(np.ones(len(scored), dtype=bool), np.arange(scored.shape[1]))]
    patterns, which = np.unique(scored, axis=1, return_inverse=True)
    return [(patterns[:, k], np.flatnonzero(which.ravel() == k)) for k in range(patterns.shape[1])]


def _measures(
    paper: GraphWalks, equation: GraphWalks, scores: FloatArray
) -> dict[MeasureKey, FloatArray]:
    # below[j, i, m]: metric m scores image j lower than image i. Ranks, ECDFs and ties follow.
    below = scores[:, None, :] < scores[None, :, :]
    fewer = below.astype(np.float64)
    balance = fewer - fewer.transpose(1, 0, 2)
    at_most = 1.0 - fewer.transpose(1, 0, 2)
    return {
        ("rank", "paper"): rank_by_midranks(paper, balance, skip_single=True),
        ("sep", "paper"): separation(paper, at_most),
        ("delta", "paper"): paper.contrast @ scores,
        ("rank", "equation"): rank_by_lower_ranks(equation, fewer),
        ("sep", "equation"): separation(equation, at_most),
        ("delta", "equation"): equation.contrast @ scores,
        ("rank_midrank", "equation"): rank_by_midranks(equation, balance, skip_single=False),
    }


def rank_by_midranks(walks: GraphWalks, balance: FloatArray, *, skip_single: bool) -> FloatArray:
    """Negated Spearman correlation of error count and score, averaged over walks; ties share ranks.

    A walk in which either side is constant counts as 0.

    Args:
        walks: the walks of the graph.
        balance: shape (I, I, M), sign of score[i] - score[j].
        skip_single: leave out walks with fewer than two scores instead of counting them as 0.

    Returns:
        Shape (M,), in [-1, 1]; 1 where scores fall strictly with the error count.
    """
    # Twice the rank of i, less its mean, is the number of images below less the number above.
    scores = _image_sums(walks.counts, balance)
    levels = walks.levels
    errors = walks.counts @ np.sign(levels[None, :] - levels[:, None])
    weights = walks.weights
    if skip_single:
        weights = weights * (walks.counts.sum(axis=1) > 1)
        total = weights.sum()
        weights = weights / total if total > 0 else np.full_like(weights, np.nan)
    return -weights @ _correlation(walks.counts, errors, scores)


def rank_by_lower_ranks(walks: GraphWalks, fewer: FloatArray) -> FloatArray:
    """Eqs. 1-2 read literally: the rank of a value is the number of strictly smaller ones.

    Args:
        walks: the walks of the graph.
        fewer: shape (I, I, M), 1 where score[j] < score[i].

    Returns:
        Shape (M,), the mean over walks of the negated Pearson correlation of these ranks.
    """
    levels = walks.levels
    scores = _image_sums(walks.counts, fewer)
    errors = walks.counts @ (levels[:, None] < levels[None, :]).astype(np.float64)
    size = np.maximum(walks.counts.sum(axis=1), 1.0)[:, None]
    errors = errors - np.einsum("wi,wi->w", walks.counts, errors)[:, None] / size
    scores = scores - (np.einsum("wi,wim->wm", walks.counts, scores) / size)[:, None, :]
    return -walks.weights @ _correlation(walks.counts, errors, scores)


def separation(walks: GraphWalks, at_most: FloatArray) -> FloatArray:
    """Weighted mean over pairs of groups of the two-sample Kolmogorov-Smirnov statistic.

    Args:
        walks: the walks of the graph.
        at_most: shape (I, I, M), 1 where score[j] <= score[i].

    Returns:
        Shape (M,), in [0, 1]; 0 for a graph with a single level.
    """
    low, high = np.nonzero(walks.separation)
    weights = walks.separation[low, high]
    # Both ECDFs step only at scores, so the largest gap is found at one of the images.
    ecdf = _image_sums(walks.shares, at_most)
    found: FloatArray = weights @ np.abs(ecdf[low] - ecdf[high]).max(axis=1)
    return found


def _image_sums(weights: FloatArray, tensor: FloatArray) -> FloatArray:
    """Sum over the first axis: (K, I) times (I, I, M) gives (K, I, M)."""
    images, _, metrics = tensor.shape
    product: FloatArray = weights @ tensor.reshape(images, images * metrics)
    return product.reshape(len(weights), images, metrics)


def _correlation(counts: FloatArray, errors: FloatArray, scores: FloatArray) -> FloatArray:
    """Correlation (W, M) of centred `errors` (W, I) and `scores` (W, I, M); 0 where constant."""
    product = np.einsum("wi,wim->wm", counts * errors, scores)
    spread = np.einsum("wi,wi->w", counts, errors**2)[:, None] * np.einsum(
        "wi,wim->wm", counts, scores**2
    )
    constant = spread <= 0
    found: FloatArray = np.where(constant, 0.0, product / np.sqrt(np.where(constant, 1.0, spread)))
    return found
