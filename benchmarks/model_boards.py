"""Text-to-image models: people's ratings, means and tests by one metric, consensus of several, ordering record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray, extreme_unit
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.families.rating import RatingAnswers
from benchmarks.schema import Answers, Benchmark
from benchmarks.statistics.better_or_tied import (
    difference_p_on_boards,
    least_prompts,
    paired_differences,
)
from benchmarks.statistics.intervals import acceleration, bca
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.ordering import GECKO_LEVEL, Relation, relation
from benchmarks.statistics.paired import TStatistics, t_statistics


@dataclass(frozen=True)
class SliceScores:
    """Scores of M models by one metric on the n prompts of a slice.

    A model's mean is a ratio of two sums over prompts: of whole images all weights are 1; of
    elements a prompt weighs as much as it has elements (EvalMuse-40K, Table 10).
    """

    sums: FloatArray  # shape (n, M), summed scores of each prompt; 0 where there is none
    weights: FloatArray  # shape (n, M), how many scores were summed; 0 where there is none
    plain: bool = False  # whether every weight is 0 or 1

    @classmethod
    def of_prompts(cls, values: FloatArray) -> SliceScores:
        """Scores from a value for each prompt and model, shape (n, M); NaN where there is none."""
        there = np.isfinite(values)
        return cls(np.where(there, values, 0.0), there.astype(np.float64), plain=True)

    @classmethod
    def of_elements(cls, scores: FloatArray, prompts: IntArray, n_prompts: int) -> SliceScores:
        """Scores of elements.

        `scores` (E, M), NaN where there is none; `prompts` (E,), place of each element's prompt in
        the slice.
        """
        there = np.isfinite(scores)
        sums, weights = np.zeros((2, n_prompts, scores.shape[1]))
        np.add.at(sums, prompts, np.where(there, scores, 0.0))
        np.add.at(weights, prompts, there)
        return cls(sums, weights)

    def of_models(self, places: IntArray) -> SliceScores:
        """The scores of some models."""
        return SliceScores(self.sums[:, places], self.weights[:, places], self.plain)

    @cached_property
    def n_prompts(self) -> IntArray:
        """Shape (M,), prompts with a score."""
        return np.asarray((self.weights > 0).sum(axis=0), np.intp)

    @cached_property
    def means(self) -> FloatArray:
        """Shape (M,); NaN for a model without any score."""
        with np.errstate(invalid="ignore"):
            found: FloatArray = self.sums.sum(axis=0) / self.weights.sum(axis=0)
        return found

    @cached_property
    def by_prompt(self) -> FloatArray:
        """Shape (n, M), values whose mean over the prompts is the model's; NaN where there is none.

        Of a ratio these are the pseudo-values of its linearisation, R + (s - R w) / mean w, so
        that what holds for means of prompts holds for ratios too (Cochran 1977, section 2.11). Of
        plain values they are the values.
        """
        if self.plain:
            return np.where(self.weights > 0, self.sums, np.nan)
        with np.errstate(invalid="ignore"):
            mean_weight = self.weights.sum(axis=0) / self.n_prompts
            moved = (self.sums - self.means * self.weights) / mean_weight
        return np.where(self.weights > 0, self.means + moved, np.nan)

    @cached_property
    def unit(self) -> float:
        """1, or a power of two near the largest value where squares would leave their range."""
        return extreme_unit(self.by_prompt)

    @property
    def in_range(self) -> FloatArray:
        """`by_prompt` in this unit: no test depends on the unit of a score."""
        return self.by_prompt if self.unit == 1.0 else self.by_prompt / self.unit

    def resampled(self, counts: FloatArray) -> FloatArray:
        """The means in each resample of the prompts.

        `counts` (B, n), how often each prompt is drawn.
        Returns: shape (M, B); NaN where nothing with a score is drawn.
        """
        if self.plain and self.weights.all():
            drawn = counts.sum(axis=1)
        else:
            drawn = self.weights.T @ counts.T
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = (self.sums.T @ counts.T) / drawn
        return found


# Rated models of a benchmark of metrics.


TITLES: Mapping[str, str] = MappingProxyType(
    {
        "DALLE_3": "DALL-E 3",
        "Midjourney_6": "Midjourney v6",
        "DeepFloyd_I_XL_v1": "DeepFloyd-IF XL",
        "SDXL_Base": "Stable Diffusion XL",
        "SDXL_Turbo": "SDXL Turbo",
        "SDXL_2_1": "Stable Diffusion 2.1",
        "mini_dalle": "minDALL-E",
        "vq_diffusion": "VQ-Diffusion",
        "stable_diffusion_v1_1": "Stable Diffusion 1.1",
        "stable_diffusion_v1_5": "Stable Diffusion 1.5",
        "stable_diffusion_v2_1": "Stable Diffusion 2.1",
    }
)
"""Names of models in the papers, by those in the released files of GenAI-Bench and TIFA160."""
COMPARED_BY = "human_avg"
"""The gold of TIFA160 by which metrics are held against people: the paper compared models by it."""
_WHOSE = {COMPARED_BY: "TIFA’s", "dsg_likert": "DSG’s"}


@dataclass(frozen=True)
class RatedModels:
    """Ratings by prompt and model."""

    models: tuple[str, ...]  # names, in order of first appearance; M of them
    prompts: tuple[str, ...]  # ids, likewise; P of them
    images: pd.DataFrame  # columns `pair_id`, `prompt_id`, `model`; one row for each image
    # shape (P, M), mean rating of each prompt's images of each model; NaN without any
    people: FloatArray
    source: str  # whose ratings these are
    # skill to the ids of its prompts; a prompt may have none, or several
    skills: Mapping[str, frozenset[str]] = field(default_factory=dict)
    n_ratings: int = 0  # single ratings behind the means; 0 where they are not released
    note: str = ""  # what a reader must know of them; empty as a rule

    def arranged(self, scores: Mapping[str, float]) -> FloatArray:
        """Scores by pair id as shape (P, M): the mean over a prompt's images of a model."""
        values = np.array([scores.get(pair, np.nan) for pair in self.images["pair_id"]], np.float64)
        return _arranged(self.images, values, self.prompts, self.models)


