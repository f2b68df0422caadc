"""Paired tests of models or metrics on the same units: t, signed ranks, dominance, effect sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.intervals import acceleration, bca
from benchmarks.statistics.resampling import mean_of_defined
from benchmarks.statistics.samples import matched
from benchmarks.statistics.sign_flips import less_rounding


@dataclass(frozen=True)
class SignedRanks:
    """Signed-rank sums of k rows; differences of zero and NaN are left out."""

    # shape (k,), sum of the average ranks of the positive differences; a multiple of one half,
    # exact
    positive: FloatArray
    ties: FloatArray  # shape (k,), sum of t^3 - t over the runs of t equal absolute differences
    wins: IntArray  # shape (k,), positive differences
    losses: IntArray  # shape (k,), negative ones
    zeros: IntArray  # shape (k,), differences of exactly zero


def signed_ranks(differences: FloatArray) -> SignedRanks:
    """Rank the absolute differences of each row and add up by sign.

    A non-negative double and its bit pattern read as an integer are in the same order. The absolute
    difference moved up by one bit leaves room for its sign, so sorting integers carries it along.
    """
    d = np.ascontiguousarray(differences)
    above, zero = d > 0, d == 0
    keys = np.abs(d).view(np.uint64) << np.uint64(1) | above
    keys.sort(axis=1)
    wins, zeros = above.sum(axis=1), zero.sum(axis=1)
    losses = (d < 0).sum(axis=1)
    positive, ties = np.zeros(len(d)), np.zeros(len(d))
    for row, ordered in enumerate(keys):
        # Zeros come first, NaN last: its bits are above those of every number.
        of_row = ordered[zeros[row] : zeros[row] + wins[row] + losses[row]]
        positive[row], ties[row] = _rank_sums(of_row)
    return SignedRanks(positive, ties, wins, losses, zeros)


def _rank_sums(keys: NDArray[np.uint64]) -> tuple[float, float]:
    """Rank sum of the positive differences and the term for ties of one sorted row."""
    size = keys >> np.uint64(1)
    above = (keys & np.uint64(1)).astype(np.float64)
    changes = size[1:] != size[:-1]
    if changes.all():
        return float(above @ np.arange(1.0, keys.size + 1.0)), 0.0
    starts = np.r_[0, np.flatnonzero(changes) + 1]
    sizes = np.diff(starts, append=keys.size).astype(np.float64)
    ranks = starts + (sizes + 1.0) / 2.0
    return float(np.add.reduceat(above, starts) @ ranks), float((sizes**3 - sizes).sum())


_COMPARED_DIGITS = 9
"""Digits of the largest difference at which differences are told apart by `rounded_wilcoxon`."""
ENUMERATED = 13
"""Up to so many differences every pattern of signs is looked at, as scipy does where there are
ties, in less than a thousandth of its time."""


@dataclass(frozen=True)
class Test:
    """The statistic of a two-sided test and its p-value; both NaN where the test is undefined."""

    __test__ = False  # pytest: not a class of tests

    statistic: float
    p_value: float

    def significant(self, level: float) -> bool:
        """Significance: a p-value below the level; never where the test is undefined."""
        return self.p_value < level


def paired_t(a: ArrayLike, b: ArrayLike) -> Test:
    """Student's paired t-test, two-sided (Re-Thinking, section on significance).

    Null hypothesis: the mean difference of a and b, finite and of shape (n,), is zero. t = m / (s /
    sqrt(n)) with the mean m and the standard deviation s (n - 1) of the differences (Student 1908).

    Returns: t > 0 where `a` is larger on average. All differences zero: t 0 and p 1. All
    differences equal but not zero: t infinite and p 0. Fewer than two prompts: NaN.
    """
    difference = _differences(a, b)
    if difference.size < 2:
        return Test(math.nan, math.nan)
    if not difference.any():
        return Test(0.0, 1.0)
    if np.ptp(difference) == 0.0:
        return Test(math.copysign(math.inf, float(difference[0])), 0.0)
    found = scipy.stats.ttest_1samp(difference, 0.0)
    return Test(float(found.statistic), float(found.pvalue))


def wilcoxon(a: ArrayLike, b: ArrayLike) -> Test:
    """Wilcoxon's signed-rank test, two-sided; prompts with equal values are left out.

    Null hypothesis: the differences of a and b, finite and of shape (n,), are symmetric about zero.
    This is the zero handling of Wilcoxon (1945), scipy's default `wilcox`; so is the choice between
    the exact distribution (up to 50 untied differences, none zero; up to 13 in any case) and the
    normal one.

    Returns: W, the smaller of the two rank sums, and p. All differences zero: W 0 and p 1. No
    prompts: NaN.
    """
    difference = _differences(a, b)
    if difference.size == 0:
        return Test(math.nan, math.nan)
    if not difference.any():
        return Test(0.0, 1.0)
    if difference.size <= ENUMERATED:
        return _by_enumeration(difference[difference != 0])
    ranks = signed_ranks(difference[None])
    (w,), (p,) = _signed_rank_test(ranks)
    if difference.size <= _EXACT_UP_TO and not (ranks.zeros[0] or ranks.ties[0]):
        p = _untied(difference.size, int(w))
    return Test(float(w), float(p))


def rounded_wilcoxon(a: ArrayLike, b: ArrayLike) -> Test:
    """`wilcoxon` with differences compared at nine digits of the largest.

    Equal differences of scores such as 13/15 come out as floats side by side, so that rounding
    decides whether they share a rank. Where the p-value here is another one, it hangs on that.
    """
    difference = _rounded(_differences(a, b), _COMPARED_DIGITS)
    return wilcoxon(difference, np.zeros(difference.size))


def dominance(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Shares of prompts with a > b and with b > a, so that ties count for neither; NaN for none."""
    difference = _differences(a, b)
    if difference.size == 0:
        return math.nan, math.nan
    return float((difference > 0).mean()), float((difference < 0).mean())


