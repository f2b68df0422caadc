"""Agreement of raters: Krippendorff's alpha, error consistency, one rater against the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray

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
    counts = (table[:, :, None] == values).sum(axis=1).astype(np.float64)
    sizes = counts.sum(axis=1)
    counts, sizes = counts[sizes >= 2], sizes[sizes >= 2]
    weights = 1.0 / (sizes - 1.0)
    coincidences: FloatArray = (counts * weights[:, None]).T @ counts
    coincidences -= np.diag(counts.T @ weights)  # a rating makes no pair with itself
    return coincidences


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
