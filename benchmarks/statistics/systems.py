"""Orders of models: how far a metric's agrees with people's, in the sample and in resamples.

Resamples draw prompts, which move the values of the models, or the models themselves, whose
multiplicities are weights, shape (B, M). Copies of one model make no pair.

A study with few prompts finds less agreement than one with many: chance lets models change places.
Resampled prompts add as much chance once more, so that plain resamples lie below the value. What the
intervals are of is therefore what studies with as many prompts find on average, and resamples are
made as scattered as the sample (`drawn_in`, `intervals.around`).

Soft pairwise accuracy: Thompson, Mathur, Deutsch, Khayrallah: Improving Statistical Significance in
Human Evaluation of Automatic Metrics via Soft Pairwise Accuracy, WMT 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.detection import ratio
from benchmarks.statistics.intervals import around
from benchmarks.statistics.resampling import mean_of_defined, resampled_mean
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


@dataclass(frozen=True)
class Sums:
    """Sums of differences over the prompts of B draws, shape (B, K) each, for p-values in all of them."""

    totals: FloatArray
    squares: FloatArray  # of the squared differences
    numbers: FloatArray  # prompts on which both models have a value; (B, 1) where it is all of them

    @classmethod
    def of(cls, by_prompt: FloatArray, counts: FloatArray) -> Self:
        """From values of shape (P, M) and multiplicities of the prompts (B, P)."""
        first, second = pairs_of(by_prompt.shape[1])
        found = differences(by_prompt)
        known = np.isfinite(by_prompt)
        numbers = counts.sum(axis=1, keepdims=True)
        if not known.all():
            numbers = counts @ (known[:, first] & known[:, second]).astype(np.float64)
        return cls(counts @ found, counts @ found**2, numbers)

    def of_draws(self, chosen: slice) -> Self:
        """Those of some draws."""
        return replace(self, **{f.name: getattr(self, f.name)[chosen] for f in fields(self)})

    def moved(self, by: FloatArray) -> Self:
        """With another value for each model on every prompt: by so much more, shape (M,)."""
        first, second = pairs_of(len(by))
        d = by[first] - by[second]
        squares = self.squares + 2.0 * d * self.totals + self.numbers * d**2
        return replace(self, totals=self.totals + self.numbers * d, squares=squares)

    @property
    def p_values(self) -> FloatArray:
        """Those of sign flips, from the normal distribution that the sums approach, (B, K).

        A prompt that is drawn twice is two prompts, each with a sign of its own. 1 where nothing
        differs, since then all sums are equal.
        """
        varies = self.squares > 0
        z = np.where(varies, ratio(self.totals, np.sqrt(np.maximum(self.squares, 0.0))), -np.inf)
        return np.asarray(scipy.special.ndtr(-z), np.float64)


def soft_pairwise_accuracy(human: FloatArray, metric: FloatArray) -> FloatArray:
    """One less the mean distance of two sets of p-values, shape (..., K) each; shape (...)."""
    return np.asarray(1.0 - np.abs(human - metric).mean(axis=-1), np.float64)


def drawn_in(human: FloatArray, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What to add to each model's values, (M,) by each judge, against the scatter that resampling adds.

    With S the covariance of both judges' means over models and N what the choice of prompts
    contributes to it, the means are multiplied by the square root of S - N over that of S. Resamples,
    which add N, then scatter as the means of the sample do, in each judge and together.

    `human`, `metric`: values by prompt, shape (P, M).
    """
    means = np.stack([mean_of_defined(values) for values in (human, metric)], axis=1)
    centred = means - means.mean(axis=0)
    unit = centred.std(axis=0, ddof=1)
    if not (np.isfinite(unit).all() and unit.all()):
        return np.zeros(len(means)), np.zeros(len(means))
    centred = centred / unit
    spread = np.cov(centred.T)
    chance = _chance_of_means((human / unit[0], metric / unit[1]))
    drawn = centred @ (_root(spread - chance) @ np.linalg.pinv(_root(spread), hermitian=True)).T
    of_human, of_metric = ((drawn - centred) * unit).T
    return of_human, of_metric


