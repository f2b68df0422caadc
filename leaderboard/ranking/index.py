"""Index over benchmarks, and Borda's count beside it. Pure functions of headline values.

The index of a metric is the weighted mean of its rescaled headlines,

    r_k = (value - chance_k) / (ceiling_k - chance_k),    index = sum_k w_k r_k / sum_k w_k,

over the benchmarks k it has: a missing one takes part in neither sum and never counts as zero.
Rescaling between chance and people is the normalised score of Mnih et al. 2015 (Human-level
control through deep reinforcement learning, Nature 518, evaluation procedure). Nothing is clipped:
below 0 is worse than chance, above 1 beyond the stated ceiling.

Borda's count is over benchmarks how many others a metric beats, not by how much: on one with n
metrics each gets a point for every other one it beats and half a point for every one it ties with
(Borda 1784; Black 1976, Partial justification of the Borda count, for ties; over benchmarks: Colombo
et al. 2022, What are the best systems?, arXiv:2202.03799). The Borda share is
sum_k w_k p_k / sum_k w_k (n_k - 1) over the same benchmarks, where p_k are the points on benchmark k.
With every metric everywhere and equal weights this orders as the classical count. With partial
coverage it is the share of the comparisons a metric took part in: what it lacks neither helps nor
hurts.

Neither figure compares metrics that have different benchmarks, some of which are harder: whoever
may choose could choose the easy ones. Hence only metrics with all selected benchmarks get ranks.

Resample b of a metric joins resample b of all its benchmarks. All metrics share the resamples of a
benchmark, so differences between metrics are paired. Benchmarks must be independent, as they are
where they share no images: of two that do (genai_527 and genai_1600) one is to have weight 0, or
intervals are too narrow.

Tiers: each value is the sum of the contributions of its blocks of clusters (`statistics.influence`),
so the difference of two metrics' indices is one sum over the blocks of all benchmarks,

    index_a - index_b = Σ_k Σ_g d_kg,  d_kg = u_k (P_a,kg - P_b,kg) / (ceiling_k - chance_k),

with u_k = w_k / Σ w, and the joint tests of the boards (`statistics.joint_tests`) apply to it as it
stands: were two metrics exchangeable within clusters, each d_kg could as well have the other sign,
on every benchmark apart. Where metrics have equal indices although they differ on single benchmarks,
Σ d² is more than the variance of the sum, and the tests err to the side of no difference. Rank ranges
and tiers are made of these tests as on the boards (`rank_ranges`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.rows import notes
from benchmarks.schema import Scale
from benchmarks.statistics.intervals import bca
from benchmarks.statistics.joint_tests import JointTests
from leaderboard.ranking.rank_ranges import (
    RankRange,
    best_shares,
    draw_ranks,
    rank_ranges,
    tiers,
)


def borda_points(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points of the metrics of one benchmark, in the sample or in each resample.

    Args:
        values: shape (n, D), higher is better, one column per draw; a metric that is undefined
            in a draw (NaN) takes part in no comparison there.

    Returns:
        Points, shape (n, D), in 0..n - 1, NaN where undefined; and the number of others that
        each defined metric meets, shape (D,).
    """
    there = np.isfinite(values)
    absent = (~there).sum(axis=0)
    ranks = draw_ranks(np.where(there, values, -np.inf))
    points = (ranks.low + ranks.high) / 2.0 - 1.0 - absent
    return np.where(there, points, np.nan), np.maximum(there.sum(axis=0) - 1.0, 0.0)


