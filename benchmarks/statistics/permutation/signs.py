"""Which clusters swap their two metrics: signs drawn once for all pairs, or every pattern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray

ENUMERATED = 12
"""Up to so many clusters every pattern is looked at: 2,048 of them by symmetry."""

BLOCK = 64
"""Draws at a time: a block of signs stays in the cache, a whole matrix of them does not."""

_TOLERANCE = 1e-9  # relative: as large but for rounding is as large
_ROUNDING = 1e-12  # absolute, of a difference of correlations

_CHUNK = 2048  # clusters whose signs are widened at a time (1 MiB of float64)
_FEW = 4  # rows that are multiplied faster one by one than as a matrix

Signs = NDArray[np.int8]
Number = TypeVar("Number", np.float32, np.float64)


@dataclass(frozen=True)
class SwapSigns:
    """Signs +1 (stay) and -1 (swap) of C clusters in K patterns.

    Attributes:
        n_clusters: number C, at least 1.
        n_draws: patterns to draw where C is too large to enumerate.
        seed: seed of the generator.
    """

    n_clusters: int
    n_draws: int
    seed: int

    def __post_init__(self) -> None:
        if self.n_draws < 1:
            raise ValueError(f"at least 1 draw is needed, not {self.n_draws}")

    @property
    def exact(self) -> bool:
        """Whether every pattern is looked at."""
        return self.n_clusters <= ENUMERATED

    @property
    def n_patterns(self) -> int:
        """Number K of patterns; of two opposite ones, enumeration takes one."""
        return 1 << max(self.n_clusters - 1, 0) if self.exact else self.n_draws

    def blocks(self) -> Iterator[Signs]:
        """All patterns, the same ones each time.

        Yields:
            Shape (C, k), k <= 64.
        """
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.n_patterns, BLOCK):
            width = min(BLOCK, self.n_patterns - start)
            if self.exact:
                patterns = np.arange(start, start + width, dtype=np.int64)
                bits = patterns[None, :] >> np.arange(self.n_clusters)[:, None] & 1
                signs = bits.astype(np.int8)
            else:
                words = rng.integers(0, 1 << 64, self.n_clusters, np.uint64, endpoint=False)
                swaps = np.unpackbits(words.view(np.uint8)).reshape(-1, BLOCK)
                signs = swaps[:, :width].view(np.int8)
            signs *= -2
            signs += 1
            yield signs

    def p_values(self, hits: IntArray) -> FloatArray:
        """Shares of patterns at least as extreme as the sample.

        The sample is one of the enumerated patterns; to drawn ones it is added (Phipson and
        Smyth 2010, equation 2), so that no p-value is 0.
        """
        if self.exact:
            return np.asarray(hits / self.n_patterns, np.float64)
        return np.asarray((1 + hits) / (1 + self.n_patterns), np.float64)


def signed_sums(values: NDArray[Number], signs: Signs) -> NDArray[Number]:
    """Products with the signs, in the precision of the values.

    Args:
        values: shape (R, C).
        signs: shape (C, k).

    Returns:
        Shape (R, k).
    """
    sums = np.zeros((len(values), signs.shape[1]), values.dtype)
    # Widened signs of some clusters at a time stay in the cache.
    room = np.empty((min(_CHUNK, len(signs)), signs.shape[1]), values.dtype)
    for start in range(0, len(signs), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        wide = room[: len(signs) - start]
        np.copyto(wide, signs[chunk])
        if len(values) > _FEW:
            sums += values[:, chunk] @ wide
        else:
            for row, value in zip(sums, values, strict=True):
                np.add(row, value[chunk] @ wide, out=row)
    return sums


def threshold(observed: FloatArray) -> FloatArray:
    """From which absolute value on a difference is as extreme as the observed one.

    Equal differences come out of sums in another order with other roundings, so a little less
    counts as equal.
    """
    bound: FloatArray = np.abs(observed) * (1.0 - _TOLERANCE) - _ROUNDING
    return bound
