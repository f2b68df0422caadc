"""Paired tests between each two of many models or metrics on the same prompts, all at once.

The same numbers as `benchmarks.statistics.paired` gives for one pair after the other. The variances
of all differences follow from one matrix of products: with centred columns, the squared deviations
of a - b are <a, a> + <b, b> - 2 <a, b>.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.paired import paired_t, wilcoxon
from benchmarks.statistics.paired_intervals import PairIntervals, paired_intervals
from benchmarks.statistics.resampling import mean_of_defined
from benchmarks.statistics.signed_ranks import SignedRanks, signed_ranks

_CANCELLED = 1e-4
"""Where less than this share of the squares is left of a difference, the products have lost too
many digits: such a pair is computed from its differences."""
_ROUNDED = 1e-10
"""Where differences vary by less than this share of their squared mean, how a - b is rounded
matters: such a pair is computed from its differences as well, to be what the single test is."""
_EXACT_UP_TO = 50
"""Up to so many prompts scipy may choose Wilcoxon's exact distribution."""


@dataclass(frozen=True)
class PairedMany:
    """Every model a (first axis) against every model b (second axis), all of shape (M, M).

    A prompt on which one of the two has no value is left out of that pair.

    Attributes:
        n: prompts on which both have a value; symmetric.
        n_missing: prompts on which one has none, or neither; symmetric.
        difference: mean of a - b, in units of the values; antisymmetric; NaN for no prompts.
        t: Student's paired t (null hypothesis: the mean difference is zero); antisymmetric; 0
            where all differences are zero, infinite where all are one other number, NaN below two
            prompts.
        t_p: its two-sided p-value, 0..1.
        wilcoxon_w: the smaller of the two signed-rank sums (null hypothesis: the differences are
            symmetric about zero); symmetric; zeros left out.
        wilcoxon_p: its two-sided p-value, 0..1; exact or normal as `paired.wilcoxon` has it.
        wins: prompts on which a is strictly higher; its transpose are the losses.
        ties: prompts on which both are equal; symmetric.
        effect: Cohen's d_z, the mean difference over the standard deviation (n - 1) of the
            differences (Cohen 1988, section 2.3.5): t / sqrt(n).
        difference_interval: BCa interval of the mean difference, see `paired_intervals`.
        effect_interval: BCa interval of d_z; none where most resamples are without spread.
    """

    n: IntArray
    n_missing: IntArray
    difference: FloatArray
    t: FloatArray
    t_p: FloatArray
    wilcoxon_w: FloatArray
    wilcoxon_p: FloatArray
    wins: IntArray
    ties: IntArray
    effect: FloatArray
    difference_interval: PairIntervals
    effect_interval: PairIntervals

    @property
    def losses(self) -> IntArray:
        """Prompts on which b is strictly higher."""
        return self.wins.T

    @property
    def dominance(self) -> FloatArray:
        """Share of prompts on which a is strictly higher, 0..1; NaN for no prompts."""
        with np.errstate(invalid="ignore"):
            ratio: FloatArray = self.wins / self.n
        return ratio


def paired_many(
    values: ArrayLike, counts: ArrayLike | None = None, level: float = 0.95
) -> PairedMany:
    """Compare each two of M models (or metrics) on the same prompts (or clusters).

    Args:
        values: shape (n, M), one value per prompt and model; NaN where there is none. Squares of
            the differences must be within the range of floating-point numbers.
        counts: shape (B, n), how often each prompt is drawn in each resample, for the intervals;
            None: no intervals, NaN.
        level: their coverage.

    Raises:
        ValueError: the shape is another, a value is infinite, or the counts are of other prompts.
    """
    x = np.asarray(values, np.float64)
    if x.ndim != 2 or np.isinf(x).any():
        raise ValueError("values of shape (prompts, models) are needed, finite or NaN")
    weights = np.empty((0, len(x))) if counts is None else np.asarray(counts, np.float64)
    if weights.ndim != 2 or weights.shape[1] != len(x):
        raise ValueError(f"counts of {len(x)} prompts are needed, not of shape {weights.shape}")
    student, ranks = t_statistics(x), rank_statistics(x)
    with np.errstate(invalid="ignore"):
        effect = student.t / np.sqrt(student.n)
    of_difference, of_effect = paired_intervals(x, weights, level)
    return PairedMany(
        n=student.n,
        n_missing=len(x) - student.n,
        difference=student.difference,
        t=student.t,
        t_p=student.p,
        wilcoxon_w=ranks.w,
        wilcoxon_p=ranks.p,
        wins=ranks.wins,
        ties=student.n - ranks.wins - ranks.wins.T,
        effect=effect,
        difference_interval=of_difference,
        effect_interval=of_effect,
    )


