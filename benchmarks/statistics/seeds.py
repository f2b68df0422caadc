"""Do the models keep their order when only the random seed changes?

Re-Thinking (Zhang and Wan 2025, arXiv:2506.08480) calls a metric stable iff the full ranking of
the models is the same with every seed. How far it is from that say Kendall's tau between two
seeds, the number of swapped pairs, and Kendall's W over all seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.correlation import kendall


@dataclass(frozen=True)
class SeedPair:
    """Agreement of the rankings with two seeds.

    Attributes:
        first: position of one seed.
        second: position of the other.
        tau: Kendall's tau-b of the model scores; NaN where a seed ties all models.
        swapped: pairs of models that the two seeds order strictly and oppositely.
    """

    first: int
    second: int
    tau: float
    swapped: int


@dataclass(frozen=True)
class SeedStability:
    """How the order of M models holds over S seeds.

    Attributes:
        stable: whether every seed gives the same full ranking, ties included; None where there
            are fewer than two seeds or two models to compare.
        pairs: each two seeds.
        swapped: pairs of models that some two seeds order oppositely; of
        n_model_pairs: M (M - 1) / 2.
        kendall_w: Kendall's coefficient of concordance, 0..1, corrected for ties; NaN where
            undefined.
    """

    stable: bool | None
    pairs: tuple[SeedPair, ...]
    swapped: int
    n_model_pairs: int
    kendall_w: float


def competition_ranks(scores: ArrayLike, decimals: int | None = None) -> IntArray:
    """Rank of each score, the highest first: 1 + number of strictly greater ones.

    Equal scores share the better rank and the next rank is skipped: 1, 2, 2, 4.

    Args:
        scores: shape (n,), finite.
        decimals: scores that print alike with so many are equal (EvalMuse-40K, Table 10); None:
            as they are.

    Returns:
        Shape (n,), ranks from 1.

    Raises:
        ValueError: a score is not finite or the shape is another.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"finite scores of shape (n,) are needed, not {values!r}")
    values = values if decimals is None else values.round(decimals)
    return np.asarray(stats.rankdata(-values, method="min"), np.intp)


def order_signs(scores: FloatArray) -> NDArray[np.int8]:
    """Which of each two models scores higher.

    Args:
        scores: shape (..., M).

    Returns:
        Shape (..., M (M - 1) / 2): 1, 0 or -1 for models i < j. Two full rankings with ties are
        the same iff all of these are.
    """
    first, second = np.triu_indices(scores.shape[-1], 1)
    signs: NDArray[np.int8] = np.sign(scores[..., first] - scores[..., second]).astype(np.int8)
    return signs


def seed_stability(scores: ArrayLike) -> SeedStability:
    """Compare the rankings of the models with each seed.

    Args:
        scores: shape (S, M), finite: score of each model with each seed.

    Raises:
        ValueError: a score is not finite or the shape is another.
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
    comparable = n_seeds > 1 and n_models > 1
    reversed_somewhere = (signs > 0).any(axis=0) & (signs < 0).any(axis=0)
    return SeedStability(
        stable=bool((signs == signs[0]).all()) if comparable else None,
        pairs=pairs,
        swapped=int(reversed_somewhere.sum()),
        n_model_pairs=signs.shape[1],
        kendall_w=kendall_w(table) if comparable else math.nan,
    )


def kendall_w(scores: ArrayLike) -> float:
    """Kendall's coefficient of concordance W (Kendall and Babington Smith 1939), with ties.

    Args:
        scores: shape (m, n): m judges (seeds) score n items (models).

    Returns:
        12 S / (m^2 (n^3 - n) - m T) with average ranks, S the squared deviations of the rank sums
        and T the sum of t^3 - t over all runs of t ties: 1 for one common ranking, 0 for none;
        NaN where every judge ties everything or n < 2.
    """
    table = np.asarray(scores, np.float64)
    m, n = table.shape
    ranks = stats.rankdata(table, axis=1)
    ties = sum(
        float((counts.astype(np.float64) ** 3 - counts).sum())
        for counts in (np.unique(row, return_counts=True)[1] for row in table)
    )
    spread = m * (m * (n**3 - n) - ties)
    if spread == 0:
        return math.nan
    sums = ranks.sum(axis=0)
    return float(12.0 * ((sums - sums.mean()) ** 2).sum() / spread)
