"""What a permutation test of all pairs of metrics gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class PermutationTests:
    """Two-sided tests of all pairs of M metrics.

    Attributes:
        differences: shape (M, M), value of metric i less that of metric j; NaN where undefined.
        p_values: shape (M, M), symmetric, in 0..1; 1 on the diagonal; NaN where undefined.
        n_draws: swap patterns looked at; where all were enumerated, how many there are; 0 where
            the distribution has a closed form.
        exact: whether the p-values are exact instead of drawn.
        reasons: why the pair (i, j), i <= j, has no value.
    """

    differences: FloatArray
    p_values: FloatArray
    n_draws: int
    exact: bool
    reasons: Mapping[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True)
class PairTable:
    """Results of pairs of M metrics, filled in one by one."""

    differences: FloatArray
    p_values: FloatArray
    reasons: dict[tuple[int, int], str]

    @classmethod
    def of(cls, n_metrics: int) -> PairTable:
        """All pairs, without values yet."""
        differences, p_values = np.full((2, n_metrics, n_metrics), np.nan)
        return cls(differences, p_values, {})

    def fill(self, first: IntArray, second: IntArray, delta: FloatArray, p: FloatArray) -> None:
        """Set the results of some pairs, and of the same pairs the other way round."""
        self.differences[first, second] = delta
        self.differences[second, first] = 0.0 - delta  # no -0.0 on the diagonal
        self.p_values[first, second] = self.p_values[second, first] = p

    def refuse(self, first: int, second: int, reason: str) -> None:
        """Say why a pair has no values."""
        self.reasons[first, second] = reason

    def tests(self, n_draws: int, exact: bool) -> PermutationTests:
        """The finished table of `n_draws` swap patterns; `exact` where these are all there are."""
        return PermutationTests(self.differences, self.p_values, n_draws, exact, self.reasons)