@dataclass(frozen=True)
class TStatistics:
    """The fields `n`, `difference`, `t` and `t_p` of `PairedMany`, each (M, M)."""

    n: IntArray
    difference: FloatArray
    t: FloatArray
    p: FloatArray


def t_statistics(x: FloatArray) -> TStatistics:
    """Student's paired t-test for each two columns of x, shape (n, M), finite or NaN."""
    n, difference, deviations, kept = _moments(x)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = difference / np.sqrt(deviations / (n - 1.0) / n)
    alone = np.diag(n)
    np.fill_diagonal(difference, np.where(alone > 0, 0.0, np.nan))
    np.fill_diagonal(t, np.where(alone > 1, 0.0, np.nan))
    for a, b in zip(*np.nonzero(np.triu(~kept, 1)), strict=True):
        both = np.isfinite(x[:, a]) & np.isfinite(x[:, b])
        d = x[both, a] - x[both, b]
        difference[a, b] = d.mean() if d.size else math.nan
        t[a, b] = paired_t(d, np.zeros(d.size)).statistic
        difference[b, a], t[b, a] = -difference[a, b], -t[a, b]
    p = 2.0 * special.stdtr(np.maximum(n - 1, 1), -np.abs(t))
    return TStatistics(n, difference, t, p)


def _moments(x: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, BoolArray]:
    """Common prompts, mean and squared deviations of the differences, and whether to trust them.

    Columns are centred first; what is left of their sums, and by what the prompts of a pair
    differ from the whole column, is put right at the end.
    """
    n_prompts, n_models = x.shape
    sums = np.ones(n_prompts) @ x
    if np.isfinite(sums).all():
        means = sums / max(n_prompts, 1)
        centred = x - means
        products = centred.T @ centred
        n = np.full((n_models, n_models), n_prompts)
        squares = np.broadcast_to(np.diag(products)[:, None], n.shape)
        rests = np.broadcast_to((np.ones(n_prompts) @ centred)[:, None], n.shape)
    else:
        present = np.isfinite(x).astype(np.float64)
        means = mean_of_defined(x)
        centred = np.where(present > 0, x - means, 0.0)
        products = centred.T @ centred
        n = (present.T @ present).astype(np.intp)
        squares, rests = (centred**2).T @ present, centred.T @ present
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = (rests - rests.T) / n
        difference = means[:, None] - means + rest
        deviations = squares + squares.T - (products + products.T) - n * rest**2
        least = _CANCELLED * (squares + squares.T) + _ROUNDED * n * difference**2
    return n, difference, deviations, deviations > least


@dataclass(frozen=True)
class RankStatistics:
    """The fields `wilcoxon_w`, `wilcoxon_p` and `wins` of `PairedMany`, each (M, M)."""

    w: FloatArray
    p: FloatArray
    wins: IntArray


def rank_statistics(x: FloatArray) -> RankStatistics:
    """Wilcoxon's test and the wins for each two columns of x, shape (n, M), finite or NaN."""
    n_models = x.shape[1]
    w, p = np.full((2, n_models, n_models), np.nan)
    wins = np.zeros((n_models, n_models), np.intp)
    by_model = np.ascontiguousarray(x.T)
    for a in range(n_models):
        found = signed_ranks(by_model[a] - by_model[a:])
        wins[a, a:], wins[a:, a] = found.wins, found.losses
        w[a, a:], p[a, a:] = _signed_rank_test(found)
        for b in a + np.flatnonzero(found.wins + found.losses + found.zeros <= _EXACT_UP_TO):
            both = np.isfinite(x[:, a]) & np.isfinite(x[:, b])
            test = wilcoxon(x[both, a], x[both, b])
            w[a, b], p[a, b] = test.statistic, test.p_value
        w[a:, a], p[a:, a] = w[a, a:], p[a, a:]
    return RankStatistics(w, p, wins)


def _signed_rank_test(ranks: SignedRanks) -> tuple[FloatArray, FloatArray]:
    """The smaller rank sum and the normal p-value, corrected for ties; 0 and 1 for zeros only."""
    n = (ranks.wins + ranks.losses).astype(np.float64)
    total = n * (n + 1.0) / 2.0
    variance = (n * (n + 1.0) * (2.0 * n + 1.0) - ranks.ties / 2.0) / 24.0
    with np.errstate(invalid="ignore"):
        z = (ranks.positive - total / 2.0) / np.sqrt(variance)
    p = np.where(n == 0, 1.0, 2.0 * special.ndtr(-np.abs(z)))
    return np.minimum(ranks.positive, total - ranks.positive), p
