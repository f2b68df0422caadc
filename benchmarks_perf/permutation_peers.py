"""Permutation tests of two metrics as the papers describe them, draw by draw.

The steps are those of the evaluator mt-metrics-eval, written out here with scipy and numpy, so that
there is something to compare with where that is not installed: see `mt_metrics_eval_peer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.permutation.pair_nulls import Statistic

SCIPY: dict[Statistic, Callable[..., Any]] = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall": stats.kendalltau,
}

PlainTest = Callable[[int], float]
"""The two-sided p-value from so many draws."""


def plain_correlation_test(
    statistic: Statistic, scores: FloatArray, gold: FloatArray, width: int
) -> PlainTest:
    """PERM-BOTH of two metrics as the paper describes it."""
    z = stats.zscore(scores)
    parts = gold.reshape(-1, width)

    def value(hybrid: FloatArray) -> float:
        pairs = zip(hybrid.reshape(-1, width), parts, strict=True)
        return float(np.mean([SCIPY[statistic](x, y).statistic for x, y in pairs]))

    def p_value(n_draws: int) -> float:
        rng = np.random.default_rng(1)
        observed, hits = abs(value(z[:, 0]) - value(z[:, 1])), 0
        for _ in range(n_draws):
            stay = rng.integers(0, 2, gold.size, np.int8).astype(bool)
            one, other = np.where(stay, z[:, 0], z[:, 1]), np.where(stay, z[:, 1], z[:, 0])
            hits += abs(value(one) - value(other)) >= observed * (1 - 1e-9)
        return (1 + hits) / (1 + n_draws)

    return p_value


def plain_pair_swaps(
    scores: FloatArray, gold: FloatArray, limits: list[float], width: int
) -> PlainTest:
    """Pair swaps at given thresholds: comparisons swap, and all kinds are counted by prompt."""
    parts = [slice(k, k + width) for k in range(0, gold.size, width)]
    upper = np.triu_indices(width, 1)

    def signs(values: FloatArray, limit: float) -> list[NDArray[np.int8]]:
        differences = [np.subtract.outer(values[rows], values[rows])[upper] for rows in parts]
        return [(np.sign(d) * (np.abs(d) > limit)).astype(np.int8) for d in differences]

    ordered = signs(gold, 0.0)
    first, second = (signs(column, limit) for column, limit in zip(scores.T, limits, strict=True))

    def difference(stay: list[NDArray[np.bool_]]) -> float:
        total = 0.0
        for order, a, b, kept in zip(ordered, first, second, stay, strict=True):
            one, other = np.where(kept, a, b), np.where(kept, b, a)
            total += _accuracy(one, order) - _accuracy(other, order)
        return abs(total)

    def p_value(n_draws: int) -> float:
        rng = np.random.default_rng(1)
        observed, hits = difference([np.ones(upper[0].size, np.bool_)] * len(parts)), 0
        for _ in range(n_draws):
            stay = [rng.integers(0, 2, upper[0].size, np.int8).astype(bool) for _ in parts]
            hits += difference(stay) >= observed * (1 - 1e-9)
        return (1 + hits) / (1 + n_draws)

    return p_value


def _accuracy(found: NDArray[np.int8], order: NDArray[np.int8]) -> float:
    """From the five counts of pairs that any variant of tau is made of."""
    concordant = np.sum((found > 0) & (order > 0)) + np.sum((found < 0) & (order < 0))
    discordant = np.sum((found > 0) & (order < 0)) + np.sum((found < 0) & (order > 0))
    both = np.sum((found == 0) & (order == 0))
    metric_only = np.sum((found == 0) & (order != 0))
    gold_only = np.sum((found != 0) & (order == 0))
    return float((concordant + both) / (concordant + discordant + both + metric_only + gold_only))
