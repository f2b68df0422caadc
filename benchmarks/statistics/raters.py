"""Agreement of raters: Krippendorff's alpha, error consistency, one rater against the others.

And the check for careless ones, by questions whose answer is known and by questions asked twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.multiplicity import holm

Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: ArrayLike, level: Level) -> float:
    """Krippendorff's alpha from the coincidence matrix (Gecko, section on annotator agreement).

    `ratings` (units, raters), numbers or number codes; NaN where a rater gave none. Units with
    fewer than two ratings are left out; `level`: `nominal` (equal or not), `ordinal` (by rank
    distance) or `interval` (by value).
    Returns: 1 for perfect agreement, 0 for agreement by chance; NaN where no unit has two ratings
    or all ratings are equal.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings need shape (units, raters), not {table.shape}")
    values = np.unique(table[~np.isnan(table)])
    coincidences = _coincidences(table, values)
    marginals = coincidences.sum(axis=1)
    total = marginals.sum()
    if total == 0:
        return math.nan
    distance = _distances(values, marginals, level)
    observed = (coincidences * distance).sum() / total
    expected = (np.outer(marginals, marginals) * distance).sum() / (total * (total - 1.0))
    return float(1.0 - observed / expected) if expected > 0 else math.nan


def resampled_alpha(ratings: ArrayLike, clusters: ArrayLike, counts: ArrayLike) -> FloatArray:
    """Krippendorff's nominal alpha in each resample of clusters of units.

    `ratings` (units, raters) as in `krippendorff_alpha`; `clusters` (units,), cluster index of each
    unit; `counts` (B, C): how often each cluster was drawn.
    Returns: shape (B,); NaN where a resample has no two ratings of a unit, or equal ones only.
    """
    table, drawn = np.asarray(ratings, np.float64), np.asarray(counts, np.float64)
    index = np.asarray(clusters, np.intp)
    if table.ndim != 2 or index.shape != table.shape[:1]:
        raise ValueError(f"ratings {table.shape} need a cluster of each unit, not {index.shape}")
    values = np.unique(table[~np.isnan(table)])
    times, weights, used = _pairable(table, values)
    of_unit = (times * weights[:, None])[:, :, None] * times[:, None, :]
    of_unit -= (times * weights[:, None])[:, :, None] * np.eye(len(values))
    of_cluster = np.zeros((drawn.shape[1], len(values), len(values)))
    np.add.at(of_cluster, index[used], of_unit)
    found = np.tensordot(drawn, of_cluster, axes=1)
    marginals = found.sum(axis=2)
    total = marginals.sum(axis=1)
    observed = total - np.trace(found, axis1=1, axis2=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = (total**2 - (marginals**2).sum(axis=1)) / (total - 1.0)
        alpha: FloatArray = np.where(expected > 0, 1.0 - observed / expected, np.nan)
    return alpha


def error_consistency(metric: ArrayLike, human: ArrayLike) -> float:
    """Agreement of two binary labellings beyond chance (Gecko, word level: Cohen's kappa).

    `metric` (n,), 0 or 1 (grounded); `human` (n,), 0 or 1.
    Returns: kappa = (observed - expected) / (1 - expected), at most 1; NaN where both labellings
    are constant and equal, or n = 0.
    """
    a, b = np.asarray(metric, bool), np.asarray(human, bool)
    if a.shape != b.shape:
        raise ValueError(f"two labellings of one length are needed, not {a.shape} and {b.shape}")
    if a.size == 0:
        return math.nan
    p, q = a.mean(), b.mean()
    expected = p * q + (1.0 - p) * (1.0 - q)
    if expected >= 1.0:
        return math.nan
    return float(((a == b).mean() - expected) / (1.0 - expected))


def _coincidences(table: FloatArray, values: FloatArray) -> FloatArray:
    """Each unit of m >= 2 ratings adds 1 / (m - 1) for every ordered pair of its ratings."""
    counts, weights, _ = _pairable(table, values)
    coincidences: FloatArray = (counts * weights[:, None]).T @ counts
    coincidences -= np.diag(counts.T @ weights)  # a rating makes no pair with itself
    return coincidences


def _pairable(table: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Times each value was given (u, V) in the units of m >= 2 ratings, 1 / (m - 1), and which these are."""
    counts = (table[:, :, None] == values).sum(axis=1).astype(np.float64)
    sizes = counts.sum(axis=1)
    used = sizes >= 2
    return counts[used], 1.0 / (sizes[used] - 1.0), used


def _distances(values: FloatArray, marginals: FloatArray, level: Level) -> FloatArray:
    """Distance of each two values; ordinal: ratings between them, half of each end counted."""
    if level == "nominal":
        return np.asarray(values[:, None] != values, np.float64)
    middle = np.cumsum(marginals) - marginals / 2.0
    place = middle if level == "ordinal" else values
    squared: FloatArray = (place[:, None] - place) ** 2
    return squared


def one_against_the_others(
    ratings: ArrayLike, agreement: Callable[[FloatArray, FloatArray], float]
) -> FloatArray:
    """Each column of ratings in turn as a metric, the mean of the other columns as the labels.

    `ratings` (units, R), R >= 2; NaN where a unit has fewer ratings than others. A unit counts for
    a column where it has that rating and another one; `agreement`: of scores with labels, both of
    shape (n,) and finite: the measure of a board.
    Returns: shape (R,), in the unit of `agreement`.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"ratings need shape (units, 2 or more), not {table.shape}")
    return np.array([_one(table, column, agreement) for column in range(table.shape[1])])


def _one(
    table: FloatArray, column: int, agreement: Callable[[FloatArray, FloatArray], float]
) -> float:
    one, others = table[:, column], np.delete(table, column, axis=1)
    rated = np.isfinite(one) & np.isfinite(others).any(axis=1)
    return agreement(one[rated], np.nanmean(others[rated], axis=1))


def votes_ceiling(votes: ArrayLike) -> float:
    """Accuracy of one voter against the majority of the others of the same comparison.

    [a h(a-1, b) + b h(b-1, a)] / (a + b) for a and b votes, with h = 1, 0.5 or 0 where the first is
    more, equal or less; the mean over comparisons. It is unbiased for a voter like these against
    one voter less.

    `votes` (n, 2), whole numbers; comparisons with fewer than two votes are left out.
    Returns: in 0..1; NaN where no comparison has two votes.
    """
    table = np.asarray(votes, np.float64)
    a, b = table[table.sum(axis=1) >= 2].T
    if not a.size:
        return math.nan
    agreed = (a * (np.sign(a - 1 - b) + 1) + b * (np.sign(b - 1 - a) + 1)) / 2
    return float((agreed / (a + b)).mean())


def mean_ceilings(means: ArrayLike, deviations: ArrayLike, n_raters: int) -> tuple[float, float]:
    """Correlations with mean ratings of which only the standard deviations were released.

    With E the mean variance within images, V that of the means and S = V - E/n that of the truth
    (Spearman's attenuation): one rater against the mean of the others reaches
    S / sqrt((S + E)(S + E/(n-1))), a metric that knows the truth sqrt(S / V).

    `means`, `deviations` (images,); `n_raters` n >= 2 behind every mean.
    Returns: one rater, and the perfect metric, each in 0..1; NaN where the means vary no more than
    raters disagree.
    """
    if n_raters < 2:
        raise ValueError(f"{n_raters} raters have no others")
    within = float(np.mean(np.square(deviations)))
    between = float(np.var(np.asarray(means, np.float64), ddof=1))
    truth = between - within / n_raters
    if not truth > 0:
        return math.nan, math.nan
    one = truth / math.sqrt((truth + within) * (truth + within / (n_raters - 1)))
    return one, math.sqrt(truth / between)


@dataclass(frozen=True)
class RaterCheck:
    """Which raters are careless; arrays of shape (R,)."""

    accuracy: FloatArray  # share of right answers; NaN for raters who were not asked
    low: FloatArray  # lower end of the exact 95 % interval (Clopper and Pearson 1934)
    high: FloatArray  # upper end
    p_values: FloatArray  # of an accuracy at the threshold or above, Holm-corrected over raters
    careless: BoolArray


def check_raters(
    right: IntArray,
    asked: IntArray,
    threshold: float,
    *,
    level: float = 0.05,
    every_look: bool = False,
) -> RaterCheck:
    """Name the raters whose accuracy lies below a threshold, by an exact binomial test of each.

    The chance that any rater at the threshold or above is named is at most `level`. Where the same
    raters are checked again and again as they answer, that holds with `every_look` only: p is then
    the inverse of the likelihood averaged over all accuracies below the threshold, in terms of that
    at the threshold, which no number of looks makes small (Ville's inequality).

    `right`, `asked` (R,), whole numbers: questions with a known answer, or those asked twice and
    answered alike. Two such checks of one board share its level: half of it each. `threshold`:
    between 0 and 1, what a careful rater reaches with ease; one who clicks at random has 0.5 of two
    answers.
    """
    if not (0.0 < threshold < 1.0) or (right < 0).any() or (right > asked).any():
        raise ValueError(
            f"a threshold in 0..1, not {threshold}, and 0 <= right <= asked are needed"
        )
    wrong = asked - right
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = np.where(asked > 0, right / asked, np.nan)
    low = np.where(right > 0, scipy.special.betaincinv(np.maximum(right, 1), wrong + 1, 0.025), 0.0)
    high = np.where(
        wrong > 0, scipy.special.betaincinv(right + 1, np.maximum(wrong, 1), 0.975), 1.0
    )
    p_value = _looked_at_often if every_look else _looked_at_once
    p_values = holm(np.where(asked > 0, p_value(right, wrong, threshold), np.nan))
    return RaterCheck(accuracy, low, high, p_values, p_values <= level)


def _looked_at_once(right: IntArray, wrong: IntArray, threshold: float) -> FloatArray:
    tail: FloatArray = scipy.special.betainc(wrong, right + 1, 1.0 - threshold)
    return np.where(wrong > 0, tail, 1.0)


def _looked_at_often(right: IntArray, wrong: IntArray, threshold: float) -> FloatArray:
    below = scipy.special.betainc(right + 1, wrong + 1, threshold) / threshold
    with np.errstate(divide="ignore"):
        average = scipy.special.betaln(right + 1, wrong + 1) + np.log(below)
    at_threshold = right * math.log(threshold) + wrong * math.log1p(-threshold)
    found: FloatArray = np.exp(np.minimum(at_threshold - average, 0.0))
    return found


def repeated_answers(
    raters: IntArray, questions: IntArray, answers: IntArray, n_raters: int
) -> tuple[IntArray, IntArray]:
    """How often each rater was asked a question again, and answered as the time before.

    `raters` (a,), 0..R-1; `questions` (a,); `answers` (a,), number codes of the image preferred and
    not of its side; in the order of time.
    Returns: answered alike, and asked again, shape (R,) each: `right` and `asked` of `check_raters`.
    """
    order = np.lexsort((questions, raters))  # stable: of one question the times stay in order
    again = (np.diff(raters[order]) == 0) & (np.diff(questions[order]) == 0)
    who = raters[order][1:][again]
    alike = (np.diff(answers[order]) == 0)[again]
    asked = np.bincount(who, minlength=n_raters)
    return np.bincount(who[alike], minlength=n_raters), asked
