"""Lists of all pairs of items within groups, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.arrays import IntArray

_PAIRS = 1 << 20  # pairs that are listed at a time (8 MiB a side)


def pairs_within(bounds: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of different positions in the same group, each once.

    Args:
        bounds: shape (G + 1,), ascending: group g holds the positions bounds[g] to
            bounds[g + 1] - 1.

    Yields:
        Lower and higher positions; the pairs of one lower position follow each other.
    """
    ends = np.repeat(bounds[1:], np.diff(bounds))
    partners = ends - np.arange(bounds[0], bounds[0] + ends.size) - 1
    done = np.cumsum(partners)
    first = 0
    while first < ends.size:
        before = int(done[first - 1]) if first else 0
        last = max(int(np.searchsorted(done, before + _PAIRS, side="right")), first + 1)
        own = partners[first:last]
        low = np.repeat(np.arange(bounds[0] + first, bounds[0] + last), own)
        offset = np.arange(low.size) - np.repeat(done[first:last] - own - before, own)
        if low.size:
            yield low, low + 1 + offset
        first = last