def _chance_of_means(judges: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Covariance over models, (2, 2), that two judges' means have by the choice of prompts alone.

    What a prompt adds to all models moves none of them against another, and does not count.
    """
    both = np.isfinite(judges[0]) & np.isfinite(judges[1])
    n = np.maximum(both.sum(axis=0), 2)
    rest = []
    for values in judges:
        within = values - mean_of_defined(values, axis=1)[:, None]
        rest.append(np.where(both, within - mean_of_defined(within), 0.0))
    of_models = np.array([[(a * b).sum(axis=0) / (n * (n - 1.0)) for b in rest] for a in rest])
    found: FloatArray = of_models.sum(axis=-1) / (len(n) - 1.0)
    return found


def _root(matrix: FloatArray) -> FloatArray:
    """Square root of a symmetric matrix; negative eigenvalues count as 0."""
    sizes, axes = np.linalg.eigh(matrix)
    found: FloatArray = (axes * np.sqrt(np.maximum(sizes, 0.0))) @ axes.T
    return found


@dataclass(frozen=True)
class PValues:
    """One-sided p-values of each two models by one judge, in the sample and in draws of prompts."""

    exact: FloatArray  # shape (K,), by sign flips, in the sample
    sums: Sums  # of 1 + B draws; the sample first

    @classmethod
    def of(cls, by_prompt: FloatArray, draws: FloatArray, seed: int) -> Self:
        """From values of shape (P, M) and draws of the prompts (1 + B, P), each once in the first."""
        return cls(flip_p_values(differences(by_prompt), seed), Sums.of(by_prompt, draws))

    def soft_accuracy(self, other: Self) -> FloatArray:
        """Soft pairwise accuracy of two judges in the sample and in each draw, shape (1 + B,).

        Of the sample by sign flips; draws move around it as those by the normal distribution do.
        """
        value = soft_pairwise_accuracy(self.exact, other.exact)
        drawn = soft_pairwise_accuracy(self.sums.p_values, other.sums.p_values)
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


ORDERS = {"pa": pairwise_accuracy, "srcc": spearman, "krcc": kendall}
"""Measures of two orders of models: from values (B, M) by both judges and weights (B, M)."""


@dataclass(frozen=True)
class Judge:
    """What people or a metric say of M models on P prompts, and draws of the prompts."""

    by_prompt: FloatArray  # shape (P, M)
    draws: FloatArray  # shape (1 + D, P), multiplicities; the sample first
    resamples: slice  # which draws are resamples; the others lie close to the sample
    seed: int  # of sign patterns

    @cached_property
    def means(self) -> FloatArray:
        """Values of the models in all draws, shape (1 + D, M)."""
        return resampled_mean(self.by_prompt, self.draws)

    @cached_property
    def p(self) -> PValues:
        """P-values of each two models."""
        return PValues.of(self.by_prompt, self.draws, self.seed)

    def agreement(self, other: Judge, measure: str, low: float | None = None) -> FloatArray:
        """How far both order the models alike in all draws, shape (1 + D,); at most 1.

        `measure`: `spa` or one of `ORDERS`; `low`: its smallest value.
        """
        shifts = drawn_in(self.by_prompt, other.by_prompt)
        both = (self, other)
        if measure == "spa":
            found = self.p.soft_accuracy(other.p)
            sums = (one.p.sums.of_draws(self.resamples) for one in both)
            p_values = (one.moved(by).p_values for one, by in zip(sums, shifts, strict=True))
            drawn = soft_pairwise_accuracy(*p_values)
        else:
            weights = np.ones(self.means.shape)
            found = ORDERS[measure](self.means, other.means, weights)
            human, metric = (
                one.means[self.resamples] + by for one, by in zip(both, shifts, strict=True)
            )
            drawn = ORDERS[measure](human, metric, weights[self.resamples])
        moved = around(found[0], drawn, low, 1.0)
        # A value may be low because chance turned two models round: what is high stays so.
        high = drawn > mean_of_defined(drawn)
        found[self.resamples] = np.where(high, np.maximum(moved, drawn), moved)
        return found