def _by_enumeration(difference: FloatArray) -> Test:
    """The exact test: under the null hypothesis each sign is a toss of a coin."""
    ranks = scipy.stats.rankdata(np.abs(difference))
    positive, total = float(ranks[difference > 0].sum()), float(ranks.sum())
    patterns = np.arange(2**ranks.size)[:, None] >> np.arange(ranks.size) & 1
    sums = patterns @ ranks  # of halves: exact
    one_sided = min((sums <= positive).mean(), (sums >= positive).mean())
    return Test(min(positive, total - positive), min(1.0, 2.0 * float(one_sided)))


def _untied(n: int, w: int) -> float:
    """The exact p-value of n differences without ties: all sums of some of the ranks 1..n, counted."""
    sums = np.ones(1)
    for rank in range(1, n + 1):
        sums = np.pad(sums, (0, rank)) + np.pad(sums, (rank, 0))
    return min(1.0, 2.0 * float(sums[: w + 1].sum()) / 2.0**n)


def _differences(a: ArrayLike, b: ArrayLike) -> FloatArray:
    one, other = matched(a, b)
    difference: FloatArray = one - other
    return difference


_CANCELLED = 1e-4
"""Where less than this share of the squares is left of a difference, the products have lost too
many digits: such a pair is computed from its differences."""
_ROUNDED = 1e-10
"""Where differences vary by less than this share of their squared mean, how a - b is rounded
matters: such a pair is computed from its differences as well, to be what the single test is."""
_EXACT_UP_TO = 50
"""Up to so many prompts Wilcoxon's exact distribution is taken where nothing is tied."""


@dataclass(frozen=True)
class PairedMany:
    """Every model a (first axis) against every model b (second axis), all of shape (M, M).

    A prompt on which one of the two has no value is left out of that pair.
    """

    n: IntArray  # prompts on which both have a value; symmetric
    n_missing: IntArray  # prompts on which one has none, or neither; symmetric
    # mean of a - b, in units of the values; antisymmetric; NaN for no prompts
    difference: FloatArray
    # Student's paired t (null hypothesis: the mean difference is zero); antisymmetric; 0 where all
    # differences are zero, infinite where all are one other number, NaN below two prompts
    t: FloatArray
    t_p: FloatArray  # its two-sided p-value, 0..1
    # the smaller of the two signed-rank sums (null hypothesis: the differences are symmetric about
    # zero); symmetric; zeros left out
    wilcoxon_w: FloatArray
    # its two-sided p-value, 0..1; exact or normal as `paired.wilcoxon` has it
    wilcoxon_p: FloatArray
    wins: IntArray  # prompts on which a is strictly higher; its transpose are the losses
    ties: IntArray  # prompts on which both are equal; symmetric
    # Cohen's d_z, the mean difference over the standard deviation (n - 1) of the differences (Cohen
    # 1988, section 2.3.5): t / sqrt(n)
    effect: FloatArray
    # BCa interval of the mean difference, see `paired_intervals`
    difference_interval: PairIntervals
    # BCa interval of d_z; none where most resamples are without spread
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

    `values` (n, M), one value per prompt and model; NaN where there is none. Squares of the
    differences must be within the range of floating-point numbers; `counts` (B, n), how often each
    prompt is drawn in each resample, for the intervals; None: no intervals, NaN.
    """
    x = np.asarray(values, np.float64)
    if x.ndim != 2 or np.isinf(x).any():
        raise ValueError("values of shape (prompts, models) are needed, finite or NaN")
    weights = np.empty((0, len(x))) if counts is None else np.asarray(counts, np.float64)
    if weights.ndim != 2 or weights.shape[1] != len(x):
        raise ValueError(f"counts of {len(x)} prompts are needed, not of shape {weights.shape}")
    student, (w, p, wins) = t_statistics(x), rank_statistics(x)
    with np.errstate(invalid="ignore"):
        effect = student.t / np.sqrt(student.n)
    of_difference, of_effect = paired_intervals(x, weights, level)
    return PairedMany(
        n=student.n,
        n_missing=len(x) - student.n,
        difference=student.difference,
        t=student.t,
        t_p=student.p,
        wilcoxon_w=w,
        wilcoxon_p=p,
        wins=wins,
        ties=student.n - wins - wins.T,
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
    p = 2.0 * scipy.special.stdtr(np.maximum(n - 1, 1), -np.abs(t))
    return TStatistics(n, difference, t, p)


def _moments(x: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, BoolArray]:
    """Common prompts, mean and squared deviations of the differences, and whether to trust them.

    With centred columns, the squared deviations of a - b are <a, a> + <b, b> - 2 <a, b>: one
    product.

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


