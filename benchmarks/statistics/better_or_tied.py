"""Better, tied, worse or undecided: paired tests of a difference and of equivalence, side by side.

A difference is claimed where Student's paired t and a sign-flip test both find it. That two models are
as good as equal is tested by two one-sided t-tests (Schuirmann 1987): both must say that the mean
difference is smaller than a margin. Holm's correction is made within each of the two families of
tests.

Neither test of a difference suffices. Where it is chance which of the two models has which score, sign
flips find one falsely with 5 % at most, whatever the scores, the number of tests and the level. t does
not: where 21 prompts differ, all by one, it has 8 %, and 13 % over 20 corrected tests. Where the means
are equal but failures rare and large, both are too sure and neither always less: with nine wins of 1 to
a failure of 9, t has up to 17 %, at 31 prompts, sign flips 20 %, at 29. So both are asked, which is
never worse than t, and nothing is decided where fewer than `MIN_PROMPTS` prompts differ. What no test
can see is a failure that did not happen (Bahadur and Savage 1956): one that n prompts show once in n/3
or less often is missed in more than 5 % of cases.

A board of models makes many such claims, and every model on it may have a failure that did not happen.
So it orders no models by fewer than `least_prompts`, and a difference also has to stand with one more
prompt on which it is turned round by the largest difference of the two (`model_boards.compared`). Of
models with equal means, half of them steady and half failing on every tenth prompt, it then orders any
falsely on 5 % of boards at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray, unit_of
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.paired import dominance, paired_t
from benchmarks.statistics.sign_flips import flip_bound, less_rounding, pair_tests

LEVEL = 0.05
MARGIN = 0.1
"""Tied means closer than this share of the spread of scores over prompts (half of what Cohen 1988,
section 2.2.4, calls small)."""
MIN_PROMPTS = 20
"""Nothing is decided where fewer prompts have two scores that differ: both tests are too sure of them."""
SEEN_FAILURE = 0.1
"""A failure of such a share of prompts is to show in every model of a board."""


def least_prompts(n_models: int) -> int:
    """Prompts by which so many models may be ordered: each shows its failures with 95 % for all of them."""
    unseen = math.log(LEVEL / max(n_models, 1)) / math.log(1.0 - SEEN_FAILURE)
    return max(MIN_PROMPTS, math.ceil(unseen))


POWER = 0.8
_MOST_RATIO = 1e9  # of spread to difference: beyond it no number of prompts is named
SEED = 27
"""Of the signs that are drawn, so that a comparison says the same again."""


class Outcome(StrEnum):
    """What is said of the second of two models."""

    BETTER = "better"
    TIED = "tied"
    WORSE = "worse"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class PairedOutcome:
    """The second model less the first, on the prompts of which both have a score.

    All p-values are NaN where fewer than `MIN_PROMPTS` prompts differ.
    """

    n: int  # prompts
    n_missing: int  # prompts that lack one of the scores; left out
    n_differing: int  # prompts whose two scores are not equal, rounding aside
    difference: float  # mean, in units of the score; higher is better
    # of its 95 % t interval, which excludes zero wherever a difference is claimed; NaN below two
    # prompts
    ci_low: float
    ci_high: float
    spread: float  # standard deviation of the scores over prompts, both models together
    margin: float  # differences below it are a tie; in units of the score
    wins: float  # share of prompts on which the second is strictly better
    losses: float  # share on which the first is
    same: bool  # whether both have the very same images, so that this is no matter of chance
    sd: float  # standard deviation (n - 1) of the differences
    p: float  # two-sided, of the difference; see `difference_p`
    p_tied: float  # of the hypothesis that the difference is the margin or more
    p_corrected: float = math.nan  # Holm's, over all that is compared
    p_tied_corrected: float = math.nan  # likewise
    n_tests: int = 1  # that both are corrected for

    @property
    def identical(self) -> bool:
        """Whether every prompt has two equal scores."""
        return self.n > 0 and self.n_differing == 0

    @property
    def outcome(self) -> Outcome:
        """At `LEVEL`, after correction; a significant difference within the margin is a difference."""
        if self.p_corrected < LEVEL:
            return Outcome.BETTER if self.difference > 0 else Outcome.WORSE
        if self.n >= MIN_PROMPTS and (self.same or self.p_tied_corrected < LEVEL):
            return Outcome.TIED
        return Outcome.UNDECIDED

    @property
    def n_to_differ(self) -> int | None:
        """Prompts of this kind that would show a difference with `POWER`, if what is seen is so.

        None where it is decided, or nothing differs. At the level of a single test, divided by the
        number of tests: Holm's first step, so enough for any.
        """
        apart = abs(self.difference)
        if self.outcome is not Outcome.UNDECIDED or not (self.sd > 0.0 and apart > 0.0):
            return None
        return self._prompts(_z(self._level / 2) + _z(1 - POWER), apart)

    @property
    def n_to_tie(self) -> int | None:
        """Likewise, that would show a tie; None also where the difference is beyond the margin."""
        room = self.margin - abs(self.difference)
        if self.outcome is not Outcome.UNDECIDED or not (self.sd > 0.0 and room > 0.0):
            return None
        # At no difference both of the one-sided tests can fail, hence half of the rest each.
        missed = (1 - POWER) / (2 if self.difference == 0.0 else 1)
        return self._prompts(_z(self._level) + _z(missed), room)

    @property
    def _level(self) -> float:
        return LEVEL / self.n_tests

    def _prompts(self, z: float, apart: float) -> int | None:
        least = math.ceil(MIN_PROMPTS * self.n / self.n_differing)
        ratio = z * self.sd / apart
        return max(least, math.ceil(ratio**2)) if ratio < _MOST_RATIO else None


def _z(tail: float) -> float:
    return float(scipy.stats.norm.isf(tail))


def paired_outcome(
    first: ArrayLike, second: ArrayLike, margin: float = MARGIN, *, same: bool = False
) -> PairedOutcome:
    """Compare two models on the same prompts, before any correction.

    `first`, `second`: (n,), the score of each prompt (the mean over its images), higher is better;
    NaN where there is none. `margin`: as a share of the spread. `same`: whether both models have the
    very same images.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"scores of the same prompts are needed, not of {a.shape} and {b.shape}")
    both = np.isfinite(a) & np.isfinite(b)
    unit = unit_of(a[both], b[both])
    x, y = a[both] / unit, b[both] / unit
    d = paired_differences(x, y)
    absolute = margin * _spread(x, y)
    # No verdict depends on the unit of a score: both levels are brought to about 1, which is exact.
    of_d = unit_of(d)
    d, step = d / of_d, of_d * unit
    wins, losses = dominance(d, np.zeros(d.size))
    n, sd = d.size, float(d.std(ddof=1)) if d.size > 1 else math.nan
    n_differing = int(np.count_nonzero(d))
    low, high = t_interval(d)
    tested = n_differing >= MIN_PROMPTS
    found = PairedOutcome(
        n=n,
        n_missing=a.size - n,
        n_differing=n_differing,
        difference=step * float(d.mean()) if n else math.nan,
        ci_low=step * low,
        ci_high=step * high,
        spread=unit * _spread(x, y),
        margin=unit * absolute,
        wins=wins,
        losses=losses,
        same=same and n > 0 and n_differing == 0,
        sd=step * sd,
        p=difference_p(d) if tested else math.nan,
        p_tied=equivalence(d, absolute / of_d) if tested else math.nan,
    )
    return replace(found, p_corrected=found.p, p_tied_corrected=found.p_tied)


