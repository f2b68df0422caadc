"""Measures of TS2: walks of a semantic error graph; rank, separation and delta of one graph.

The released data give the nodes of a graph but not its edges, so a walk is any choice of one node
per error level. Everything a measure needs to know about the walks, apart from the scores, is a
handful of small matrices; averaging over walks then becomes matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.schema import MeasureInfo

_PAPER = "Saxon et al. 2024, arXiv:2404.04251"

MEASURES: dict[str, MeasureInfo] = {
    "rank": MeasureInfo.correlation(
        title="Rank (Spearman ρ)",
        meaning=(
            "Does the score fall as a picture gets more things wrong? 1: every walk from the "
            "faultless images to the worst is put in the right order; 0: no order at all; "
            "-1: the order is reversed."
        ),
        source=f"{_PAPER}, Eqs. 1-2; variant paper: the computation behind Table 2",
    ),
    "sep": MeasureInfo.share(
        title="Separation (KS)",
        meaning=(
            "How cleanly do the scores of images with different numbers of errors stay apart? "
            "1: no overlap; 0: the scores look the same. It does not ask which group scores "
            "higher, and small groups look apart by luck, so a guessing metric is above 0."
        ),
        source=f"{_PAPER}, Eqs. 3-4; variant paper: the computation behind Table 2",
    ),
    "delta": MeasureInfo(
        title="Delta (score drop)",
        meaning=(
            "By how much does the mean score drop from one error count to the next, in standard "
            "deviations of the metric over all images? 0: no drop; negative: the scores rise "
            "with the errors."
        ),
        chance=0.0,
        source=f"{_PAPER}, Eq. 5; variant as_printed: the cells of Table 2, see the erratum",
    ),
    "rank_midrank": MeasureInfo.correlation(
        title="Rank (ties share ranks)",
        meaning=(
            "Rank with the usual treatment of ties: equal scores share the average of their "
            "ranks. The paper's Eq. 1 gives them the lowest, but its own worked example needs "
            "the average."
        ),
        source=f"{_PAPER}, Eq. 2 with the average ranks of the example in Section 6.4",
    ),
}


@dataclass(frozen=True)
class WalkRule:
    """Rule by which a variant of the protocol walks a graph."""

    # two root nodes are chosen independently, as in the script behind the published table; both
    # orders of a pair count, and the images of a root chosen twice count twice
    root_twice: bool
    weighted: bool  # a walk weighs as much as it has scored images; otherwise all walks weigh alike
    # separation compares neighbouring levels only; otherwise all pairs of levels
    adjacent_only: bool


PAPER = WalkRule(root_twice=True, weighted=True, adjacent_only=False)
"""The computation that reproduces Table 2 of the paper."""
EQUATION = WalkRule(root_twice=False, weighted=False, adjacent_only=True)
"""Eqs. 2, 4 and 5 of the paper, read literally."""


@dataclass(frozen=True)
class GraphWalks:
    """The walks of one graph with I images, of which some have a score.

    A group is what a walk takes from one level: a node, or a pair of root nodes pooled.
    """

    levels: FloatArray  # shape (I,), error count of each image
    # shape (W, I), how often each image stands in the sample of each distinct walk; 0 for images
    # without a score
    counts: FloatArray
    # shape (W,), weight of each walk in an average over walks; sums to 1, or all NaN where the
    # graph has no scored image
    weights: FloatArray
    # shape (G, I), weight of each image in the mean of each group; rows sum to 1, or to 0 for a
    # group without scored images
    shares: FloatArray
    # shape (G, G), weight of each pair of groups in the separation of the graph
    separation: FloatArray
    contrast: FloatArray  # shape (I,), weight of each image in the unnormalised delta of the graph


def graph_walks(
    levels: IntArray, labels: Sequence[str], scored: BoolArray, rule: WalkRule
) -> GraphWalks:
    """All walks of one graph under a rule.

    Images without a score are dropped from the samples; a node left without any is skipped in the
    walks through it, so that its neighbours become adjacent.

    `levels` (I,): error count of each image; the lowest level holds the roots. `scored` (I,):
    whether the metric gave the image a score.
    """
    members, multiplicity, by_level = _groups(levels, labels, rule)
    members = members * scored
    sizes = members.sum(axis=1)
    walks = np.stack([axis.ravel() for axis in np.meshgrid(*by_level, indexing="ij")], axis=1)
    counts = members[walks].sum(axis=1)
    # Only the roots have a multiplicity, so that of a walk is that of its first group.
    weights = multiplicity[walks[:, 0]] * (counts.sum(axis=1) if rule.weighted else 1.0)
    total = float(weights.sum()) if scored.any() else 0.0
    weights = weights / total if total > 0 else np.full(len(walks), math.nan)
    shares = members / np.maximum(sizes, 1.0)[:, None]
    neighbours = _pair_weights(walks, sizes, weights, adjacent_only=True)
    return GraphWalks(
        levels=levels.astype(np.float64),
        counts=counts,
        weights=weights,
        shares=shares,
        separation=neighbours
        if rule.adjacent_only
        else _pair_weights(walks, sizes, weights, adjacent_only=False),
        contrast=(neighbours.sum(axis=1) - neighbours.sum(axis=0)) @ shares,
    )


def _groups(
    levels: IntArray, labels: Sequence[str], rule: WalkRule
) -> tuple[FloatArray, FloatArray, list[IntArray]]:
    """Members (G, I) and multiplicity (G,) of the groups, and the groups of each level."""
    members: list[FloatArray] = []
    multiplicity: list[float] = []
    by_level: list[IntArray] = []
    for depth, nodes in enumerate(_nodes_by_level(levels, labels)):
        first = len(members)
        for group, times in _level_groups(nodes, root_pairs=rule.root_twice and depth == 0):
            members.append(group)
            multiplicity.append(times)
        by_level.append(np.arange(first, len(members)))
    return np.stack(members), np.array(multiplicity), by_level


def _nodes_by_level(levels: IntArray, labels: Sequence[str]) -> Iterator[list[FloatArray]]:
    """Per level, lowest first, the membership (I,) of each of its nodes."""
    names = np.array(labels, dtype=object)
    for level in np.unique(levels):
        at_level = levels == level
        yield [
            ((names == name) & at_level).astype(np.float64)
            for name in dict.fromkeys(names[at_level])
        ]


def _level_groups(
    nodes: list[FloatArray], *, root_pairs: bool
) -> Iterator[tuple[FloatArray, float]]:
    """Groups of one level, each with the number of ways in which it arises."""
    if not root_pairs:
        yield from ((node, 1.0) for node in nodes)
        return
    for a, b in combinations_with_replacement(range(len(nodes)), 2):
        yield nodes[a] + nodes[b], 1.0 if a == b else 2.0


def _pair_weights(
    walks: IntArray, sizes: FloatArray, weights: FloatArray, *, adjacent_only: bool
) -> FloatArray:
    """Weight (G, G) of each pair (lower, higher level) in a mean over pairs, then over walks."""
    present = sizes[walks] > 0
    position = present.cumsum(axis=1)
    pairs = {
        (low, high): present[:, low]
        & present[:, high]
        & (not adjacent_only or position[:, high] - position[:, low] == 1)
        for low, high in combinations(range(walks.shape[1]), 2)
    }
    table = np.zeros((len(sizes), len(sizes)))
    if not pairs:
        return table if np.isfinite(weights).all() else np.full_like(table, math.nan)
    number = np.maximum(np.sum(list(pairs.values()), axis=0), 1)
    for (low, high), taken in pairs.items():
        np.add.at(table, (walks[:, low], walks[:, high]), weights * taken / number)
    return table


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
    """Semantic error graph, with its walks counted once where every image has a score.

    `levels`: shape (I,), error count of each image.
    """

    def __init__(self, levels: IntArray, labels: Sequence[str]) -> None:
        self._levels = levels
        self._labels = tuple(labels)
        self._complete = self._walks(np.ones(len(self._labels), dtype=bool))

    def measures(self, scores: FloatArray) -> Mapping[MeasureKey, FloatArray]:
        """Every measure of every metric on this graph.

        Metrics that lack the same images are computed together; most lack none.
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

    `balance` (I, I, M): sign of score[i] - score[j].

    Returns shape (M,), in [-1, 1]; 1 where scores fall strictly with the error count.
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

    `fewer` (I, I, M): 1 where score[j] < score[i].

    Returns shape (M,), the mean over walks of the negated Pearson correlation of these ranks.
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

    `at_most` (I, I, M): 1 where score[j] <= score[i].

    Returns shape (M,), in [0, 1]; 0 for a graph with a single level.
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
