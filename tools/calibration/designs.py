"""Simulated benchmarks of the calibration study: distributions, and samples of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.special import expit

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.families.system import SystemAnswers
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark

_HALF_RANGE = 1.5
"""Levels are cut evenly between minus and plus so many standard deviations of the quality."""

_STEP = 0.15
"""By so many standard deviations of the quality a model is better than the one before."""


@dataclass(frozen=True)
class Noise:
    """Noise of a metric: standard deviations, in units of the quality's."""

    item: float  # of independent noise of each item
    cluster: float  # of noise that all items of a cluster share


@dataclass(frozen=True)
class Design:
    """A distribution of benchmarks.

    The quality of an item is normal with variance 1, of which `shared` lies between clusters; a
    metric sees it with noise. Where two metrics have noise of one total variance, and each item
    is looked at alone, they cannot be told apart: pooled measures have the same true value.
    """

    n_clusters: int  # number C of clusters
    sizes: tuple[int, int]  # fewest and most items of a cluster; each number between is as likely
    noises: tuple[Noise, ...]  # of each metric
    # what the gold is: `rating` (quality with noise of raters), `margin` (none: an item is right
    # where its score is above 0), `order` (place in a chain that is a cluster), `label` (whether
    # the quality with noise of raters is above 0), `models` (rating of an image by each of as many
    # models as a cluster, which is a prompt, has items; each model is better than the one before)
    # `evalmi`: prompts drawn from those of EvalMi, with what people said there of 24 models
    kind: Literal["rating", "margin", "order", "label", "models", "evalmi"] = "rating"
    shared: float = 0.3  # share of the quality's variance between clusters, 0..1
    rater: float = 0.5  # standard deviation of the raters' noise
    # by how many standard deviations of the quality a metric misjudges a model at most; for `models`
    misjudged: float = 0.0
    # ratings are rounded to so many levels, an odd number; None: they are not
    gold_levels: int | None = None
    score_levels: int | None = None  # the same for scores
    together: float = 0.0  # share of the noise's variance that all metrics have in common, 0..1

    def with_clusters(self, n_clusters: int) -> Design:
        """The same distribution with another number of clusters."""
        return replace(self, n_clusters=n_clusters)

    def single_items(self, n_items: int) -> Design:
        """Independent items of the same distribution, each a cluster of its own."""
        return replace(self, n_clusters=n_items, sizes=(1, 1))


@dataclass(frozen=True)
class Sample:
    """Simulated benchmark."""

    scores: FloatArray  # shape (n, M)
    gold: FloatArray  # shape (n,)
    clusters: IntArray  # shape (n,), ascending, 0..C-1
    n_clusters: int  # number C of clusters


def drawn(design: Design, rng: np.random.Generator) -> Sample:
    """A benchmark of this design."""
    if design.kind == "evalmi":
        return _of_evalmi(design, rng)
    fewest, most = design.sizes
    sizes = rng.integers(fewest, most, design.n_clusters, endpoint=True)
    clusters = np.repeat(np.arange(design.n_clusters), sizes)
    between, within = np.sqrt(design.shared), np.sqrt(1.0 - design.shared)
    quality = between * rng.normal(size=design.n_clusters)[clusters]
    quality += within * rng.normal(size=clusters.size)
    place = np.arange(clusters.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    if design.kind == "models":
        quality += _STEP * place
    noise = _noise(design, clusters, rng)
    rated = quality + design.rater * rng.normal(size=clusters.size)
    if design.kind == "order":
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
    quality += design.misjudged * np.sin(2.0 * place)
    scores = _rounded(quality[:, None] + noise, design.score_levels)
    return Sample(scores, gold, clusters, len(sizes))


def _of_evalmi(design: Design, rng: np.random.Generator) -> Sample:
    """Prompts of EvalMi; metrics see what people said with noise, and misjudge each model."""
    people = _said_of_evalmi()
    clusters = np.repeat(np.arange(design.n_clusters), people.shape[1])
    gold = people[rng.integers(0, len(people), design.n_clusters)].ravel()
    models = np.tile(np.arange(people.shape[1]), design.n_clusters)
    seen = gold + design.misjudged * np.sin(2.0 * models)
    return Sample(seen[:, None] + _noise(design, clusters, rng), gold, clusters, design.n_clusters)


def evalmi() -> tuple[Benchmark, Path | None]:
    """The benchmark, and where its data are."""
    folder = os.environ.get("ASSAY_DATA", "")
    return load_registry(cards=())["evalmi_systems"], Path(folder) if folder else None


@cache
def _said_of_evalmi() -> FloatArray:
    """Mean ratings by prompt and model, (P, 24), in standard deviations; read from `ASSAY_DATA`."""
    benchmark, data = evalmi()
    answers = benchmark.answers(data)
    assert isinstance(answers, SystemAnswers)
    said = answers.arranged(answers.rated)
    found: FloatArray = (said - said.mean()) / said.std()
    return found


def _noise(design: Design, clusters: IntArray, rng: np.random.Generator) -> FloatArray:
    """Shape (n, M)."""
    by_item = _normal(design, clusters.size, rng) * [one.item for one in design.noises]
    by_cluster = _normal(design, design.n_clusters, rng) * [one.cluster for one in design.noises]
    total: FloatArray = by_item + by_cluster[clusters]
    return total


def _normal(design: Design, n: int, rng: np.random.Generator) -> FloatArray:
    """Standard normal numbers of n units for each metric, shape (n, M)."""
    own: FloatArray = rng.normal(size=(n, len(design.noises)))
    if not design.together:
        return own
    shared = rng.normal(size=(n, 1))
    parts = np.sqrt(design.together) * shared, np.sqrt(1.0 - design.together) * own
    return np.asarray(parts[0] + parts[1], np.float64)


def _rounded(values: FloatArray, levels: int | None) -> FloatArray:
    """Values rounded to whole levels around 0, beyond the outer ones cut off."""
    if levels is None:
        return values
    width, most = 2.0 * _HALF_RANGE / levels, levels // 2
    cut: FloatArray = np.clip(np.round(values / width), -most, most)
    return cut
