"""From values and joint resamples to ranks and rank ranges. Pure functions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

MIN_CLUSTERS = 8
"""Below this many clusters a bootstrap says little: such a slice is shown without an order."""
MAX_MISSING = 0.02
"""An entry that lacks more than this share of a slice's scores is shown without a rank: else a
metric could choose the pairs it is ranked by."""


class RankRange(NamedTuple):
    """Where one entry stands on a board."""

    rank: int
    """1 + the number of entries with a strictly better value."""
    low: int
    """Best rank in 95 % of the resamples."""
    high: int
    """Worst rank in 95 % of the resamples."""


def rank_ranges(
    values: NDArray[np.float64], resamples: NDArray[np.floating], *, higher_is_better: bool = True
) -> list[RankRange | None]:
    """Ranks of the entries of one board with their 95 % ranges.

    Args:
        values: shape (M,), one value per entry; NaN entries get no rank.
        resamples: shape (M, B), the same values in resamples shared by all entries. Where an
            entry is undefined in a resample, it takes the last place in it; the others' places
            do not depend on that.
        higher_is_better: False where smaller values are better.

    Returns:
        One rank range per entry; None for entries with an undefined value. The range always
        holds the rank itself, and is the whole board for an entry without any resample.
    """
    sign = -1.0 if higher_is_better else 1.0
    ranked = np.isfinite(values)
    result: list[RankRange | None] = [None] * len(values)
    if not ranked.any():
        return result
    ranks = rankdata(sign * values[ranked], method="min").astype(int)
    draws = sign * resamples[ranked]
    defined = np.isfinite(draws)
    drawn = rankdata(np.where(defined, draws, np.inf), method="min", axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=1, method="nearest").astype(int)
    unknown = ~defined.any(axis=1)
    low[unknown], high[unknown] = 1, len(ranks)
    for place, rank, best, worst in zip(np.flatnonzero(ranked), ranks, low, high, strict=True):
        result[place] = RankRange(int(rank), min(int(best), int(rank)), max(int(worst), int(rank)))
    return result
