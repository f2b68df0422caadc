"""Estimates of model quality by several metrics: consensus, contradictions, ordering record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.model_boards.rated_models import SliceScores
from benchmarks.statistics.intervals import acceleration, bca
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.ordering import GECKO_LEVEL, Relation, relation
from benchmarks.statistics.paired import TStatistics, t_statistics

# Record of a metric at ordering models.


_DIGITS = 9
"""Mean ratings are fractions such as 13/3. Their differences are rounded to this many digits, so
that equal ones are ties in the test and not two floats side by side."""


@dataclass(frozen=True)
class PairRelation:
    """Two models, by people and by a metric."""

    first: str  # one model
    second: str  # the other
    # 1 where people find the first better, -1 the second, 0 no significant difference
    people: Relation
    metric: Relation | None  # likewise by the metric; None where no prompt of both has its scores
    n_prompts: int  # with ratings and scores of both


@dataclass(frozen=True)
class OrderingRecord:
    """Relations of all pairs of models that people rated on the same prompts (Gecko).

    A relation is that of Wilcoxon's signed ranks on the values of the same prompts.
    """

    pairs: tuple[PairRelation, ...]  # each once, in the order of the models
    level: float = GECKO_LEVEL  # below which a p-value is significant

    @property
    def right(self) -> int:
        """Pairs that the metric relates as people do; one without scores is wrong."""
        return sum(pair.people == pair.metric for pair in self.pairs)

    @property
    def reversed(self) -> int:
        """Pairs that the metric orders significantly, and against the people's significant order."""
        return sum(pair.people * (pair.metric or 0) == -1 for pair in self.pairs)


def ordering_record(
    people: FloatArray, metric: FloatArray, models: Sequence[str], level: float = GECKO_LEVEL
) -> OrderingRecord:
    """Compare a metric's relations with the people's.

    `people` (P, M), mean rating of each prompt's image of each model; NaN where there is none;
    `metric` (P, M), its scores, higher is better; NaN likewise.
    """
    if people.shape != metric.shape or people.shape[1:] != (len(models),):
        raise ValueError(f"ratings {people.shape}, scores {metric.shape}, {len(models)} models")
    pairs = []
    for a, b in combinations(range(len(models)), 2):
        rated = _differences(people, a, b)
        rated_prompts = np.isfinite(rated)
        if not rated_prompts.any():
            continue
        scored = np.where(rated_prompts, metric[:, a] - metric[:, b], np.nan)
        there = np.isfinite(scored)
        pairs.append(
            PairRelation(
                models[a],
                models[b],
                _related(rated, level),
                _related(scored, level) if there.any() else None,
                int(there.sum()),
            )
        )
    return OrderingRecord(tuple(pairs), level)


def _differences(values: FloatArray, a: int, b: int) -> FloatArray:
    return np.asarray(np.round(values[:, a] - values[:, b], _DIGITS))


def _related(differences: FloatArray, level: float) -> Relation:
    return relation(differences, np.zeros_like(differences), level)


# Means of models by one metric.


LEVEL = 0.05
"""Level of all tests between models on a slice together, after Holm's correction."""


@dataclass(frozen=True)
class Estimates:
    """M models by one metric."""

    means: FloatArray  # shape (M,); NaN without a score
    # shape (M,), lower ends of 95 % intervals, BCa, prompts resampled; NaN below two prompts
    ci_low: FloatArray
    ci_high: FloatArray  # shape (M,), upper ends
    resamples: FloatArray  # shape (M, B), the means in each resample
    n_prompts: IntArray  # shape (M,), prompts with a score


def estimates(scores: SliceScores, counts: FloatArray) -> Estimates:
    """Means with their intervals.

    `counts` (B, n), how often each prompt is drawn in each resample.
    """
    resamples = scores.resampled(counts)
    values = scores.by_prompt
    moved = np.where(np.isfinite(values), values - scores.means, 0.0).T
    found = bca(scores.means, resamples, acceleration(moved), n_clusters=scores.n_prompts)
    # One prompt varies with nothing: an interval of no width promises too much.
    several = scores.n_prompts > 1
    return Estimates(
        scores.means,
        np.where(several, found.low, np.nan),
        np.where(several, found.high, np.nan),
        resamples,
        scores.n_prompts,
    )


