"""Agreement of rankings: Kendall's W of several judges, and model rankings over random seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, permutations
from statistics import fmean

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.correlation import kendall
from benchmarks.statistics.resampling import mean_of_defined

EXACT_ARRANGEMENTS = 20_000
"""Up to so many arrangements of the rankings all are looked at."""
DRAWN_ARRANGEMENTS = 9_999
"""Else so many are drawn."""
_SEED = 20_080
_CELLS_AT_ONCE = 2_000_000
_ROUNDING = 1e-9


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
        chi_square_p=float(scipy.stats.chi2.sf(chi_square, n - 1)),
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
    centred: FloatArray = scipy.stats.rankdata(scores, axis=-1) - (scores.shape[-1] + 1) / 2.0
    return centred


def _spread(ranks: FloatArray) -> FloatArray:
    """Squared rank sums, shape (...), of centred ranks (..., m, n)."""
    spread: FloatArray = (ranks.sum(axis=-2) ** 2).sum(axis=-1)
    return spread


def _greatest_spread(ranks: FloatArray) -> FloatArray:
    greatest: FloatArray = ranks.shape[-2] * (ranks**2).sum(axis=(-2, -1))
    return greatest


# Rankings of models with each of several random seeds.


@dataclass(frozen=True)
class SeedPair:
    """Agreement of the rankings with two seeds."""

    first: int  # position of one seed
    second: int  # position of the other
    tau: float  # Kendall's tau-b of the model scores; NaN where a seed ties all models
    swapped: int  # pairs of models that the two seeds order strictly and oppositely


@dataclass(frozen=True)
class SwappedPair:
    """Two models that some two seeds order strictly and oppositely."""

    first: int  # position of one model
    second: int  # position of the other
    first_higher: int  # seeds with which the first scores strictly higher
    second_higher: int  # seeds with which the second does
    tied: int  # seeds with which they score the same


@dataclass(frozen=True)
class SeedStability:
    """Stability of the order of M models over S seeds."""

    # whether every seed gives the same full ranking, ties included; None where there are fewer than
    # two seeds or two models to compare
    stable: bool | None
    # share of the pairs of seeds with the same full ranking, 0..1; NaN where nothing can be
    # compared
    identical_share: float
    pairs: tuple[SeedPair, ...]  # each two seeds
    # mean of their tau, -1..1; NaN where none is defined. A pair of which one seed ties all models
    # has none.
    tau_mean: float
    tau_min: float  # smallest of their tau
    swaps: tuple[SwappedPair, ...]  # the pairs of models that some two seeds order oppositely
    swapped: int  # how many these are; of
    n_model_pairs: int  # M (M - 1) / 2
    concordance: Concordance  # Kendall's W over all seeds, with its tests


@dataclass(frozen=True)
class ResampledStability:
    """The same in each of B resamples; NaN where a model has no score in a resample."""

    stable: FloatArray  # shape (B,), 1 where all seeds give one ranking, else 0
    identical_share: FloatArray  # shape (B,)
    tau_mean: FloatArray  # shape (B,)
    kendall_w: FloatArray  # shape (B,)
    swapped: FloatArray  # shape (B,), pairs of models


def competition_ranks(scores: ArrayLike, decimals: int | None = None) -> IntArray:
    """Rank of each score, the highest first: 1 + number of strictly greater ones.

    Equal scores share the better rank and the next rank is skipped: 1, 2, 2, 4.

    `scores` (n,), finite; `decimals`: scores that print alike with so many are equal (EvalMuse-40K,
    Table 10); None: as they are.
    Returns: shape (n,), ranks from 1.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"finite scores of shape (n,) are needed, not {values!r}")
    values = values if decimals is None else values.round(decimals)
    return np.asarray(scipy.stats.rankdata(-values, method="min"), np.intp)


def order_signs(scores: FloatArray, slack: float = 0.0) -> NDArray[np.int8]:
    """Order of each two of M models (..., M): 1, 0 or -1 for i < j, shape (..., M (M - 1) / 2).

    Two full rankings with ties are the same iff all of these are. `slack`, share of the largest size
    of the M up to which two scores are equal.
    """
    first, second = np.triu_indices(scores.shape[-1], 1)
    one, other = scores[..., first], scores[..., second]
    signs: NDArray[np.int8] = np.sign(one - other).astype(np.int8)
    if slack:
        largest = np.abs(scores).max(axis=-1, keepdims=True, initial=0.0)
        signs[np.abs(one - other) <= slack * largest] = 0
    return signs


