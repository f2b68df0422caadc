"""Detection of what is there: areas under curves, and agreement of yes and no, in every resample.

Scores may be infinite, since a score that is missing can be put below or above all others. A
resample is a sample in which clusters stand as often as it draws them.

Margins are differences of two scores: Krasula, Fliegel, Le Callet, Klíma: On the accuracy of objective
image and video quality models, QoMEX 2016.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray

_CELLS_AT_ONCE = 1 << 22
"""Draws of scores held at a time: 32 MiB."""


def auroc(
    scores: FloatArray, positive: BoolArray, clusters: IntArray, counts: FloatArray
) -> FloatArray:
    """Area under the receiver operating characteristic: chance that a positive has the higher score.

    Equal scores count half (Mann and Whitney's U over both numbers).

    `scores` (n,), not NaN; `positive` (n,); `clusters` (n,), column of `counts` of each; `counts`
    (B, C), multiplicities of the clusters.
    Returns: shape (B,), 0..1; NaN where a resample lacks positives or negatives.
    """
    apart = positive.astype(np.float64)
    found, n_positive, n_negative = won_by_level(scores, apart, 1.0 - apart, clusters, counts)
    return ratio(found, 2.0 * n_positive * n_negative)


def average_precision(
    scores: FloatArray, positive: BoolArray, clusters: IntArray, counts: FloatArray
) -> FloatArray:
    """Mean over positives of the precision among all that score at least as high.

    The step-wise area under the precision-recall curve, sum (R_k - R_k-1) P_k over the distinct
    scores from the highest down; nothing is interpolated.

    Arguments as of `auroc`. Returns: shape (B,), 0..1; NaN where a resample lacks positives.
    """
    apart = positive.astype(np.float64)
    found = np.full(len(counts), np.nan)
    # From the highest score down.
    for part, mine, theirs in _levels(-scores, apart, 1.0 - apart, clusters, counts):
        hits = np.cumsum(mine, axis=0)
        reached = hits + np.cumsum(theirs, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            precision = np.where(mine > 0, hits / reached, 0.0)
            found[part] = np.einsum("gb,gb->b", mine, precision) / mine.sum(axis=0)
    return found


def expected_average_precision(n: int, n_positive: int) -> float:
    """Average precision that scores in random order reach in the mean.

    At place k a positive has k - 1 places above it, each positive with chance (P - 1)/(n - 1): the
    mean over k of [1 + (k - 1)(P - 1)/(n - 1)]/k. A little above the share of positives.

    Returns: 0..1; NaN without positives.
    """
    if not n_positive:
        return np.nan
    others = (n_positive - 1) / max(n - 1, 1)
    harmonic = float((1.0 / np.arange(1, n + 1)).sum())
    return (harmonic + others * (n - harmonic)) / n


def won_by_level(
    values: FloatArray, won: FloatArray, rivals: FloatArray, clusters: IntArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum of won_i rival_j [(v_i > v_j) + (v_i >= v_j)] in each resample; sums of both; (B,) each."""
    found = np.zeros((3, len(counts)))
    for part, mine, theirs in _levels(values, won, rivals, clusters, counts):
        up_to = np.cumsum(theirs, axis=0)
        found[0, part] = np.einsum("gb,gb->b", mine, 2.0 * up_to - theirs)
        found[1, part], found[2, part] = mine.sum(axis=0), theirs.sum(axis=0)
    return found[0], found[1], found[2]


def _levels(
    values: FloatArray, one: FloatArray, other: FloatArray, clusters: IntArray, counts: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Resamples, and the sums of both weights there by ascending value, shape (levels, b) each."""
    from scipy import sparse  # noqa: PLC0415 (when it is used: the site keeps less in memory)

    levels, level = np.unique(values, return_inverse=True)
    shape = len(levels), counts.shape[1]
    first, second = (sparse.csr_array((each, (level, clusters)), shape) for each in (one, other))
    width = max(1, _CELLS_AT_ONCE // max(len(levels), 1))
    for start in range(0, len(counts), width):
        drawn = np.ascontiguousarray(counts[start : start + width].T)
        yield slice(start, start + width), first @ drawn, second @ drawn


def ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Quotients; NaN or infinite where the whole is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = part / whole
    return found


# Agreement of a yes or no with the truth, from four counts of any shape: hits (said and true), said,
# true, and all.


Agreement = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]


def accuracy(hits: FloatArray, said: FloatArray, true: FloatArray, n: FloatArray) -> FloatArray:
    """Share that is said as it is."""
    return ratio(n - said - true + 2.0 * hits, n)


def balanced_accuracy(
    hits: FloatArray, said: FloatArray, true: FloatArray, n: FloatArray
) -> FloatArray:
    """Mean of the shares of what is there and of what is not that is said as it is."""
    rejected = n - said - true + hits
    both: FloatArray = (ratio(hits, true) + ratio(rejected, n - true)) / 2.0
    return both


def f1(hits: FloatArray, said: FloatArray, true: FloatArray, n: FloatArray) -> FloatArray:
    """Harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN)."""
    del n
    return ratio(2.0 * hits, said + true)


def kappa(hits: FloatArray, said: FloatArray, true: FloatArray, n: FloatArray) -> FloatArray:
    """Cohen's kappa (1960): agreement beyond that of two raters who say yes as often, at random."""
    by_chance = ratio(said * true + (n - said) * (n - true), n**2)
    return ratio(accuracy(hits, said, true, n) - by_chance, 1.0 - by_chance)


AGREEMENTS: Mapping[str, Agreement] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
    "kappa": kappa,
}
"""Measure to its formula."""


def better_worse_auc(margins: FloatArray, clusters: IntArray, counts: FloatArray) -> FloatArray:
    """Chance that a margin seen from the better side exceeds one seen from the worse side.

    Every comparison is seen from both sides, so that no order of the sides matters: with d the
    margins, the share of all (i, j) with d_i + d_j > 0, those with 0 counting half. Of two margins
    the larger one decides, so one sort by size is enough for every resample.

    `margins` (n,), score of the preferred image less that of the other one, not NaN; `clusters`
    (n,), column of `counts` of each; `counts` (B, C), multiplicities of the clusters.
    Returns: shape (B,), 0..1; NaN where a resample holds none.
    """
    won = 0.5 * ((margins > 0).astype(np.float64) + (margins >= 0))
    found, _, total = won_by_level(np.abs(margins), won, np.ones(won.size), clusters, counts)
    return ratio(found, total**2)


def decided_tied_auc(
    margins: FloatArray, decided: BoolArray, clusters: IntArray, counts: FloatArray
) -> FloatArray:
    """Chance that a margin is larger where people decided than where they tied.

    `margins` (n,), not NaN; `decided` (n,); the others as for `better_worse_auc`.
    Returns: shape (B,), 0..1; NaN where a resample lacks decided or tied comparisons.
    """
    return auroc(np.abs(margins), decided, clusters, counts)