@dataclass(frozen=True)
class Tests:
    """Student's paired t between each two of M models by each of J metrics."""

    __test__ = False  # pytest: not a class of tests

    # shape (J, M, M), mean of a (second axis) less b over their common prompts
    difference: FloatArray
    # shape (J, M, M), two-sided p-values; NaN where two models share fewer than two prompts
    p: FloatArray
    # shape (J, M, M), after Holm over all pairs and metrics together; NaN likewise and on the
    # diagonal
    corrected: FloatArray

    def relations(self, level: float = LEVEL) -> IntArray:
        """Shape (J, M, M): 1 where a is significantly better by a metric, -1 where b is, else 0."""
        told = self.corrected < level
        return np.where(told, np.sign(np.nan_to_num(self.difference)), 0.0).astype(np.intp)


def compared(scores: SliceScores, least: int = 2) -> TStatistics:
    """Student's paired t between each two models by one metric.

    `least`: prompts two models must share; below, they have no p-value. Differences are in units of
    `SliceScores.in_range`.
    """
    found = t_statistics(scores.in_range)
    return replace(found, p=np.where(found.n < least, np.nan, found.p))


def combine_tests(metrics: Sequence[TStatistics], n_models: int) -> Tests:
    """The tests of several metrics as one family.

    `metrics`: the tests of each, of the same models; may be none.
    """
    shape = (len(metrics), n_models, n_models)
    difference = np.array([one.difference for one in metrics]).reshape(shape)
    p = np.array([one.p for one in metrics]).reshape(shape)
    return Tests(difference, p, holm_over_metrics(p))


def holm_over_metrics(p: FloatArray) -> FloatArray:
    """Holm's correction over all pairs of models and all metrics.

    `p` (J, M, M), symmetric in the models.
    Returns: The same shape; NaN on the diagonal.
    """
    a, b = np.triu_indices(p.shape[-1], 1)
    corrected = np.full(p.shape, np.nan)
    corrected[:, a, b] = corrected[:, b, a] = holm(p[:, a, b])
    return corrected


# Consensus of several metrics.


@dataclass(frozen=True)
class Consensus:
    """Order of M models by several metrics, nothing averaged over them.

    A model is better than another where at least one metric says so with significance and none
    says the contrary; where metrics contradict each other, the two stay without an order.
    """

    better: BoolArray  # shape (M, M), whether a (first axis) is better than b
    disputed: BoolArray  # shape (M, M), whether metrics order the two in opposite ways; symmetric
    rank_low: IntArray  # shape (M,), 1 + the number of models that are better
    rank_high: IntArray  # shape (M,), M less the number of models that are worse
    order: IntArray  # shape (M,), places of the models, the first of the board first
    tiers: IntArray  # shape (M,), from 1; no two models of a tier are told apart


def consensus(relations: IntArray, lead: FloatArray) -> Consensus:
    """Join the relations that J metrics find.

    `relations` (J, M, M), 1 where a is better than b, -1 where it is worse, 0 where the metric does
    not tell; antisymmetric in the models; `lead` (M,), values by which models with equal rank
    ranges are put in order, higher first; NaN comes last.
    """
    above, below = (np.asarray(side.any(axis=0)) for side in (relations > 0, relations < 0))
    better: BoolArray = above & ~below
    n_models = len(lead)
    rank_low = 1 + better.sum(axis=0)
    rank_high = n_models - better.sum(axis=1)
    order = _in_order(better, np.lexsort((-np.nan_to_num(lead, nan=-np.inf), rank_high, rank_low)))
    return Consensus(
        better, above & below, rank_low, rank_high, order, tiers_down(better | better.T, order)
    )


def _in_order(better: BoolArray, preferred: IntArray) -> IntArray:
    """By rank range and value, save that nobody stands below a model that it is better than.

    Significance is no transitive relation, and only where it is would rank ranges alone do that.
    Of models that are better than each other in a circle, the preferred one comes first.
    """
    left = list(preferred)
    worse_than = better.sum(axis=0)
    found: list[int] = []
    while left:
        place = next((i for i in left if not worse_than[i]), left[0])
        left.remove(place)
        found.append(int(place))
        worse_than = worse_than - better[place]
    return np.array(found, np.intp)


def tiers_down(told: BoolArray, order: IntArray) -> IntArray:
    """Down the board, a model opens a new tier if it is told apart from any of the current one.

    `told` (M, M), whether two models are told apart; symmetric; `order` (K,), places of the models
    on the board, the first first; K <= M.
    Returns: shape (M,), tiers from 1; 0 for models that are not in the order.
    """
    tiers = np.zeros(len(told), np.intp)
    # Whether a model is told apart from any member of the current tier.
    apart = np.zeros(len(told), bool)
    tier = 0
    for place in order:
        if not tier or apart[place]:
            tier, apart = tier + 1, np.zeros(len(told), bool)
        apart |= told[place]
        tiers[place] = tier
    return tiers
