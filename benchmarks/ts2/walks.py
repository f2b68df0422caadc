"""The walks of a semantic error graph, counted once per graph and shared by all metrics.

The released data give the nodes of a graph but not its edges, so a walk is any choice of one node
per error level. Everything a measure needs to know about the walks, apart from the scores, is a
handful of small matrices; averaging over walks then becomes matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class WalkRule:
    """How a variant of the protocol walks a graph.

    Attributes:
        root_twice: two root nodes are chosen independently, as in the script behind the published
            table; both orders of a pair count, and the images of a root chosen twice count twice.
        weighted: a walk weighs as much as it has scored images; otherwise all walks weigh alike.
        adjacent_only: separation compares neighbouring levels only; otherwise all pairs of levels.
    """

    root_twice: bool
    weighted: bool
    adjacent_only: bool


PAPER = WalkRule(root_twice=True, weighted=True, adjacent_only=False)
"""The computation that reproduces Table 2 of the paper."""
EQUATION = WalkRule(root_twice=False, weighted=False, adjacent_only=True)
"""Eqs. 2, 4 and 5 of the paper, read literally."""


@dataclass(frozen=True)
class GraphWalks:
    """The walks of one graph with I images, of which some have a score.

    A group is what a walk takes from one level: a node, or a pair of root nodes pooled.

    Attributes:
        levels: shape (I,), error count of each image.
        counts: shape (W, I), how often each image stands in the sample of each distinct walk;
            0 for images without a score.
        weights: shape (W,), weight of each walk in an average over walks; sums to 1, or all NaN
            where the graph has no scored image.
        shares: shape (G, I), weight of each image in the mean of each group; rows sum to 1, or
            to 0 for a group without scored images.
        separation: shape (G, G), weight of each pair of groups in the separation of the graph.
        contrast: shape (I,), weight of each image in the unnormalised delta of the graph.
    """

    levels: FloatArray
    counts: FloatArray
    weights: FloatArray
    shares: FloatArray
    separation: FloatArray
    contrast: FloatArray


def graph_walks(
    levels: IntArray, labels: Sequence[str], scored: BoolArray, rule: WalkRule
) -> GraphWalks:
    """All walks of one graph under a rule.

    Images without a score are dropped from the samples; a node left without any is skipped in the
    walks through it, so that its neighbours become adjacent.

    Args:
        levels: shape (I,), error count of each image; the lowest level holds the roots.
        labels: length I, node of each image.
        scored: shape (I,), whether the metric gave the image a score.
        rule: the variant.
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