def paired_differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Differences of the second's scores to the first's, of any shape; 0 where they differ by rounding.

    Each by its own two scores: one prompt with large scores leaves the others as they are.
    """
    return less_rounding(second.reshape(-1, 1), first.reshape(-1, 1)).reshape(first.shape)


def difference_p(differences: FloatArray) -> float:
    """Two-sided p-value: the larger of the paired t-test's and the sign flips'.

    Where t claims nothing it is t's alone: no other could change that, and signs are not flipped.
    Where it is very small it may be an upper bound (`sign_flips.flip_bound`).
    """
    equal = np.zeros(differences.size)
    p = paired_t(differences, equal).p_value
    if p >= LEVEL:
        return p
    pair = np.stack([differences, equal])
    flips = pair_tests(pair, np.array([0]), np.array([1]), SEED).p_value
    # What is drawn has a smallest p-value; the levels of late confirmations lie below it.
    bound = flip_bound(differences.sum(keepdims=True), np.square(differences).sum(keepdims=True))
    return max(p, float(np.minimum(flips, bound)[0]))


_DRAWN_CELLS = 1 << 18
"""Prompts times pairs of models for which signs are drawn; p-values of more are upper bounds."""


def difference_p_on_boards(differences: FloatArray) -> FloatArray:
    """Two-sided p-values of pairs on a board, shape (K,): `difference_p` with one more prompt.

    On that prompt the difference is turned round by the largest one of the pair: a failure that
    did not happen, as bad as any that did.

    `differences` (K, n), NaN where a prompt lacks a score. Returns: NaN where fewer than
    `MIN_PROMPTS` prompts differ.
    """
    known = np.isfinite(differences)
    d = np.where(known, differences, 0.0)
    total, largest = d.sum(axis=1), np.abs(d).max(axis=1, initial=0.0)
    d = np.column_stack([d, -np.sign(total) * largest])
    n, left = known.sum(axis=1) + 1.0, np.abs(total) - largest
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (np.square(d).sum(axis=1) - left**2 / n) / (n - 1.0)
        t = left / np.sqrt(n * variance)
    p = np.where(left > 0.0, 2.0 * scipy.special.stdtr(n - 1.0, -np.abs(t)), 1.0)
    p[np.count_nonzero(d[:, :-1], axis=1) < MIN_PROMPTS] = np.nan
    sure = np.flatnonzero(p < LEVEL)
    pairs = np.vstack([d[sure], np.zeros(d.shape[1])])
    nobody = np.full(sure.size, sure.size)
    most = _DRAWN_CELLS // d.shape[1]
    flips = pair_tests(pairs, np.arange(sure.size), nobody, SEED, most_drawn=most).p_value
    p[sure] = np.maximum(p[sure], flips)
    return p


def equivalence(differences: FloatArray, margin: float) -> float:
    """The larger p-value of two one-sided t-tests, that the mean lies below -margin or above it."""
    n = differences.size
    se = differences.std(ddof=1) / math.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (margin - np.abs(differences.mean())) / se  # infinite where all are one number
    return float(scipy.stats.t.sf(t, n - 1))


def corrected(found: Sequence[PairedOutcome]) -> tuple[PairedOutcome, ...]:
    """The same with Holm's correction over all of them, in each of the two families."""
    p, p_tied = holm([one.p for one in found]), holm([one.p_tied for one in found])
    n = int(np.isfinite([one.p for one in found]).sum())
    return tuple(
        replace(one, p_corrected=float(a), p_tied_corrected=float(b), n_tests=max(n, 1))
        for one, a, b in zip(found, p, p_tied, strict=True)
    )


def joint_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """What several metrics say together.

    Better, or worse, where one says so and none the contrary; tied where all say so.
    """
    found = set(outcomes)
    if len(found) == 1:
        return found.pop()
    told = found & {Outcome.BETTER, Outcome.WORSE}
    return told.pop() if len(told) == 1 else Outcome.UNDECIDED


def _spread(x: FloatArray, y: FloatArray) -> float:
    """Root of the mean of both variances over prompts."""
    if x.size < 2:
        return math.nan
    return math.sqrt((float(x.var(ddof=1)) + float(y.var(ddof=1))) / 2)


def t_interval(d: FloatArray) -> tuple[float, float]:
    """95 % interval of the mean of d, shape (n,); NaN below two values."""
    if d.size < 2:
        return math.nan, math.nan
    unit = unit_of(d)
    mean, sd = float((d / unit).mean()), float((d / unit).std(ddof=1))
    half = float(scipy.stats.t.isf(LEVEL / 2, d.size - 1)) * sd / math.sqrt(d.size)
    return unit * (mean - half), unit * (mean + half)
