"""Agreement of model rankings over random seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.concordance import Concordance, concordance, kendall_w
from benchmarks.statistics.correlation import kendall
from benchmarks.statistics.resampling import mean_of_defined


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
    return np.asarray(stats.rankdata(-values, method="min"), np.intp)


def order_signs(scores: FloatArray) -> NDArray[np.int8]:
    """Order of each two of M models (..., M): 1, 0 or -1 for i < j, shape (..., M (M - 1) / 2).

    Two full rankings with ties are the same iff all of these are.
    """
    first, second = np.triu_indices(scores.shape[-1], 1)
    signs: NDArray[np.int8] = np.sign(scores[..., first] - scores[..., second]).astype(np.int8)
    return signs


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
