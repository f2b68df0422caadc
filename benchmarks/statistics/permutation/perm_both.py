"""PERM-BOTH: do two metrics correlate differently with the same gold? All pairs at once.

Deutsch, Dror and Roth (2021), "A statistical analysis of summarization evaluation metrics using
resampling methods", TACL 9, section 5: both inputs are standardised, their scores are swapped at
random, and the difference of the correlations is looked at again. The null hypothesis is that the
two metrics are exchangeable on every cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.permutation.pair_nulls import Statistic, nulls
from benchmarks.statistics.permutation.result import PairTable, PermutationTests
from benchmarks.statistics.permutation.sample import Sample, positions
from benchmarks.statistics.permutation.signs import SwapSigns

DEFAULT_DRAWS = 1000


def perm_both(
    scores: ArrayLike,
    gold: ArrayLike,
    statistic: Statistic,
    *,
    clusters: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_draws: int = DEFAULT_DRAWS,
    seed: int = 0,
) -> PermutationTests:
    """Test each pair of M metrics for a difference of their correlations with the gold.

    Scores of different metrics have different units, so swapping raw ones would mix, say, 0..1
    with 0..100, and the hybrids would follow the wider metric. Hence Pearson's r swaps z-scores,
    the rank correlations swap average ranks: both unchanged by what the correlation itself does
    not see. Where correlations are taken within groups, so is the standardisation. Equal ranks of
    two metrics are no tie of the data: see `tied`.

    A correlation that is undefined because a metric, or a hybrid, is constant in a group counts
    as 0. Groups of fewer than two items or of constant gold are left out for all metrics.

    One matrix product serves all pairs of metrics without ties, and all metrics where no cluster
    cuts a group. Ties in a metric cost about ten times as much per pair (tau by group with item
    swaps a thousand times): their denominators change with each draw.

    Swap signs are drawn for clusters in the order of their labels (of items, without labels), once
    for all pairs: the p-value of a pair does not depend on other metrics. Up to 12 clusters, all
    patterns are looked at instead; the p-value then does not depend on the seed either.

    Args:
        scores: shape (n, M); NaN where a score is missing. A pair is tested on the items that
            have both.
        gold: shape (n,), finite.
        statistic: `pearson`, `spearman` or `kendall` (tau-b).
        clusters: shape (n,), labels; the items of a cluster swap together. None: each by itself.
        groups: shape (n,), labels; the correlation is taken in each group, and averaged over
            the groups. None: over all items.
        n_draws: number K of patterns to draw, at least 1.
        seed: seed of the generator.

    Returns:
        Differences and two-sided p-values: the share of patterns with a difference as large as
        the observed one, (1 + hits) / (K + 1) for drawn ones. NaN, with a reason, where one of
        the metrics is constant on the items, the gold is constant, or there are fewer than two
        clusters. No pairs for M < 2.

    Raises:
        ValueError: shapes do not fit, a score is infinite, the gold is not finite, the statistic
            is unknown, or there are no draws.
    """
    x, y = checked(scores, gold)
    if statistic not in get_args(Statistic):
        raise ValueError(f"statistic {statistic!r} is none of {get_args(Statistic)}")
    rows = np.arange(y.size) if clusters is None else positions(clusters, y.size)
    within = None if groups is None else positions(groups, y.size)
    signs = SwapSigns(int(rows.max(initial=0)) + 1, n_draws, seed)
    table = PairTable.of(x.shape[1])
    for items, first, second in patterns(np.isfinite(x)):
        columns = np.unique(np.append(first, second))
        sample = Sample.of(
            x[np.ix_(items, columns)],
            y[items],
            None if within is None else within[items],
            rows[items],
            signs.n_clusters,
        )
        reasons = _undefined(sample)
        i, j = np.searchsorted(columns, first), np.searchsorted(columns, second)
        for pair in np.flatnonzero(np.isin(i, list(reasons)) | np.isin(j, list(reasons))):
            reason = reasons.get(int(i[pair])) or reasons[int(j[pair])]
            table.refuse(int(first[pair]), int(second[pair]), reason)
        good = ~(np.isin(i, list(reasons)) | np.isin(j, list(reasons)))
        table.fill(first[good], second[good], *_tested(sample, statistic, i[good], j[good], signs))
    return table.tests(signs.n_patterns, signs.exact)


def checked(scores: ArrayLike, gold: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Scores (n, M) and gold (n,) as arrays.

    Raises:
        ValueError: shapes do not fit, a score is infinite or the gold is not finite.
    """
    x, y = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    if x.ndim != 2 or y.ndim != 1 or len(x) != y.size:
        raise ValueError(f"scores {x.shape} and gold {y.shape} are not (n, M) and (n,)")
    if np.isinf(x).any():
        raise ValueError("a score is infinite; a missing one is NaN")
    if not np.isfinite(y).all():
        raise ValueError("the gold is not finite; leave items without gold out")
    return x, y


def patterns(present: BoolArray) -> Iterator[tuple[BoolArray, IntArray, IntArray]]:
    """Pairs of metrics, each with itself included, by the items that both have scores for.

    Args:
        present: shape (n, M).

    Yields:
        A mask of items (n,), and the two metrics of each pair.
    """
    bits = np.packbits(present.T, axis=1)
    first, second = np.triu_indices(len(bits))
    found: dict[bytes, list[int]] = {}
    for pair, (a, b) in enumerate(zip(first, second, strict=True)):
        found.setdefault((bits[a] & bits[b]).tobytes(), []).append(pair)
    for pairs in found.values():
        one, other = first[pairs[0]], second[pairs[0]]
        yield present[:, one] & present[:, other], first[pairs], second[pairs]


def _undefined(sample: Sample) -> dict[int, str]:
    """Metrics of the sample that cannot be tested, and why."""
    metrics = range(sample.scores.shape[1])
    if not sample.n_groups:
        return dict.fromkeys(metrics, "the gold is constant on the items that both have scores for")
    if (sample.clusters == sample.clusters[0]).all():
        return dict.fromkeys(metrics, "fewer than two clusters: there is nothing to swap")
    constant = (sample.scores == sample.scores[sample.starts][sample.group]).all(axis=0)
    return dict.fromkeys(np.flatnonzero(constant).tolist(), "a metric has constant scores")


def _tested(
    sample: Sample, statistic: Statistic, first: IntArray, second: IntArray, signs: SwapSigns
) -> tuple[FloatArray, FloatArray]:
    """Differences and p-values of some pairs, shape (P,) each."""
    observed, p_values = np.zeros(first.size), np.ones(first.size)
    others = np.flatnonzero(first != second)
    for rows, null in nulls(sample, statistic, first[others], second[others]):
        hits = np.zeros(rows.size, np.intp)
        for block in signs.blocks():
            hits += null.hits(block)
        observed[others[rows]] = null.observed
        p_values[others[rows]] = signs.p_values(hits)
    return observed, p_values