def borda_share(
    points: Sequence[FloatArray], met: Sequence[FloatArray], weights: FloatArray
) -> FloatArray:
    """Points over comparisons: share = sum_k w_k points_k / sum_k w_k met_k.

    Args:
        points: per benchmark, shape (M, D); 0 for a metric that the benchmark lacks.
        met: per benchmark, how many others each metric of it meets, shape (D,).
        weights: shape (M, K), weight of each benchmark for each metric; 0 where it lacks it.

    Returns:
        Shape (M, D), in 0..1; NaN for a metric that meets nobody.
    """
    compared = weights @ np.stack(met)
    gained = sum_weighted(points, weights.max(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        share: FloatArray = gained / compared
    return share


def sum_weighted(parts: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
    """Sum of arrays of one shape with a weight each; a part of weight 0 is not looked at."""
    total, product = np.zeros_like(parts[0]), np.empty_like(parts[0])
    for part, weight in zip(parts, weights, strict=True):
        if weight:
            total += np.multiply(part, weight, out=product)
    return total


@dataclass(frozen=True)
class Headlines:
    """The headline measure on one benchmark of all metrics that have it."""

    benchmark: str  # registry name
    scale: Scale  # chance and ceiling of the headline
    metrics: tuple[str, ...]  # names, each once, in any order; n of them
    values: FloatArray  # shape (n,); NaN where the headline is undefined, which counts as missing
    # shape (n, B), resamples that the metrics share; NaN where undefined
    resamples: NDArray[np.floating]
    # shape (n, G), see `statistics.influence`; a row with NaN is not tested. None: nobody
    # is
    contributions: FloatArray | None = None
    n_clusters: IntArray | None = None  # shape (n,), behind each value; None where it is not known

    def __post_init__(self) -> None:
        n, b = len(self.metrics), self.resamples.shape[-1]
        if len(set(self.metrics)) != n:
            raise ValueError(f"a metric comes twice on {self.benchmark}")
        if self.values.shape != (n,) or self.resamples.shape != (n, b) or b == 0:
            raise ValueError(
                f"{n} metrics on {self.benchmark} need values of shape ({n},) and resamples of "
                f"shape ({n}, B), B > 0, not {self.values.shape} and {self.resamples.shape}"
            )
        if self.contributions is not None and len(self.contributions) != n:
            raise ValueError(f"{n} metrics on {self.benchmark} need as many contributions")
        if np.isinf(self.values).any() or np.isinf(self.resamples).any():
            raise ValueError(f"an infinite headline on {self.benchmark} has no place on a scale")


@dataclass(frozen=True)
class AlignedBoard:
    """A benchmark and all M metrics of a comparison; draw 0 is the sample, then B resamples."""

    present: BoolArray  # shape (M,), which metrics it has
    # shape (M, 1 + B), rescaled headlines; 0 where missing, NaN where undefined
    rescaled: FloatArray
    points: FloatArray  # shape (M, 1 + B), Borda points, likewise
    met: FloatArray  # shape (1 + B,), how many others each of its metrics meets
    # shape (M, G), contributions to the rescaled headlines; NaN for a metric that cannot be tested.
    # None: nobody can
    contributions: FloatArray | None = None
    # shape (M,), behind each value; infinite where it has none
    n_clusters: FloatArray | float = math.inf

    @property
    def nbytes(self) -> int:
        """What its arrays take in memory."""
        arrays = (self.present, self.rescaled, self.points, self.met, self.contributions)
        return sum(array.nbytes for array in arrays if array is not None)

    @classmethod
    def of(cls, board: Headlines, metrics: tuple[str, ...]) -> AlignedBoard:
        """Rescale the headlines of a benchmark and count its Borda points, once for all weights."""
        at = {metric: i for i, metric in enumerate(metrics)}
        defined = np.isfinite(board.values)
        rows = np.array([at[metric] for metric in board.metrics], np.intp)[defined]
        drawn = np.column_stack([board.values, board.resamples])[defined].astype(np.float64)
        scaled = (drawn - board.scale.chance) / (board.scale.ceiling - board.scale.chance)
        present = np.zeros(len(metrics), bool)
        present[rows] = True
        rescaled, points = np.zeros((2, len(metrics), drawn.shape[1]))
        rescaled[rows] = scaled
        points[rows], met = borda_points(scaled)
        contributions = _rescaled(board, rows, defined, len(metrics))
        n_clusters = np.full(len(metrics), math.inf)
        if board.n_clusters is not None:
            n_clusters[rows] = board.n_clusters[defined]
        return cls(present, rescaled, points, met, contributions, n_clusters)


def _rescaled(
    board: Headlines, rows: NDArray[np.intp], defined: BoolArray, n_metrics: int
) -> FloatArray | None:
    """Contributions of the metrics of a comparison, whose rows these are."""
    if board.contributions is None or not board.contributions.shape[1]:
        return None
    found = np.full((n_metrics, board.contributions.shape[1]), np.nan)
    found[rows] = board.contributions[defined] / (board.scale.ceiling - board.scale.chance)
    return found


def index_tests(contributions: Sequence[FloatArray], weights: FloatArray) -> JointTests:
    """Tests between the indices of each two metrics.

    Args:
        contributions: to the rescaled headline of each benchmark, shape (M, G) each, of the same
            metrics; those with NaN are not tested.
        weights: of the benchmarks, at least 0, one of them positive.
    """
    shares = np.asarray(weights, np.float64) / np.sum(weights)
    parts = [share * of for share, of in zip(shares, contributions, strict=True)]
    lengths = [part.shape[1] for part in parts]
    return JointTests.of(np.concatenate(parts, axis=1), _SEED, board_blocks=lengths)


__all__ = ["Comparison", "Headlines", "IndexRank", "Interval"]

NO_RESAMPLES = "no interval: a headline behind it is undefined in too many resamples"
ALONE = "no Borda share: there is no other metric on its benchmarks"
NOTHING_IN_COMMON = "no common index: no selected benchmark has every metric"
NOTHING = "none of the selected benchmarks"
_SEED = 0  # Of the signs
_DIGITS = 12  # Values that agree to so many decimals are tied: rounding has no say in a rank


class Interval(NamedTuple):
    """A value with its 95 % percentile interval; NaN what is undefined."""

    value: float
    low: float
    high: float


_UNDEFINED = Interval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class IndexRank:
    """Where one metric stands."""

    metric: str  # its name
    index: Interval  # over the selected benchmarks it has; 0 chance, 1 the ceilings, not clipped
    # the same over those that every metric with any has, which is comparable between all of
    # them; NaN where there is none
    common: Interval
    borda: Interval  # Borda share over the benchmarks it has, 0..1; NaN where it met nobody
    # rank of the index, with the ranks that the tests leave open; None unless it has every selected
    # benchmark
    rank: RankRange | None
    borda_rank: int | None  # of the Borda share, likewise
    # share of the resamples in which its index is the highest of the ranked metrics (a tie
    # is shared out); one that is undefined in a resample is not the best there. NaN without
    # a rank or without resamples
    best_share: float
    present: tuple[str, ...]  # selected benchmarks it has
    missing: tuple[str, ...]  # selected benchmarks it lacks: in no sum, and never zero
    note: str  # why something is absent; empty where nothing is
    # of the index among the ranked metrics, 1 is the best; None without a rank or where it
    # was not tested
    tier: int | None = None


class Comparison:
    """Metrics on benchmarks, ready to be weighed again and again.

    What no weight changes (rescaling, and Borda points in each resample) is worked out once.
    """

    def __init__(self, boards: Sequence[Headlines]) -> None:
        names = [board.benchmark for board in boards]
        if not boards or len(set(names)) != len(names):
            raise ValueError(f"one or more different benchmarks are compared, not {names}")
        if len({board.resamples.shape[1] for board in boards}) > 1:
            raise ValueError("benchmarks that are joined need the same number of resamples")
        # By name: no rounding may depend on the order in which they were given.
        ordered = sorted(boards, key=lambda board: board.benchmark)
        self.benchmarks = tuple(board.benchmark for board in ordered)
        self.metrics = tuple(sorted({metric for board in boards for metric in board.metrics}))
        self._parts = {board.benchmark: AlignedBoard.of(board, self.metrics) for board in ordered}

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        return sum(part.nbytes for part in self._parts.values())

    def index_ranks(self, weights: Mapping[str, float] | None = None) -> tuple[IndexRank, ...]:
        """Everybody's standing under these weights."""
        chosen = _selected(self.benchmarks, weights)
        parts = [self._parts[name] for name in chosen]
        return _index_ranks(self.metrics, tuple(chosen), parts, np.array(list(chosen.values())))


def _selected(benchmarks: tuple[str, ...], weights: Mapping[str, float] | None) -> dict[str, float]:
    """Benchmarks of positive weight, in their order; the largest weight becomes 1."""
    given = dict.fromkeys(benchmarks, 1.0) if weights is None else weights
    unlike = set(given) ^ set(benchmarks)
    if unlike:
        raise ValueError(f"each benchmark needs one weight; this does not fit: {sorted(unlike)}")
    for name, weight in given.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueError(f"a weight is a finite number of at least 0; {name} has {weight}")
    largest = max(given.values())
    if largest == 0:
        raise ValueError("all weights are 0; at least one must be positive")
    ratios = {name: given[name] / largest for name in benchmarks}  # may underflow to 0: left out
    return {name: ratio for name, ratio in ratios.items() if ratio > 0}


def _index_ranks(
    metrics: tuple[str, ...],
    chosen: tuple[str, ...],
    parts: Sequence[AlignedBoard],
    weights: FloatArray,
) -> tuple[IndexRank, ...]:
    present = np.column_stack([part.present for part in parts])
    full: BoolArray = np.asarray(present.all(axis=1))
    shared = present[present.any(axis=1)].all(axis=0)
    rescaled = [part.rescaled for part in parts]
    index = _mean(rescaled, weights, present)
    points, met = [part.points for part in parts], [part.met for part in parts]
    borda = borda_share(points, met, present * weights)
    fewest = np.min([np.broadcast_to(part.n_clusters, len(metrics)) for part in parts], axis=0)
    n_clusters = np.where(np.isfinite(fewest), fewest, 0).astype(np.intp)
    indices, bordas = _intervals(index, n_clusters), _intervals(borda, n_clusters)
    commons = [_UNDEFINED] * len(metrics)
    if shared.all():
        commons = indices
    elif shared.any():
        commons = _intervals(_mean(rescaled, weights * shared, present), n_clusters)
    tests = _tests([part.contributions for part in parts], weights, full)
    values, of_borda = (
        np.where(full, np.round(draws[:, 0], _DIGITS), np.nan) for draws in (index, borda)
    )
    ranks = rank_ranges(values, tests)
    borda_ranks = [one and one.rank for one in rank_ranges(of_borda)]
    best = best_shares(index[:, 1:], full)
    in_tiers = [None] * len(metrics) if tests is None else tiers(values, tests)
    found = []
    for i, metric in enumerate(metrics):
        has = tuple(name for name, there in zip(chosen, present[i], strict=True) if there)
        lacks = tuple(name for name in chosen if name not in has)
        of = indices[i], commons[i], bordas[i]
        note = _note(*of, has=has, lacks=lacks)
        places = ranks[i], borda_ranks[i], float(best[i])
        found.append(
            IndexRank(metric, *of, *places, present=has, missing=lacks, note=note, tier=in_tiers[i])
        )
    return tuple(sorted(found, key=_order))


def _mean(parts: Sequence[FloatArray], weights: FloatArray, present: BoolArray) -> FloatArray:
    """Weighted mean of what each metric has, shape (M, 1 + B); NaN where it has nothing."""
    # One after the other: a product of matrices rounds as its number of rows tells it to, and an
    # index may not depend on how many others there are.
    total = np.zeros(len(present))
    for there, weight in zip(present.T, weights, strict=True):
        total += there * weight
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: FloatArray = sum_weighted(parts, weights) / total[:, None]
    return mean


def _intervals(draws: FloatArray, n_clusters: IntArray) -> list[Interval]:
    """Percentile intervals, expanded as for the benchmark where the metric has the fewest clusters."""
    nowhere = np.full(len(draws), np.nan)  # several benchmarks have no influences of their own
    low, high = bca(draws[:, 0], draws[:, 1:], nowhere, n_clusters=n_clusters).ends
    ends = zip(draws[:, 0].tolist(), low.tolist(), high.tolist(), strict=True)
    return [Interval(*end) for end in ends]


def _tests(
    contributions: Sequence[FloatArray | None], weights: FloatArray, full: BoolArray
) -> JointTests | None:
    """Tests among the metrics with full coverage; None where a benchmark has no contributions."""
    known = [np.where(full[:, None], of, np.nan) for of in contributions if of is not None]
    return index_tests(known, weights) if len(known) == len(contributions) else None


def _note(
    index: Interval,
    common: Interval,
    borda: Interval,
    *,
    has: tuple[str, ...],
    lacks: tuple[str, ...],
) -> str:
    if not has:
        return f"no rank and no value: it has {NOTHING}"
    return notes(
        f"no rank: it has none on {', '.join(lacks)}" if lacks else "",
        NO_RESAMPLES if math.isnan(index.low) else "",
        NOTHING_IN_COMMON if math.isnan(common.value) else "",
        ALONE if math.isnan(borda.value) else "",
    )


def _order(standing: IndexRank) -> tuple[int, float, str]:
    value = round(standing.index.value, _DIGITS) if standing.present else 0.0
    return -len(standing.present), -value, standing.metric