def rated_models(answers: Answers) -> RatedModels | None:
    """The ratings by which metrics are held against people; None where nobody rated models."""
    found = ratings_by_gold(answers)
    return found.get(COMPARED_BY) or next(iter(found.values()), None)


def ratings_by_gold(answers: Answers) -> Mapping[str, RatedModels]:
    """The ratings of models on the same prompts in a benchmark's answers, by gold.

    Returns: One entry without a name where the benchmark has one gold; the gold of the headline
    first; nothing where nobody rated models on the same prompts.
    """
    if isinstance(answers, RatingAnswers):
        several = len(answers.facets) > 1
        found = {gold if several else "": _of_facet(answers, gold) for gold in answers.facets}
    elif isinstance(answers, EvalMuseAnswers):
        found = {"": _of_evalmuse(answers)}
    else:
        found = {}
    return {gold: rated for gold, rated in found.items() if len(rated.models) > 1}


def _of_facet(answers: RatingAnswers, facet: str) -> RatedModels:
    whose, of_facet = _WHOSE.get(facet, "its"), answers.facets[facet]
    rated = _rated(answers.images, of_facet.means, f"mean of {whose} ratings")
    prompts = answers.items.rows["prompt_id"]
    skills = {skill: frozenset(prompts[rows]) for skill, rows in answers.items.skills().items()}
    known = np.isfinite(of_facet.ratings)
    outside = int((of_facet.outside & known).sum())
    untagged = len(set(prompts).difference(*skills.values())) if skills else 0
    said = {
        "{} of the released ratings lie outside the scale; they count as released.": outside,
        "{} prompts without a tag count in the overall mean only.": untagged,
    }
    note = " ".join(text.format(n) for text, n in said.items() if n)
    return replace(rated, skills=skills, n_ratings=int(known.sum()), note=note)


def _of_evalmuse(answers: EvalMuseAnswers) -> RatedModels:
    # `img_path` is model and file: SDXL-Turbo/00805.png.
    model, slash, _ = (answers.images["pair_id"].str.rpartition("/")[i] for i in range(3))
    images = answers.images.assign(model=model)[slash == "/"]
    label = images["label"].to_numpy(np.float64)
    return _rated(images, label, "mean of its overall ratings")