def rank_statistics(x: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Wilcoxon's W and p and the wins for each two columns of x (n, M), finite or NaN; (M, M) each."""
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
    return w, p, wins


def _signed_rank_test(ranks: SignedRanks) -> tuple[FloatArray, FloatArray]:
    """The smaller rank sum and the normal p-value, corrected for ties; 0 and 1 for zeros only."""
    n = (ranks.wins + ranks.losses).astype(np.float64)
    total = n * (n + 1.0) / 2.0
    variance = (n * (n + 1.0) * (2.0 * n + 1.0) - ranks.ties / 2.0) / 24.0
    with np.errstate(invalid="ignore"):
        z = (ranks.positive - total / 2.0) / np.sqrt(variance)
    p = np.where(n == 0, 1.0, 2.0 * scipy.special.ndtr(-np.abs(z)))
    return np.minimum(ranks.positive, total - ranks.positive), p


# Bootstrap intervals between each two of many models.


_ROUNDING = 1e-10
"""Share of the squares that rounding may leave of a sum of squared deviations that is zero."""


@dataclass(frozen=True)
class PairIntervals:
    """Ends of intervals of model a (first axis) less model b, each of shape (M, M)."""

    low: FloatArray  # lower ends; NaN where there is no interval
    high: FloatArray  # upper ends, those of b less a with the sign changed


def paired_intervals(
    values: FloatArray, counts: FloatArray, level: float = 0.95
) -> tuple[PairIntervals, PairIntervals]:
    """BCa intervals of the mean difference and of d_z for each two models (Efron 1987).

    They are expanded for the number of prompts (see `intervals.bca`). The acceleration comes from
    the influence of each prompt: d - m on the mean m, and (d - m) / s - m ((d - m)^2 - s^2) / (2
    s^3) on m / s (the delta method).

    `values` (n, M), one value per prompt; NaN where there is none; `counts` (B, n), how often each
    prompt is drawn in each resample; B = 0: all NaN.
    Returns: Those of the mean difference and those of d_z (see `resampled_pairs`); NaN below two
    common prompts and where fewer than half the resamples are defined. Percentile intervals where
    BCa is undefined: where all resamples lie on one side of the value.
    """
    n_models = values.shape[1]
    ends = np.full((4, n_models, n_models), np.nan)
    for a in range(n_models if len(counts) else 0):
        differences = values[:, a, None] - values[:, a:]
        enough = np.isfinite(differences).sum(axis=0) > 1
        others = a + np.flatnonzero(enough)
        d = differences[:, enough]
        n_prompts = np.isfinite(d).sum(axis=0)
        for first, value, resamples, moved in zip(
            (0, 2), _values(d), resampled_pairs(d, counts), _influences(d), strict=True
        ):
            found = bca(value, resamples.T, acceleration(moved.T), level, n_clusters=n_prompts)
            ends[first, a, others], ends[first + 1, a, others] = found.low, found.high
            ends[first, others, a], ends[first + 1, others, a] = -found.high, -found.low
    return PairIntervals(ends[0], ends[1]), PairIntervals(ends[2], ends[3])


def resampled_pairs(differences: FloatArray, counts: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Mean difference and Cohen's d_z in each resample.

    `differences` (n, k), a - b of each prompt for k pairs; NaN where there is none; `counts` (B,
    n), how often each prompt is drawn.
    Returns: Two arrays of shape (B, k). Means are NaN where nothing is drawn. d_z is NaN where
    fewer than two prompts are drawn, 0 where only zeros are, and NaN where all drawn differences
    are one other number: there it has no bound.
    """
    w = np.asarray(counts, np.float64)
    defined = np.isfinite(differences)
    d = np.where(defined, differences, 0.0)
    n = defined.sum(axis=0)
    centre = _mean_or_the_one_value(differences, d.sum(axis=0) / np.maximum(n, 1))
    squares = np.where(defined, (d - centre) ** 2, 0.0)
    drawn = w.sum(axis=1)[:, None] if defined.all() else w @ defined.astype(np.float64)
    sums, total = w @ d, w @ squares
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / drawn
        deviations = total - drawn * (mean - centre) ** 2
        effect = mean / np.sqrt(deviations / (drawn - 1.0))
    alike = deviations <= _ROUNDING * total
    effect = np.where(alike, np.where(sums == 0, 0.0, np.nan), effect)
    return mean, np.where(drawn < 2, np.nan, effect)


def _values(differences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and d_z in the sample: that of one resample which draws every prompt once."""
    mean, effect = resampled_pairs(differences, np.ones((1, len(differences))))
    return mean[0], effect[0]


def _influences(differences: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Influences of prompts (n, k) on the mean and d_z, to a common factor; 0 for missing ones."""
    defined = np.isfinite(differences)
    mean = mean_of_defined(differences)
    distance = np.where(defined, differences - mean, 0.0)
    scale = np.sqrt((distance**2).sum(axis=0) / defined.sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = distance / scale
        of_spread = mean / scale * (unit**2 - 1.0) / 2.0
    return distance, np.where(defined, unit - of_spread, 0.0)


def _mean_or_the_one_value(differences: FloatArray, mean: FloatArray) -> FloatArray:
    """The means; rounding must not part equal differences from their own mean."""
    low = np.fmin.reduce(differences, initial=np.inf)
    high = np.fmax.reduce(differences, initial=-np.inf)
    centre: FloatArray = np.where(low == high, low, mean)
    return centre


# Tests of two metrics block by block, on pseudo-values.


_SLACK = 1e-9
"""Contributions this close, as a share of the larger side of their row, differ by rounding only:
the rule of `sign_flips`, so that its units are those that are not tied here."""
_DIGITS = 10
"""Differences are ranked with so many digits of the largest, for equal ones to share a rank."""


@dataclass(frozen=True)
class UnitTests:
    """Two metrics block by block, on pseudo-values; all arrays have shape (R,)."""

    n: IntArray  # blocks behind the two values; 0 where there are no contributions
    larger: IntArray  # blocks to which the first metric owes more
    equal: IntArray  # blocks in which both are the same but for rounding
    smaller: IntArray  # blocks to which the second owes more
    # Student's paired t (null hypothesis: the mean difference is zero); 0 where all differences are
    # zero, infinite where all are one other number; NaN below two blocks
    t: FloatArray
    t_p: FloatArray  # its two-sided p-value
    # the smaller signed-rank sum (null hypothesis: the differences are symmetric about zero; zeros
    # left out); NaN without blocks
    wilcoxon_w: FloatArray
    wilcoxon_p: FloatArray  # its two-sided p-value, as `paired.wilcoxon` has it
    spread: FloatArray  # standard deviation (n - 1) of the differences; NaN below two blocks


def unit_tests(a: FloatArray, b: FloatArray, members: BoolArray) -> UnitTests:
    """Paired t, Wilcoxon's test and dominance over blocks."""
    n = members.sum(axis=1)
    d = less_rounding(a, b) * n[:, None]
    counted = np.where(members, d, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = counted.sum(axis=1) / n
        squares = np.where(members, d - mean[:, None], 0.0) ** 2
        spread = np.sqrt(squares.sum(axis=1) / (n - 1.0))
        size = np.abs(counted).max(axis=1, initial=0.0)
        spread = np.where(spread <= _SLACK * size, 0.0, spread)
        spread[n < 2] = np.nan
        t = mean / (spread / np.sqrt(n))
    t = np.where((size == 0.0) & (n > 1), 0.0, t)
    w, w_p = np.full((2, len(n)), np.nan)
    for row in np.flatnonzero(n):
        ranked = _rounded(d[row, members[row]], _DIGITS)
        test = wilcoxon(ranked, np.zeros(ranked.size))
        w[row], w_p[row] = test.statistic, test.p_value
    larger, smaller = (counted > 0).sum(axis=1), (counted < 0).sum(axis=1)
    t_p = 2.0 * scipy.special.stdtr(np.maximum(n - 1, 1), -np.abs(t))
    return UnitTests(n, larger, n - larger - smaller, smaller, t, t_p, w, w_p, spread)


def _rounded(d: FloatArray, digits: int) -> FloatArray:
    """Differences as shares of the largest, with so many digits."""
    size = np.abs(d).max(initial=0.0)
    return d if size == 0.0 else np.round(d / size, digits)
