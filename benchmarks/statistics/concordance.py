"""Kendall's coefficient of concordance W: agreement of several judges on a ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from benchmarks.arrays import FloatArray

EXACT_ARRANGEMENTS = 20_000
"""Up to so many arrangements of the rankings all are looked at."""
DRAWN_ARRANGEMENTS = 9_999
"""Else so many are drawn."""
_SEED = 20_080
_CELLS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Concordance:
    """W and its tests. Null hypothesis: each judge orders the items at random.

    A small p-value says that the judges agree on something, not that they agree on the ranking:
    with two clear leaders among ten models it is small however the other eight are mixed.
    """

    w: float  # Kendall's W, 0..1; NaN where undefined
    chi_square: float  # Friedman's statistic m (n - 1) W
    chi_square_p: float  # its p-value with n - 1 degrees of freedom; rough below about seven items
    # share of the arrangements, each judge's ranks in any order, with a W at least as large; exact
    # up to `EXACT_ARRANGEMENTS` of them, else of draws from a fixed seed with the observed one
    # among them
    permutation_p: float
    exact: bool  # whether all arrangements were looked at


def kendall_w(scores: ArrayLike) -> FloatArray:
    """Kendall's W (Kendall and Babington Smith 1939), corrected for ties.

    The usual 12 S / (m^2 (n^3 - n) - m T), with average ranks, S the squared deviations of the
    rank sums and T the sum of t^3 - t over all runs of t ties, is S over m times the squared
    deviations of all judges' ranks, which needs no look at the runs.

    `scores` (..., m, n), finite: m judges (seeds) score n items (models).
    Returns: shape (...): 1 for one common ranking, 0 for none; NaN where every judge ties
    everything, or there are fewer than two items or no judges.
    """
    ranks = _centred_ranks(np.asarray(scores, np.float64))
    with np.errstate(invalid="ignore"):
        w: FloatArray = _spread(ranks) / _greatest_spread(ranks)
    return w


def concordance(scores: ArrayLike) -> Concordance:
    """W with its chi-square and permutation tests.

    `scores` (m, n), finite: m judges (seeds) score n items (models).
    """
    table = np.asarray(scores, np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("finite scores of shape (judges, items) are needed")
    m, n = table.shape
    w = float(kendall_w(table))
    if math.isnan(w):
        return Concordance(math.nan, math.nan, math.nan, math.nan, exact=False)
    ranks = _centred_ranks(table)
    exact = math.factorial(min(n, 20)) ** (m - 1) <= EXACT_ARRANGEMENTS
    chi_square = m * (n - 1) * w
    return Concordance(
        w=w,
        chi_square=chi_square,
        chi_square_p=float(stats.chi2.sf(chi_square, n - 1)),
        permutation_p=_share_of_all(ranks) if exact else _share_of_drawn(ranks),
        exact=exact,
    )


def _share_of_all(ranks: FloatArray) -> float:
    """The first judge's order may stay: only the others' relative to it matter."""
    sums = ranks[:1]
    orders = np.array(list(permutations(range(ranks.shape[1]))), np.intp)
    for judge in ranks[1:]:
        sums = (sums[:, None, :] + judge[orders]).reshape(-1, ranks.shape[1])
    # Ranks are halves, so equal spreads are equal to the last bit.
    return float(((sums**2).sum(axis=1) >= _spread(ranks)).mean())


def _share_of_drawn(ranks: FloatArray) -> float:
    rng = np.random.default_rng(_SEED)
    at_once = max(1, _CELLS_AT_ONCE // ranks.size)
    hits = 1
    for start in range(0, DRAWN_ARRANGEMENTS, at_once):
        size = min(at_once, DRAWN_ARRANGEMENTS - start)
        drawn = rng.permuted(np.broadcast_to(ranks, (size, *ranks.shape)), axis=2)
        hits += int((_spread(drawn) >= _spread(ranks)).sum())
    return hits / (DRAWN_ARRANGEMENTS + 1)


def _centred_ranks(scores: FloatArray) -> FloatArray:
    """Average ranks less their mean: multiples of one half, exact."""
    if scores.size == 0:
        return np.zeros(scores.shape)
    centred: FloatArray = stats.rankdata(scores, axis=-1) - (scores.shape[-1] + 1) / 2.0
    return centred


def _spread(ranks: FloatArray) -> FloatArray:
    """Squared rank sums, shape (...), of centred ranks (..., m, n)."""
    spread: FloatArray = (ranks.sum(axis=-2) ** 2).sum(axis=-1)
    return spread


def _greatest_spread(ranks: FloatArray) -> FloatArray:
    greatest: FloatArray = ranks.shape[-2] * (ranks**2).sum(axis=(-2, -1))
    return greatest
