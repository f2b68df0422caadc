"""Resampling by cluster: one plan per benchmark revision, shared by every metric and measure.

Because all metrics meet the same resamples, every comparison between two of them is paired, and
whoever knows the seed can repeat each interval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

DEFAULT_RESAMPLES = 1000


@dataclass(frozen=True)
class ResamplingPlan:
    """How often each cluster is drawn in each bootstrap resample.

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
        digest = hashlib.sha256(f"{benchmark}@{revision}".encode()).digest()
        return cls(tuple(clusters), int.from_bytes(digest[:4], "big"), n_resamples)

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Shape (B, C): multiplicity of cluster c in resample b; each row sums to C."""
        rng = np.random.default_rng(self.seed)
        n = len(self.clusters)
        if n == 0:
            return np.zeros((self.n_resamples, 0))
        return rng.multinomial(n, np.full(n, 1.0 / n), size=self.n_resamples).astype(np.float64)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each cluster id in `clusters`."""
        return {cluster: i for i, cluster in enumerate(self.clusters)}

    def counts_of(self, clusters: Sequence[str]) -> NDArray[np.float64]:
        """Shape (B, len(clusters)): the columns of `counts` for these ids (repeats allowed).

        With one id per item this is the item weight of every resample.

        Raises:
            KeyError: an id is not in the plan.
        """
        return self.counts[:, [self.index[c] for c in clusters]]


def resampled_mean(values: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
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
        mean: NDArray[np.float64] = total / weight
    return mean
