"""Pairwise accuracy with tie calibration (Deutsch et al. 2023), exact over all pairs of items.

Two items are tied for the metric where their scores differ by at most a threshold e, and tied for
people where their labels are equal. A pair is right where both call it tied, or where neither
does and both order it alike. Calibration takes the e of highest accuracy among 0 and all observed
differences of scores, the smallest one on ties; differences are as float64 has them, never
rounded. Enlarging e past one pair wins it where its labels are tied and loses it where it was
concordant, so only counts of tied and of concordant pairs within e are needed.

The pairs are never all held at once: see `pair_counts` and `tie_search`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from benchmarks.statistics.pair_counts import Pairs
from benchmarks.statistics.tie_search import best_threshold


@dataclass(frozen=True)
class Calibrated:
    """The best accuracy in 0..1 and the smallest threshold that reaches it; NaN without pairs."""

    accuracy: float
    threshold: float


def tie_calibrated(scores: ArrayLike, labels: ArrayLike) -> Calibrated:
    """Pairwise accuracy at the threshold that is best on these items.

    Args:
        scores: shape (n,), finite.
        labels: shape (n,), finite.

    Raises:
        ValueError: the lengths differ or a value is not finite.
    """
    return calibrated(Pairs.of(scores, labels))


def calibrated(pairs: Pairs) -> Calibrated:
    """`tie_calibrated` of a sample whose pairs are also counted otherwise."""
    if not pairs.n_pairs:
        return Calibrated(math.nan, math.nan)
    right, threshold = best_threshold(pairs)
    return Calibrated(right / pairs.n_pairs, threshold)


def pairwise_accuracy(scores: ArrayLike, labels: ArrayLike, threshold: float = 0.0) -> float:
    """Share of right pairs at a given threshold; at 0 only equal scores are tied.

    Args:
        scores: shape (n,), finite.
        labels: shape (n,), finite.
        threshold: largest difference of scores that counts as a tie, >= 0.

    Returns:
        A value in 0..1; NaN for fewer than two items.

    Raises:
        ValueError: the lengths differ, a value is not finite, or the threshold is negative.
    """
    if not threshold >= 0.0:
        raise ValueError(f"a threshold is a difference of at least 0, not {threshold}")
    return Pairs.of(scores, labels).accuracy(threshold)


def accuracy_ignoring_ties(scores: ArrayLike, labels: ArrayLike) -> float:
    """Concordant pairs over pairs with different labels; equal scores are never right there.

    Args:
        scores: shape (n,), finite.
        labels: shape (n,), finite.

    Returns:
        A value in 0..1; NaN where all labels are equal.

    Raises:
        ValueError: the lengths differ or a value is not finite.
    """
    return Pairs.of(scores, labels).accuracy_ignoring_ties


def tau_23(scores: ArrayLike, labels: ArrayLike) -> float:
    """Kendall's tau that rewards predicted ties: (right - wrong) / all pairs, without threshold.

    Args:
        scores: shape (n,), finite.
        labels: shape (n,), finite.

    Returns:
        A value in -1..1, twice the accuracy at threshold 0 less 1; NaN for fewer than two items.

    Raises:
        ValueError: the lengths differ or a value is not finite.
    """
    return 2.0 * pairwise_accuracy(scores, labels) - 1.0
