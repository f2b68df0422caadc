"""Orders of models: how far a metric's agrees with people's, in the sample and in resamples.

Resamples draw prompts, which move the values of the models, or the models themselves, whose
multiplicities are weights, shape (B, M). Copies of one model make no pair.

Soft pairwise accuracy: Thompson, Mathur, Deutsch, Khayrallah: Improving Statistical Significance in
Human Evaluation of Automatic Metrics via Soft Pairwise Accuracy, WMT 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.detection import ratio
from benchmarks.statistics.sign_flips import sign_patterns

MOST_ENUMERATED = 16
"""With so many prompts, or fewer, every pattern of signs is looked at."""
DRAWN_PATTERNS = 4096
"""Else so many are drawn."""
_SLACK = 1e-9
"""Share of the sum of all sizes within which two sums are equal but for rounding."""


def pairs_of(n_models: int) -> tuple[IntArray, IntArray]:
    """Each two models once, the earlier one first: shape (K,) each."""
    first, second = np.triu_indices(n_models, 1)
    return first, second


def differences(values: FloatArray) -> FloatArray:
    """Of each two models on each prompt, shape (P, K), from values of shape (P, M).

    0 where a model has no value: such a prompt says nothing about the two.
    """
    first, second = pairs_of(values.shape[1])
    return np.nan_to_num(values[:, first] - values[:, second], nan=0.0)


def flip_p_values(found: FloatArray, seed: int) -> FloatArray:
    """One-sided p-values that the first of two models is the better one, shape (K,).

    Were both alike, the difference on a prompt could as well have had the other sign. The p-value is
    the share of sign patterns, one sign for each prompt and the same for all pairs, whose sum is at
    least the observed one. All patterns of up to `MOST_ENUMERATED` prompts, else `DRAWN_PATTERNS`
    from a seed. In double precision: the released code adds in single precision, which misses sums
    that are equal.

    `found`: differences, shape (P, K).
    """
    n = len(found)
    observed = found.sum(axis=0) - _SLACK * np.abs(found).sum(axis=0)
    hits, total = np.zeros(found.shape[1]), 0
    every = n <= MOST_ENUMERATED
    for signs in _all_patterns(n) if every else sign_patterns(n, seed, 0, DRAWN_PATTERNS):
        hits += (signs.T @ found >= observed).sum(axis=0)
        total += signs.shape[1]
    return np.asarray(hits / total, np.float64)


def _all_patterns(n: int) -> Iterator[FloatArray]:
    """Every pattern of n signs, in blocks of shape (n, k)."""
    codes = np.arange(1 << n)
    for part in np.array_split(codes, max(1, codes.size >> 12)):
        bits = (part[None, :] >> np.arange(n)[:, None]) & 1
        yield (1 - 2 * bits).astype(np.float64)


def normal_p_values(found: FloatArray, counts: FloatArray) -> FloatArray:
    """The same p-values from the normal distribution that the sums approach, in each resample.

    A prompt that is drawn twice is two prompts, each with a sign of its own. `found` (P, K); `counts`
    (B, P). Returns: shape (B, K); 1 where nothing differs, since then all sums are equal.
    """
    totals, squares = counts @ found, counts @ found**2
    z = np.where(squares > 0, ratio(totals, np.sqrt(squares)), -np.inf)
    return np.asarray(scipy.special.ndtr(-z), np.float64)


def soft_pairwise_accuracy(human: FloatArray, metric: FloatArray) -> FloatArray:
    """One less the mean distance of two sets of p-values, shape (..., K) each; shape (...)."""
    return np.asarray(1.0 - np.abs(human - metric).mean(axis=-1), np.float64)


@dataclass(frozen=True)
class PValues:
    """One-sided p-values of each two models by one judge, in the sample and in draws of prompts."""

    exact: FloatArray  # shape (K,), by sign flips, in the sample
    normal: FloatArray  # shape (1 + B, K), by the normal distribution; the sample first

    @classmethod
    def of(cls, by_prompt: FloatArray, draws: FloatArray, seed: int) -> Self:
        """From values of shape (P, M) and draws of the prompts (1 + B, P), each once in the first."""
        found = differences(by_prompt)
        return cls(flip_p_values(found, seed), normal_p_values(found, draws))

    def soft_accuracy(self, other: Self) -> FloatArray:
        """Soft pairwise accuracy of two judges in the sample and in each resample, shape (1 + B,).

        Of the sample by sign flips; resamples move around it as those by the normal distribution do.
        """
        value = soft_pairwise_accuracy(self.exact, other.exact)
        drawn = soft_pairwise_accuracy(self.normal, other.normal)
        moved: FloatArray = np.clip(drawn + (value - drawn[0]), 0.0, 1.0)
        return moved


def orders(values: FloatArray) -> FloatArray:
    """Signs of the differences between each two models, shape (B, K), from values of shape (B, M)."""
    first, second = pairs_of(values.shape[1])
    found = values[:, first] - values[:, second]
    size = np.maximum(np.abs(values[:, first]), np.abs(values[:, second]))
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(found) <= _SLACK * size, 0.0, np.sign(found))


def pairwise_accuracy(human: FloatArray, metric: FloatArray, weights: FloatArray) -> FloatArray:
    """Share of pairs of models that both order alike, shape (B,); a tie of one side counts half."""
    right, pairs = 1.0 - np.abs(orders(human) - orders(metric)) / 2.0, _of_pairs(weights)
    return ratio((right * pairs).sum(axis=1), pairs.sum(axis=1))


def kendall(human: FloatArray, metric: FloatArray, weights: FloatArray) -> FloatArray:
    """Kendall's tau-b over models in each resample, shape (B,)."""
    one, other, pairs = orders(human), orders(metric), _of_pairs(weights)
    untied = (pairs * one**2).sum(axis=1) * (pairs * other**2).sum(axis=1)
    return ratio((pairs * one * other).sum(axis=1), np.sqrt(untied))


def spearman(human: FloatArray, metric: FloatArray, weights: FloatArray) -> FloatArray:
    """Spearman's rank correlation over models in each resample, shape (B,)."""
    one, other = (_centred_ranks(values, weights) for values in (human, metric))
    size = (weights * one**2).sum(axis=1) * (weights * other**2).sum(axis=1)
    return ratio((weights * one * other).sum(axis=1), np.sqrt(size))


def _of_pairs(weights: FloatArray) -> FloatArray:
    """How often each two models are drawn together, shape (B, K)."""
    first, second = pairs_of(weights.shape[1])
    together: FloatArray = weights[:, first] * weights[:, second]
    return together


def _centred_ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Average ranks less their mean: half of the models below less half of those above."""
    first, second = pairs_of(values.shape[1])
    signs = orders(values)
    above, below = signs * weights[:, second], signs * weights[:, first]
    found = np.zeros(values.shape)
    for model in range(values.shape[1]):
        won = above[:, first == model].sum(axis=1) - below[:, second == model].sum(axis=1)
        found[:, model] = won / 2.0
    return found


def slope(values: FloatArray, times: FloatArray, weights: FloatArray) -> FloatArray:
    """Least-squares slope of values (B, M) over times (M,), shape (B,)."""
    mean = ratio(weights @ times, weights.sum(axis=1))
    centred = weights * (times - mean[:, None])
    return ratio((values * centred).sum(axis=1), (centred * times).sum(axis=1))
