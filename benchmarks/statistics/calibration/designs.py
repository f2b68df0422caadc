"""Simulated benchmarks: two metrics on items in clusters, with known distributions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import expit

from benchmarks.arrays import FloatArray, IntArray

_HALF_RANGE = 1.5
"""Levels are cut evenly between minus and plus so many standard deviations of the quality."""


@dataclass(frozen=True)
class Noise:
    """What a metric adds to the quality: standard deviations, in units of the quality's.

    Attributes:
        item: of independent noise of each item.
        cluster: of noise that all items of a cluster share.
    """

    item: float
    cluster: float


@dataclass(frozen=True)
class Design:
    """A distribution of benchmarks.

    The quality of an item is normal with variance 1, of which `shared` lies between clusters; a
    metric sees it with noise. Where two metrics have noise of one total variance, and each item
    is looked at alone, they cannot be told apart: pooled measures have the same true value.

    Attributes:
        n_clusters: number C of clusters.
        sizes: fewest and most items of a cluster; each number between is as likely.
        noises: of both metrics.
        kind: what the gold is: `rating` (quality with noise of raters), `margin` (none: an item
            is right where its score is above 0), `order` (place in a chain that is a cluster),
            `label` (whether the quality with noise of raters is above 0).
        shared: share of the quality's variance between clusters, 0..1.
        rater: standard deviation of the raters' noise.
        gold_levels: ratings are rounded to so many levels, an odd number; None: they are not.
        score_levels: the same for scores.
    """

    n_clusters: int
    sizes: tuple[int, int]
    noises: tuple[Noise, Noise]
    kind: Literal["rating", "margin", "order", "label"] = "rating"
    shared: float = 0.3
    rater: float = 0.5
    gold_levels: int | None = None
    score_levels: int | None = None

    def with_clusters(self, n_clusters: int) -> Design:
        """The same distribution with another number of clusters."""
        return replace(self, n_clusters=n_clusters)

    def single_items(self, n_items: int) -> Design:
        """Independent items of the same distribution, each a cluster of its own."""
        return replace(self, n_clusters=n_items, sizes=(1, 1))


@dataclass(frozen=True)
class Sample:
    """One simulated benchmark.

    Attributes:
        scores: shape (n, 2).
        gold: shape (n,).
        clusters: shape (n,), ascending, 0..C-1.
        n_clusters: number C of clusters.
    """

    scores: FloatArray
    gold: FloatArray
    clusters: IntArray
    n_clusters: int


def drawn(design: Design, rng: np.random.Generator) -> Sample:
    """A benchmark of this design."""
    fewest, most = design.sizes
    sizes = rng.integers(fewest, most, design.n_clusters, endpoint=True)
    clusters = np.repeat(np.arange(design.n_clusters), sizes)
    between, within = np.sqrt(design.shared), np.sqrt(1.0 - design.shared)
    quality = between * rng.normal(size=design.n_clusters)[clusters]
    quality += within * rng.normal(size=clusters.size)
    noise = _noise(design, clusters, rng)
    rated = quality + design.rater * rng.normal(size=clusters.size)
    if design.kind == "order":
        place = np.arange(clusters.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        scores = place[:, None] / 4.0 + quality[:, None] + noise
        gold = place.astype(np.float64)
        return Sample(_rounded(scores, design.score_levels), gold, clusters, len(sizes))
    if design.kind == "margin":
        scores = 0.5 + quality[:, None] + noise
        return Sample(_rounded(scores, design.score_levels), rated, clusters, len(sizes))
    if design.kind == "label":
        scores = expit(quality[:, None] + noise)
        return Sample(scores, (rated > 0.0).astype(np.float64), clusters, len(sizes))
    gold = _rounded(rated, design.gold_levels)
    scores = _rounded(quality[:, None] + noise, design.score_levels)
    return Sample(scores, gold, clusters, len(sizes))


def _noise(design: Design, clusters: IntArray, rng: np.random.Generator) -> FloatArray:
    """Shape (n, 2)."""
    by_item = rng.normal(size=(clusters.size, 2)) * [one.item for one in design.noises]
    by_cluster = rng.normal(size=(design.n_clusters, 2)) * [one.cluster for one in design.noises]
    total: FloatArray = by_item + by_cluster[clusters]
    return total


def _rounded(values: FloatArray, levels: int | None) -> FloatArray:
    """Values rounded to whole levels around 0, beyond the outer ones cut off."""
    if levels is None:
        return values
    width, most = 2.0 * _HALF_RANGE / levels, levels // 2
    cut: FloatArray = np.clip(np.round(values / width), -most, most)
    return cut
