"""Random patterns of signs, the same for whoever asks for them with one seed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray

AT_A_TIME = 1 << 10
"""Patterns made together; a block of them stays in the cache of the processor."""
_KEPT = 80
"""Blocks remembered: two boards' worth, of 250 KB each for 250 units."""


def sign_patterns(n_units: int, seed: int, begin: int, end: int) -> Iterator[FloatArray]:
    """Patterns begin..end-1 of random signs, in blocks of shape (n_units, k).

    Args:
        n_units: signs in a pattern.
        seed: of all patterns: pattern k is the same whatever is asked for.
        begin: first pattern, >= 0.
        end: one after the last.
    """
    for block in range(begin // AT_A_TIME, -(-end // AT_A_TIME)):
        signs = _block_of_signs(n_units, seed, block)
        offset = block * AT_A_TIME
        kept = signs[:, max(begin - offset, 0) : min(end - offset, AT_A_TIME)]
        yield kept.astype(np.float64)


@lru_cache(maxsize=_KEPT)
def _block_of_signs(n_units: int, seed: int, block: int) -> NDArray[np.int8]:
    """One block of patterns; every slice of a board needs the same ones (10 MB for 250 units)."""
    drawn = np.random.default_rng([seed, block]).bytes(n_units * AT_A_TIME // 8)
    flips: NDArray[np.uint8] = np.unpackbits(np.frombuffer(drawn, np.uint8))
    signs = 1 - 2 * flips.reshape(n_units, AT_A_TIME).astype(np.int8)
    signs.flags.writeable = False
    return signs
