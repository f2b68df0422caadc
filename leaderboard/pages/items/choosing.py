"""Selection, order and totals of cases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from leaderboard.pages.items.cases import CaseSet, Standing
from leaderboard.pages.items.query import Show

BINS = 10
"""Of a histogram of shares."""
_FEWEST_CLUSTERS = 8
"""Below this an interval would say more than is known, as on the boards."""


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval over resampled clusters; NaN where there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Summary:
    """What one metric does on all the cases that are looked at.

    Attributes:
        entry_id: the metric.
        right: share of comparisons that it orders as people do.
        n_compared: comparisons, without those that lack a score.
        n_cases: cases.
        n_all_right: cases without a mistake.
        n_missing: pairs without a score.
        bins: shape (BINS,), cases by the share that is right in them.
    """

    entry_id: str
    right: Share
    n_compared: int
    n_cases: int
    n_all_right: int
    n_missing: int
    bins: IntArray


def summary(cases: CaseSet, standing: Standing, chosen: BoolArray) -> Summary:
    """Add up a metric over some cases (C,)."""
    share = standing.share[chosen]
    known = share[np.isfinite(share)]
    places = np.minimum((known * BINS).astype(np.intp), BINS - 1)
    return Summary(
        entry_id=standing.entry_id,
        right=_share(_resampled(cases, standing, chosen)),
        n_compared=int(standing.n_compared[chosen].sum()),
        n_cases=int(chosen.sum()),
        n_all_right=int((known == 1.0).sum()),
        n_missing=int(standing.n_missing[chosen].sum()),
        bins=np.bincount(places, minlength=BINS),
    )


def difference(cases: CaseSet, a: Standing, b: Standing, chosen: BoolArray) -> Share:
    """Share of a less that of b, both over the same resamples."""
    return _share(_resampled(cases, a, chosen) - _resampled(cases, b, chosen))


def listed(
    show: Show, cases: CaseSet, standings: tuple[Standing, ...], chosen: BoolArray
) -> IntArray:
    """Positions of the cases to list, in their order.

    `failures` are those in which the first metric is not all right or lacks a score, worst first;
    `disagreements` those in which a comparison comes out otherwise for the second, the greatest
    difference first (one of the two then disagrees with people); `all` are all, in the order of the
    benchmark.

    Args:
        show: which.
        cases: all of them.
        standings: of the first metric, and of the second where there is one.
        chosen: shape (C,), those with the skill and split that are looked at.
    """
    if show == "all" or not standings:
        return np.flatnonzero(chosen)
    a, size = standings[0], cases.size
    if show == "disagreements" and len(standings) > 1:
        b = standings[1]
        differ = np.nan_to_num(np.abs(a.outcome - b.outcome)) > 0
        n_differ = np.bincount(cases.case_of_comparison[differ], minlength=size)
        gap = np.nan_to_num(np.abs(a.share - b.share))
        kept = np.flatnonzero(chosen & (n_differ > 0))
        return kept[np.lexsort((-n_differ[kept], -gap[kept]))]
    missed = np.isnan(a.share) & (cases.compared > 0)
    kept = np.flatnonzero(chosen & ((a.share < 1.0) | missed))
    worst = np.nan_to_num(a.share[kept], nan=2.0)
    return kept[np.lexsort((-a.n_compared[kept], worst))]


def _resampled(cases: CaseSet, standing: Standing, chosen: BoolArray) -> FloatArray:
    """The share over the chosen cases: as they are, then in each resample of the clusters."""
    size = len(cases.clusters)
    of, right = cases.cluster_of[chosen], standing.n_right[chosen]
    per_cluster = np.stack(
        [
            np.bincount(of, weights=right, minlength=size),
            np.bincount(of, weights=standing.n_compared[chosen], minlength=size),
        ],
        axis=1,
    )
    inside = np.bincount(of, minlength=size) > 0
    sums = per_cluster.sum(axis=0)[None, :]
    if inside.sum() >= _FEWEST_CLUSTERS:
        sums = np.concatenate([sums, cases.plan.counts[:, inside] @ per_cluster[inside]])
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: FloatArray = sums[:, 0] / sums[:, 1]
    return shares


def _share(values: FloatArray) -> Share:
    draws = values[1:][np.isfinite(values[1:])]
    if not draws.size:
        return Share(float(values[0]), float("nan"), float("nan"))
    low, high = np.quantile(draws, [0.025, 0.975])
    return Share(float(values[0]), float(low), float(high))
