"""From values and joint resamples to ranks, rank ranges and tiers. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics.multiplicity import holm_of_pairs
from benchmarks.statistics.sign_flips import FlipTests, flip_tests


class DrawRanks(NamedTuple):
    """Ranks of M values in each of D draws, the smallest value first; shape (M, D) each."""

    low: NDArray[np.int32]  # 1 + the number of strictly smaller values
    high: NDArray[np.int32]
    """The number of values that are not larger; greater than `low` where values are tied."""


def draw_ranks(values: NDArray[np.floating]) -> DrawRanks:
    """Rank the values of each draw.

    `low` equals `scipy.stats.rankdata(values, "min", axis=0)`, and `high` its "max". One sort per
    draw on contiguous memory, and ties are looked for only where there are any.

    Args:
        values: shape (M, D), without NaN; infinite values are ranked, and tied with their like.
    """
    rows = np.ascontiguousarray(values.T)
    n = rows.shape[1]
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    places = np.broadcast_to(np.arange(1, n + 1, dtype=np.int32), rows.shape)
    tied = ordered[:, 1:] == ordered[:, :-1]
    low = _placed(places, order)
    if not tied.any():
        return DrawRanks(low, low)
    first, last = places.copy(), places.copy()
    first[:, 1:][tied] = 0
    last[:, :-1][tied] = n + 1
    np.maximum.accumulate(first, axis=1, out=first)
    np.minimum.accumulate(last[:, ::-1], axis=1, out=last[:, ::-1])
    return DrawRanks(_placed(first, order), _placed(last, order))


def _placed(in_order: NDArray[np.int32], order: NDArray[np.intp]) -> NDArray[np.int32]:
    """What belongs to the k-th smallest value of a draw, at the place of that value."""
    starts = order.shape[1] * np.arange(len(order), dtype=np.intp)
    found = np.empty(order.size, np.int32)
    # Places in the flat array: several times faster than `np.put_along_axis`.
    found[(order + starts[:, None]).ravel()] = in_order.ravel()
    # Contiguous again: what follows looks along the draws of one value.
    return np.ascontiguousarray(found.reshape(order.shape).T)


MIN_CLUSTERS = 8
"""Below this many clusters a bootstrap says little: such a slice is shown without an order."""
MAX_MISSING = 0.02
"""An entry that lacks more than this share of a slice's scores is shown without a rank: else a
metric could choose the pairs it is ranked by."""
LEVEL = 0.05  # Of the family of all tests on a board, after Holm's correction


class RankRange(NamedTuple):
    """Where one entry stands on a board."""

    rank: int  # 1 + the number of entries with a strictly better value
    low: int  # Best rank in 95 % of the resamples
    high: int  # Worst rank in 95 % of the resamples


@dataclass(frozen=True)
class Ordering:
    """How M entries stand to each other on one slice."""

    ranges: tuple[RankRange | None, ...]  # rank and rank range; None for entries that take no part
    # shape (M,), share of the resamples in which the entry is best, ties shared out; NaN
    # for entries that take no part or have no resamples
    p_best: FloatArray
    # tests between each two entries, shape (M, M) each; None where none were asked for
    tests: FlipTests | None
    # shape (M, M), their p-values after Holm's correction over the pairs that take part;
    # NaN elsewhere
    corrected: FloatArray
    # tier of each entry, from 1; None where it takes no part or was not tested
    tiers: tuple[int | None, ...]

    def of(self, order: NDArray[np.intp]) -> Ordering:
        """The same with its entries in another order; every one must be there."""
        square = np.ix_(order, order)
        return Ordering(
            ranges=tuple(self.ranges[i] for i in order),
            p_best=self.p_best[order],
            tests=None if self.tests is None else self.tests.of(order),
            corrected=self.corrected[square],
            tiers=tuple(self.tiers[i] for i in order),
        )

    @property
    def nbytes(self) -> int:
        """What its arrays take in memory."""
        tests = 0 if self.tests is None else self.tests.nbytes
        return tests + self.corrected.nbytes + self.p_best.nbytes


def ordering(
    values: FloatArray,
    resamples: NDArray[np.floating],
    contributions: FloatArray | None,
    able: BoolArray,
    *,
    higher_is_better: bool = True,
    seed: int = 0,
    tests: FlipTests | None = None,
) -> Ordering:
    """Rank the entries of a slice, or of any selection of them.

    Args:
        values: shape (M,), one value per entry.
        resamples: shape (M, B), the same values in resamples shared by all entries.
        contributions: shape (M, G), see `statistics.influence`; rows of NaN are not tested. None
            or no blocks (G = 0): no tests at all.
        able: shape (M,), entries that may have a rank; those with an undefined value get none.
        higher_is_better: False where smaller values are better.
        seed: of the tests.
        tests: of the same entries, where they are known already: a pair's test depends on that
            pair and the seed alone, so those of a larger board hold in any selection of it.
    """
    able = able & np.isfinite(values)
    sign = 1.0 if higher_is_better else -1.0
    kept = np.where(able, values, np.nan)
    ranges = tuple(rank_ranges(kept, resamples, higher_is_better=higher_is_better))
    p_best = chances_to_be_best(sign * resamples, able)
    n = len(values)
    nothing = np.full((n, n), np.nan)
    # Without a single block nothing differs anywhere: that is no test, not p = 1.
    if contributions is None or not contributions.shape[1]:
        return Ordering(ranges, p_best, None, nothing, (None,) * n)
    if tests is None:
        tests = flip_tests(np.where(able[:, None], contributions, np.nan), seed)
    corrected = holm_of_pairs(tests.p_value)
    return Ordering(ranges, p_best, tests, corrected, tiers(sign * kept, corrected))


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
    ranks = draw_ranks(sign * values[ranked, None]).low[:, 0]
    draws = sign * resamples[ranked]
    defined = np.isfinite(draws)
    drawn = draw_ranks(np.where(defined, draws, np.inf)).low
    unknown = ~defined.any(axis=1)
    low, high = np.ones_like(ranks), np.full_like(ranks, len(ranks))
    if drawn.shape[1]:
        # The places that `np.quantile(..., method="nearest")` takes; sorting whole numbers is
        # faster than partitioning them.
        ends = np.quantile(np.arange(drawn.shape[1]), [0.025, 0.975], method="nearest")
        found = np.sort(drawn, axis=1)[:, ends]
        low[~unknown], high[~unknown] = found[~unknown].T
    for place, rank, best, worst in zip(np.flatnonzero(ranked), ranks, low, high, strict=True):
        result[place] = RankRange(int(rank), min(int(best), int(rank)), max(int(worst), int(rank)))
    return result


def chances_to_be_best(resamples: NDArray[np.floating], able: BoolArray) -> FloatArray:
    """P(best): in what share of the resamples an entry has the highest value.

    Args:
        resamples: shape (M, B), higher is better; NaN is never best.
        able: shape (M,), entries that take part.

    Returns:
        Shape (M,); equal best values share a resample. NaN for entries that take no part or are
        undefined in every resample; the others add up to 1.
    """
    found = np.full(len(resamples), np.nan)
    taking_part = np.flatnonzero(able & np.isfinite(resamples).any(axis=1))
    if not taking_part.size:
        return found
    draws = np.where(np.isfinite(resamples[taking_part]), resamples[taking_part], -np.inf)
    best = draws.max(axis=0)
    first = (draws == best) & np.isfinite(best)
    decided = np.isfinite(best)
    found[taking_part] = (first[:, decided] / first[:, decided].sum(axis=0)).mean(axis=1)
    return found


def tiers(
    values: FloatArray, corrected: FloatArray, level: float = LEVEL
) -> tuple[int | None, ...]:
    """Tiers of entries that the tests do not tell apart.

    Down the board, an entry opens a new tier if it differs significantly from any entry of the
    current one; else it belongs to that tier. So no two entries of a tier differ significantly (as
    the WMT metrics shared tasks assign ranks to significance clusters: Freitag et al. 2023). Equal
    values move together, so that the order in which they are given has no say.

    Args:
        values: shape (M,), higher is better; NaN takes no part.
        corrected: shape (M, M), corrected p-values; NaN where two entries were not tested.
        level: below which they differ.

    Returns:
        Tier of each entry, 1 is the best. None for entries that take no part or were tested
        against nobody, unless they stand alone.
    """
    found: list[int | None] = [None] * len(values)
    order = sorted(np.flatnonzero(np.isfinite(values)), key=lambda i: -values[i])
    tested = [i for i in order if len(order) == 1 or np.isfinite(corrected[i]).any()]
    tier = 0
    members: list[int] = []
    for _, equal in groupby(tested, key=lambda i: values[i]):
        places = [int(place) for place in equal]
        if not members or bool((corrected[np.ix_(members, places)] < level).any()):
            tier, members = tier + 1, []
        members += places
        for place in places:
            found[place] = tier
    return tuple(found)
