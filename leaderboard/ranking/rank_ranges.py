"""From values and joint tests to ranks, rank ranges and tiers. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics.joint_tests import LEVEL, JointTests


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


class RankRange(NamedTuple):
    """Where one entry stands on a board, and where it may truly stand."""

    rank: int  # 1 + the number of entries with a strictly better value
    low: int  # 1 + the number of entries that are significantly better; 2 at least if not the best
    high: int  # Number of entries less those that are significantly worse


@dataclass(frozen=True)
class Ordering:
    """How M entries stand to each other on one slice."""

    ranges: tuple[RankRange | None, ...]  # rank and rank range; None for entries that take no part
    # shape (M,), share of the resamples in which the entry has the best value, ties shared out; NaN
    # for entries that take no part or have no resamples
    best_share: FloatArray
    tests: JointTests | None  # between each two entries; None where none were asked for
    # tier of each entry, from 1; None where it takes no part or was not tested
    tiers: tuple[int | None, ...]

    def of(self, order: NDArray[np.intp]) -> Ordering:
        """The same with its entries in another order; every one must be there."""
        return Ordering(
            ranges=tuple(self.ranges[i] for i in order),
            best_share=self.best_share[order],
            tests=None if self.tests is None else self.tests.at(order),
            tiers=tuple(self.tiers[i] for i in order),
        )

    @property
    def corrected(self) -> FloatArray:
        """P-values of all pairs together, shape (M, M); NaN where two were not tested."""
        n = len(self.ranges)
        return np.full((n, n), np.nan) if self.tests is None else self.tests.p_value

    @property
    def nbytes(self) -> int:
        """What its arrays take in memory."""
        return self.best_share.nbytes + (0 if self.tests is None else self.tests.nbytes)


def ordering(
    values: FloatArray,
    resamples: NDArray[np.floating],
    contributions: FloatArray | None,
    able: BoolArray,
    *,
    higher_is_better: bool = True,
    seed: int = 0,
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
    """
    able = able & np.isfinite(values)
    sign = 1.0 if higher_is_better else -1.0
    kept = sign * np.where(able, values, np.nan)
    best_share = best_shares(sign * resamples, able)
    # Without a single block nothing differs anywhere: that is no test, not p = 1.
    if contributions is None or not contributions.shape[1]:
        return Ordering(rank_ranges(kept), best_share, None, (None,) * len(values))
    shares = np.where(able[:, None], contributions, np.nan)
    tests = JointTests.of(shares, seed, higher_is_better=higher_is_better)
    return Ordering(rank_ranges(kept, tests), best_share, tests, tiers(kept, tests))


def rank_ranges(
    values: NDArray[np.floating], tests: JointTests | None = None
) -> tuple[RankRange | None, ...]:
    """Ranks of the entries of one board, with the ranges that its tests leave them.

    An entry that is significantly worse than the best has not the first rank, whoever the best is.

    Args:
        values: shape (M,), higher is better; NaN entries get no rank.
        tests: between each two of them. None: every rank is possible.

    Returns:
        One rank range per entry; None for entries with an undefined value.
    """
    n = len(values)
    if tests is None:
        return ranges_left(values, np.zeros((n, n), bool), np.zeros(n, bool))
    return ranges_left(values, tests.better, np.asarray(tests.p_best < LEVEL))


def ranges_left(
    values: NDArray[np.floating], better: BoolArray, not_best: BoolArray
) -> tuple[RankRange | None, ...]:
    """Ranks with the ranges that hold all true ranks at once, where no test is false.

    An entry stands behind those that are significantly better and before those that are significantly
    worse; every rank between is possible (Klein, Wright and Wieczorek 2020; Mogstad, Romano, Shaikh
    and Wilhelm 2024).

    Args:
        values: shape (M,), higher is better; NaN entries get no rank.
        better: shape (M, M), whether the row's entry is significantly better than the column's.
        not_best: shape (M,), whether somebody is better, whoever that is.
    """
    ranked = np.isfinite(values)
    n = int(np.count_nonzero(ranked))
    behind = np.maximum(better[ranked].sum(axis=0), not_best)
    before = better[:, ranked].sum(axis=1)
    return tuple(
        RankRange(1 + int(np.count_nonzero(values[ranked] > value)), 1 + int(low), n - int(high))
        if there
        else None
        for value, there, low, high in zip(values, ranked, behind, before, strict=True)
    )


def best_shares(resamples: NDArray[np.floating], able: BoolArray) -> FloatArray:
    """In what share of the resamples an entry has the highest value.

    No probability that it is the best: a leader that chance put there leads in most resamples.

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


def tiers(values: NDArray[np.floating], tests: JointTests) -> tuple[int | None, ...]:
    """Tiers of entries that the tests do not tell apart.

    The first tier ends before the first entry that is significantly worse than the best. Down the
    board, an entry opens a new tier if it differs significantly from any entry of the current one;
    else it belongs to that tier. So no two entries of a tier differ significantly (as the WMT metrics
    shared tasks assign ranks to significance clusters: Freitag et al. 2023). Equal values move
    together, so that the order in which they are given has no say.

    Args:
        values: shape (M,), higher is better; NaN takes no part.
        tests: between each two of them.

    Returns:
        Tier of each entry, 1 is the best. None for entries that take no part or were tested
        against nobody, unless they stand alone.
    """
    found: list[int | None] = [None] * len(values)
    order = sorted(np.flatnonzero(np.isfinite(values)), key=lambda i: -values[i])
    tested = [i for i in order if len(order) == 1 or np.isfinite(tests.p_value[i]).any()]
    differs = tests.better | tests.better.T
    tier = 0
    members: list[int] = []
    for _, equal in groupby(tested, key=lambda i: values[i]):
        places = [int(place) for place in equal]
        worse = tier == 1 and bool((tests.p_best[places] < LEVEL).any())
        if not members or worse or bool(differs[np.ix_(members, places)].any()):
            tier, members = tier + 1, []
        members += places
        for place in places:
            found[place] = tier
    return tuple(found)
