"""True values of measures, from samples so large that what is left of chance does not matter."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.statistics import correlation
from benchmarks.statistics.calibration.designs import Design, Sample, drawn
from benchmarks.statistics.calibration.measures import MEASURES
from benchmarks.statistics.pairwise import tie_calibrated

BATCHES = 10
ITEMS = 200_000
"""Independent items of a batch for measures that pool items: what infinitely many clusters give."""
PAIRED_ITEMS = 4_000
"""The same for measures of all pairs of items, 8 million of them."""
CHAINS = 10_000
"""Clusters of a batch for means over clusters."""


@dataclass(frozen=True)
class Truth:
    """True values of both metrics, shape (2,), and their standard errors, shape (2,)."""

    value: FloatArray
    error: FloatArray


def truth(measure: str, design: Design, *, same: bool, seed: int, share: float = 1.0) -> Truth:
    """Simulate the true values.

    Args:
        measure: one of `measures.MEASURES`.
        design: the distribution; its number of clusters does not matter.
        same: whether both metrics have one true value by construction: then both are averaged.
        seed: of the generator.
        share: of the sizes above that is simulated, for a quick look.
    """
    start = [seed, zlib.crc32(f"{measure} {design.with_clusters(0)}".encode())]
    found = np.stack(
        [_batch(measure, design, np.random.default_rng([*start, i]), share) for i in range(BATCHES)]
    )
    if same:
        found = np.tile(found.mean(axis=1, keepdims=True), 2)
    return Truth(found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(BATCHES))


def _batch(measure: str, design: Design, rng: np.random.Generator, share: float) -> FloatArray:
    if measure == "chain rank":
        sample = drawn(design.with_clusters(int(CHAINS * share)), rng)
        return MEASURES[measure](sample, np.ones((1, sample.n_clusters))).ravel()
    paired = measure == "tie-calibrated"
    n_items = int(share * (PAIRED_ITEMS if paired else ITEMS))
    sample = drawn(design.single_items(n_items), rng)
    if paired:
        return np.array([tie_calibrated(x, sample.gold).accuracy for x in sample.scores.T])
    if measure == "Kendall":  # the coefficient of one sample is faster than that of resamples
        return np.array([correlation.kendall(x, sample.gold) for x in sample.scores.T])
    return MEASURES[measure](_as_one_cluster(sample), np.ones((1, 1))).ravel()


def _as_one_cluster(sample: Sample) -> Sample:
    return replace(sample, clusters=np.zeros_like(sample.clusters), n_clusters=1)