def _rated(images: pd.DataFrame, ratings: FloatArray, source: str) -> RatedModels:
    named = images[["pair_id", "prompt_id", "model"]].reset_index(drop=True)
    models = tuple(dict.fromkeys(named["model"]))
    prompts = tuple(dict.fromkeys(named["prompt_id"]))
    people = _arranged(named, np.asarray(ratings, np.float64), prompts, models)
    return RatedModels(models, prompts, named, people, source)


def _arranged(
    images: pd.DataFrame, values: FloatArray, prompts: Sequence[str], models: Sequence[str]
) -> FloatArray:
    rows = pd.Index(prompts).get_indexer(pd.Index(images["prompt_id"]))
    columns = pd.Index(models).get_indexer(pd.Index(images["model"]))
    there = np.isfinite(values)
    total, count = np.zeros((2, len(prompts), len(models)))
    np.add.at(total, (rows[there], columns[there]), values[there])
    np.add.at(count, (rows[there], columns[there]), 1.0)
    with np.errstate(invalid="ignore"):
        found: FloatArray = total / count
    return found


@cache
def rating_benchmarks() -> Mapping[str, Benchmark]:
    """The benchmarks on which people rated models on the same prompts, by name."""
    # Importing these for whoever only wants the types would load every benchmark.
    from benchmarks.evalmuse.protocol import BENCHMARKS as EVALMUSE  # noqa: PLC0415
    from benchmarks.genai_bench.protocol import BENCHMARKS as GENAI  # noqa: PLC0415
    from benchmarks.tifa160.protocol import BENCHMARKS as TIFA  # noqa: PLC0415

    return MappingProxyType({one.name: one for one in (*GENAI, *TIFA, *EVALMUSE)})


_Read = Callable[[Path | None], RatedModels | None]


def readers() -> Mapping[str, _Read]:
    """Name of a benchmark to what reads its ratings of models.

    What is returned raises SubmitterError, `data_missing` or `data_malformed`.
    """

    def reading(benchmark: Benchmark) -> _Read:
        return lambda data: rated_models(benchmark.answers(data))

    return MappingProxyType({name: reading(one) for name, one in rating_benchmarks().items()})


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
        rated = np.round(people[:, a] - people[:, b], _DIGITS)
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
        scores.n_prompts,
    )


@dataclass(frozen=True)
class Tests:
    """Tests between each two of M models by each of J metrics; see `compared`."""

    __test__ = False  # pytest: not a class of tests

    # shape (J, M, M), mean of a (second axis) less b over their common prompts
    difference: FloatArray
    # shape (J, M, M), two-sided p-values; NaN where two models share too few prompts
    p: FloatArray
    # shape (J, M, M), after Holm over all pairs and metrics together; NaN likewise and on the
    # diagonal
    corrected: FloatArray

    def relations(self, level: float = LEVEL) -> IntArray:
        """Shape (J, M, M): 1 where a is significantly better by a metric, -1 where b is, else 0."""
        told = self.corrected < level
        return np.where(told, np.sign(np.nan_to_num(self.difference)), 0.0).astype(np.intp)


_PAIRS_AT_A_TIME = 512
"""Pairs of models whose differences are taken at a time."""


def compared(scores: SliceScores) -> TStatistics:
    """Each two models by one metric: Student's paired t, and the p-value of the boards.

    That asks more than t (`better_or_tied.difference_p_on_boards`), and is NaN where two models share
    fewer prompts than `least_prompts`. Differences are in units of `SliceScores.in_range`.
    """
    values = scores.in_range
    found = t_statistics(values)
    p = np.full(found.p.shape, np.nan)
    a, b = np.nonzero(np.triu(found.n >= least_prompts(values.shape[1]), 1))
    by_model = np.ascontiguousarray(values.T)
    for begin in range(0, a.size, _PAIRS_AT_A_TIME):
        one, other = a[begin : begin + _PAIRS_AT_A_TIME], b[begin : begin + _PAIRS_AT_A_TIME]
        apart = paired_differences(by_model[one], by_model[other])
        p[one, other] = p[other, one] = difference_p_on_boards(apart)
    return replace(found, p=p)


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