def taus_between(values: ArrayLike) -> FloatArray:
    """Kendall's tau-b between each two of M rows over their n items, in each of many resamples.

    `values` (..., M, n); NaN where a row has none: two rows are compared on the items that both have.
    Values that differ by no more than rounding, as means of the same numbers do, are tied.
    Returns: shape (..., M, M); NaN where one of two rows is constant there.
    """
    table = np.asarray(values, np.float64)
    there = np.isfinite(table)
    first, second = np.triu_indices(table.shape[-1], 1)
    both = (there[..., first] & there[..., second]).astype(np.float32)
    signs = order_signs(np.where(there, table, 0.0), _ROUNDING).astype(np.float32) * both
    # Products of signs count pairs of items; single precision holds them.
    excess = (signs @ signs.swapaxes(-1, -2)).astype(np.float64)
    untied = ((signs**2) @ both.swapaxes(-1, -2)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        taus: FloatArray = excess / np.sqrt(untied * untied.swapaxes(-1, -2))
    return taus


def seed_stability(scores: ArrayLike) -> SeedStability:
    """Compare the rankings of the models with each seed.

    `scores` (S, M), finite: score of each model with each seed.
    """
    table = np.asarray(scores, np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("finite scores of shape (seeds, models) are needed")
    n_seeds, n_models = table.shape
    signs = order_signs(table)
    pairs = tuple(
        SeedPair(a, b, kendall(table[a], table[b]), int((signs[a] * signs[b] < 0).sum()))
        for a, b in combinations(range(n_seeds), 2)
    )
    same = [bool((signs[pair.first] == signs[pair.second]).all()) for pair in pairs]
    taus = [pair.tau for pair in pairs if math.isfinite(pair.tau)]
    swaps = _swaps(signs, n_models)
    comparable = n_seeds > 1 and n_models > 1
    return SeedStability(
        stable=all(same) if comparable else None,
        identical_share=fmean(same) if comparable else math.nan,
        pairs=pairs,
        tau_mean=fmean(taus) if taus else math.nan,
        tau_min=min(taus, default=math.nan),
        swaps=swaps,
        swapped=len(swaps),
        n_model_pairs=signs.shape[1],
        concordance=concordance(table if comparable else np.empty((0, n_models))),
    )


def resampled_stability(scores: FloatArray) -> ResampledStability:
    """Compare the rankings with each seed in every resample.

    `scores` (B, S, M), score of each model with each seed, S > 1 and M > 1; NaN where a resample
    holds none.
    """
    defined: BoolArray = np.all(np.isfinite(scores), axis=(1, 2))
    signs = order_signs(np.where(np.isfinite(scores), scores, 0.0))
    # Products of signs count concordant less discordant pairs; single precision holds them.
    products = signs.astype(np.float32) @ signs.astype(np.float32).swapaxes(1, 2)
    first, second = np.triu_indices(scores.shape[1], 1)
    untied = products.diagonal(axis1=1, axis2=2).astype(np.float64)
    excess = products[:, first, second].astype(np.float64)
    n_first, n_second = untied[:, first], untied[:, second]
    # All pairs that either seed orders are ordered alike by both: one ranking, ties included.
    same = (excess == n_first) & (excess == n_second)
    with np.errstate(invalid="ignore"):
        taus = excess / np.sqrt(n_first * n_second)
    swapped = ((signs > 0).any(axis=1) & (signs < 0).any(axis=1)).sum(axis=1)
    values = (same.all(axis=1), same.mean(axis=1), mean_of_defined(taus, axis=1))
    return ResampledStability(
        *(np.where(defined, found, np.nan) for found in (*values, kendall_w(scores), swapped))
    )


def _swaps(signs: NDArray[np.int8], n_models: int) -> tuple[SwappedPair, ...]:
    """Those of the pairs (i, j), i < j, whose signs (S, pairs) contradict each other."""
    above, below = (signs > 0).sum(axis=0), (signs < 0).sum(axis=0)
    found = zip(*np.triu_indices(n_models, 1), above, below, strict=True)
    return tuple(
        SwappedPair(int(i), int(j), int(up), int(down), len(signs) - int(up) - int(down))
        for i, j, up, down in found
        if up and down
    )
