"""Resampling by cluster: one plan per benchmark revision, shared by every metric and measure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.arrays import FloatArray, IntArray

DEFAULT_RESAMPLES = 1000


@dataclass(frozen=True)
class ResamplingPlan:
    """Multiplicities of clusters in bootstrap resamples.

    Attributes:
        clusters: cluster ids in a fixed order.
        seed: seed of the generator; stored with every result.
        n_resamples: number B of resamples.
    """

    clusters: tuple[str, ...]
    seed: int
    n_resamples: int = DEFAULT_RESAMPLES

    @classmethod
    def for_revision(
        cls,
        benchmark: str,
        revision: str,
        clusters: Sequence[str],
        n_resamples: int = DEFAULT_RESAMPLES,
    ) -> ResamplingPlan:
        """The plan of one benchmark revision; its seed is derived from both names."""
        return cls(tuple(clusters), seed_of(benchmark, revision), n_resamples)

    @cached_property
    def counts(self) -> FloatArray:
        """Shape (B, C): multiplicity of cluster c in resample b; each row sums to C."""
        rng = np.random.default_rng(self.seed)
        n = len(self.clusters)
        if n == 0:
            return np.zeros((self.n_resamples, 0))
        return rng.multinomial(n, np.full(n, 1.0 / n), size=self.n_resamples).astype(np.float64)

    @cached_property
    def draws(self) -> FloatArray:
        """Shape (1 + B, C): every cluster once, which is the sample itself; then `counts`."""
        return with_sample(self.counts)

    @property
    def resampled(self) -> slice:
        """The rows of `draws` that are bootstrap resamples."""
        return slice(1, 1 + self.n_resamples)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each cluster id in `clusters`."""
        return {cluster: i for i, cluster in enumerate(self.clusters)}

    def positions(self, clusters: Iterable[str]) -> IntArray:
        """Positions of these cluster ids (repeats allowed) in `clusters`."""
        return np.array([self.index[cluster] for cluster in clusters], np.intp)

    def counts_of(self, clusters: Sequence[str]) -> FloatArray:
        """Shape (B, len(clusters)): the columns of `counts` for these ids (repeats allowed).

        With one id per item this is the item weight of every resample.

        Raises:
            KeyError: an id is not in the plan.
        """
        return self.counts[:, self.positions(clusters)]


def seed_of(benchmark: str, revision: str) -> int:
    """The seed of all that is drawn for a benchmark revision: resamples and signs."""
    digest = hashlib.sha256(f"{benchmark}@{revision}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def with_sample(counts: FloatArray) -> FloatArray:
    """The sample itself, each of C clusters once, before the resamples: (B, C) to (1 + B, C)."""
    return np.vstack([np.ones((1, counts.shape[1])), counts])


def resampled_mean(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Mean of per-cluster values in each resample.

    Args:
        values: shape (C,) or (C, M); NaN values are left out of both sums.
        counts: shape (B, C) from a plan.

    Returns:
        Shape (B,) or (B, M); NaN where a resample holds no defined cluster.
    """
    defined = np.isfinite(values)
    total = counts @ np.where(defined, values, 0.0)
    weight = counts @ defined.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: FloatArray = total / weight
    return mean


def mean_of_defined(values: FloatArray, axis: int = 0) -> FloatArray:
    """Mean over one axis without NaN; NaN where nothing is defined."""
    defined = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = np.where(defined, values, 0.0).sum(axis) / defined.sum(axis)
    return mean
