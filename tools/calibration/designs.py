"""Simulated benchmarks of the calibration study: designs, scenarios and their true values."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from scipy import stats
from scipy.special import expit

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.families.system import SystemAnswers
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark
from benchmarks.statistics import correlation, samples, thresholds
from benchmarks.statistics.correlation import (
    Groups,
    resampled_pearson,
    resampled_spearman,
    spearman_by_group,
)
from benchmarks.statistics.detection import auroc, average_precision, better_worse_auc
from benchmarks.statistics.intervals import MAX_BLOCKS
from benchmarks.statistics.kendall import resampled_kendall
from benchmarks.statistics.logistic import BestCurves, plcc
from benchmarks.statistics.pairwise_accuracy import PairForms, tie_calibrated
from benchmarks.statistics.perm_both import Statistic
from benchmarks.statistics.resampling import resampled_mean
from benchmarks.statistics.systems import Judge

_HALF_RANGE = 1.5
"""Levels are cut evenly between minus and plus so many standard deviations of the quality."""

_STEP = 0.15
"""By so many standard deviations of the quality a model is better than the one before."""


@dataclass(frozen=True)
class Noise:
    """Noise of a metric: standard deviations, in units of the quality's."""

    item: float  # of independent noise of each item
    cluster: float  # of noise that all items of a cluster share


@dataclass(frozen=True)
class Design:
    """A distribution of benchmarks.

    The quality of an item is normal with variance 1, of which `shared` lies between clusters; a
    metric sees it with noise. Where two metrics have noise of one total variance, and each item
    is looked at alone, they cannot be told apart: pooled measures have the same true value.
    """

    n_clusters: int  # number C of clusters
    sizes: tuple[int, int]  # fewest and most items of a cluster; each number between is as likely
    noises: tuple[Noise, ...]  # of each metric
    # what the gold is: `rating` (quality with noise of raters), `margin` (none: an item is right
    # where its score is above 0), `order` (place in a chain that is a cluster), `label` (whether
    # the quality with noise of raters is above 0), `models` (rating of an image by each of as many
    # models as a cluster, which is a prompt, has items; each model is better than the one before)
    # `evalmi`: prompts drawn from those of EvalMi, with what people said there of 24 models
    kind: Literal["rating", "margin", "order", "label", "models", "evalmi"] = "rating"
    shared: float = 0.3  # share of the quality's variance between clusters, 0..1
    rater: float = 0.5  # standard deviation of the raters' noise
    # by how many standard deviations of the quality a metric misjudges a model at most; for `models`
    misjudged: float = 0.0
    # ratings are rounded to so many levels, an odd number; None: they are not
    gold_levels: int | None = None
    score_levels: int | None = None  # the same for scores
    together: float = 0.0  # share of the noise's variance that all metrics have in common, 0..1

    def with_clusters(self, n_clusters: int) -> Design:
        """The same distribution with another number of clusters."""
        return replace(self, n_clusters=n_clusters)

    def single_items(self, n_items: int) -> Design:
        """Independent items of the same distribution, each a cluster of its own."""
        return replace(self, n_clusters=n_items, sizes=(1, 1))


@dataclass(frozen=True)
class Sample:
    """Simulated benchmark."""

    scores: FloatArray  # shape (n, M)
    gold: FloatArray  # shape (n,)
    clusters: IntArray  # shape (n,), ascending, 0..C-1
    n_clusters: int  # number C of clusters


def drawn(design: Design, rng: np.random.Generator) -> Sample:
    """A benchmark of this design."""
    if design.kind == "evalmi":
        return _of_evalmi(design, rng)
    fewest, most = design.sizes
    sizes = rng.integers(fewest, most, design.n_clusters, endpoint=True)
    clusters = np.repeat(np.arange(design.n_clusters), sizes)
    between, within = np.sqrt(design.shared), np.sqrt(1.0 - design.shared)
    quality = between * rng.normal(size=design.n_clusters)[clusters]
    quality += within * rng.normal(size=clusters.size)
    place = np.arange(clusters.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    if design.kind == "models":
        quality += _STEP * place
    noise = _noise(design, clusters, rng)
    rated = quality + design.rater * rng.normal(size=clusters.size)
    if design.kind == "order":
        scores = place[:, None] / 4.0 + quality[:, None] + noise
        gold = place.astype(np.float64)
        return Sample(_rounded(scores, design.score_levels), gold, clusters, len(sizes))
    if design.kind == "margin":
        scores = 0.5 + quality[:, None] + noise
        return Sample(_rounded(scores, design.score_levels), rated, clusters, len(sizes))
    if design.kind == "label":
        scores = expit(quality[:, None] + noise)
        return Sample(scores, (rated > 0.0).astype(np.float64), clusters, len(sizes))
    gold = _rounded(rated, design.gold_levels)
    quality += design.misjudged * np.sin(2.0 * place)
    scores = _rounded(quality[:, None] + noise, design.score_levels)
    return Sample(scores, gold, clusters, len(sizes))


def _of_evalmi(design: Design, rng: np.random.Generator) -> Sample:
    """Prompts of EvalMi; metrics see what people said with noise, and misjudge each model."""
    people = _said_of_evalmi()
    clusters = np.repeat(np.arange(design.n_clusters), people.shape[1])
    gold = people[rng.integers(0, len(people), design.n_clusters)].ravel()
    models = np.tile(np.arange(people.shape[1]), design.n_clusters)
    seen = gold + design.misjudged * np.sin(2.0 * models)
    return Sample(seen[:, None] + _noise(design, clusters, rng), gold, clusters, design.n_clusters)


def _evalmi() -> tuple[Benchmark, Path | None]:
    """The benchmark, and where its data are."""
    folder = os.environ.get("ASSAY_DATA", "")
    return load_registry(cards=())["evalmi_systems"], Path(folder) if folder else None


@cache
def _said_of_evalmi() -> FloatArray:
    """Mean ratings by prompt and model, (P, 24), in standard deviations; read from `ASSAY_DATA`."""
    benchmark, data = _evalmi()
    answers = benchmark.answers(data)
    assert isinstance(answers, SystemAnswers)
    said = answers.arranged(answers.rated)
    found: FloatArray = (said - said.mean()) / said.std()
    return found


def _noise(design: Design, clusters: IntArray, rng: np.random.Generator) -> FloatArray:
    """Shape (n, M)."""
    by_item = _normal(design, clusters.size, rng) * [one.item for one in design.noises]
    by_cluster = _normal(design, design.n_clusters, rng) * [one.cluster for one in design.noises]
    total: FloatArray = by_item + by_cluster[clusters]
    return total


def _normal(design: Design, n: int, rng: np.random.Generator) -> FloatArray:
    """Standard normal numbers of n units for each metric, shape (n, M)."""
    own: FloatArray = rng.normal(size=(n, len(design.noises)))
    if not design.together:
        return own
    shared = rng.normal(size=(n, 1))
    parts = np.sqrt(design.together) * shared, np.sqrt(1.0 - design.together) * own
    return np.asarray(parts[0] + parts[1], np.float64)


def _rounded(values: FloatArray, levels: int | None) -> FloatArray:
    """Values rounded to whole levels around 0, beyond the outer ones cut off."""
    if levels is None:
        return values
    width, most = 2.0 * _HALF_RANGE / levels, levels // 2
    cut: FloatArray = np.clip(np.round(values / width), -most, most)
    return cut


Area = Callable[[FloatArray, BoolArray, IntArray, FloatArray], FloatArray]
"""From scores, labels, clusters and multiplicities to values, shape (D,)."""
Draws = Callable[[Sample, FloatArray], FloatArray]
"""From a sample and multiplicities of its clusters, shape (D, C), to values, shape (D, M)."""


def pearson(sample: Sample, counts: FloatArray) -> FloatArray:
    """Pearson's r over all items."""
    return resampled_pearson(sample.scores, sample.gold, counts, sample.clusters)


def spearman(sample: Sample, counts: FloatArray) -> FloatArray:
    """Spearman's rho over all items."""
    return resampled_spearman(sample.scores, sample.gold, counts, sample.clusters)


def kendall(sample: Sample, counts: FloatArray) -> FloatArray:
    """Kendall's tau-b over all items."""
    return resampled_kendall(sample.scores, sample.gold, counts, sample.clusters)


def spearman_within(sample: Sample, counts: FloatArray) -> FloatArray:
    """Mean over clusters of Spearman's rho within each, where it is defined, as within prompts."""
    groups = Groups.of(sample.clusters, sample.n_clusters)
    return resampled_mean(spearman_by_group(sample.scores, sample.gold, groups), counts)


def fitted_pearson(sample: Sample, counts: FloatArray) -> FloatArray:
    """PLCC: Pearson's r of the gold and the logistic curve from scores to it."""
    return _fitted(sample, counts)[0]


def fitted_error(sample: Sample, counts: FloatArray) -> FloatArray:
    """RMSE of the same curve."""
    return _fitted(sample, counts)[1]


def _fitted(sample: Sample, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """PLCC and RMSE: of the fit in the first draw, which is the sample, else of the best curve."""
    values, errors = np.empty((2, len(counts), 2))
    for metric, scores in enumerate(sample.scores.T):
        fit = plcc(scores, sample.gold)
        curves = BestCurves(scores, sample.gold, counts[1:], sample.clusters)
        values[:, metric] = np.append(fit.value, curves.plcc)
        errors[:, metric] = np.append(fit.rmse, curves.rmse)
    return values, errors


def agreement_over_models(measure: str) -> Draws:
    """Agreement of two orders of models, whose intervals are of studies with as many prompts."""

    def of_sample(sample: Sample, counts: FloatArray) -> FloatArray:
        n_blocks = min(sample.n_clusters, MAX_BLOCKS)
        resamples = slice(1, max(1, len(counts) - 2 * n_blocks))
        people, *metrics = (
            Judge(values.reshape(sample.n_clusters, -1), counts, resamples, 0)
            for values in (sample.gold, *sample.scores.T)
        )
        return np.column_stack([people.agreement(metric, measure) for metric in metrics])

    return of_sample


def accuracy(sample: Sample, counts: FloatArray) -> FloatArray:
    """Share of items whose margin is above 0: ties are failures, as in CROC."""
    right = (sample.scores > 0.0).astype(np.float64)
    items = np.ones((len(right), 1))
    sums = samples.sum_by_cluster(np.hstack([right, items]), sample.clusters, sample.n_clusters)
    totals = counts @ sums
    share: FloatArray = totals[:, :-1] / totals[:, -1:]
    return share


def margin_auc(sample: Sample, counts: FloatArray) -> FloatArray:
    """Area under the curve of margins seen from the better side, as on boards of preferences."""
    drawn = (better_worse_auc(one, sample.clusters, counts) for one in sample.scores.T)
    return np.column_stack(list(drawn))


def label_auroc(sample: Sample, counts: FloatArray) -> FloatArray:
    """Area under the receiver operating characteristic of labels, as on boards of elements."""
    return _of_labels(auroc, sample, counts)


def label_precision(sample: Sample, counts: FloatArray) -> FloatArray:
    """Average precision of labels, as on boards of elements."""
    return _of_labels(average_precision, sample, counts)


def _of_labels(area: Area, sample: Sample, counts: FloatArray) -> FloatArray:
    there = sample.gold > 0.0
    drawn = (area(one, there, sample.clusters, counts) for one in sample.scores.T)
    return np.column_stack(list(drawn))


def chain_rank(sample: Sample, counts: FloatArray) -> FloatArray:
    """Mean over clusters of Spearman's rho of scores and places, as for the graphs of TS2."""
    return resampled_mean(_rho_by_cluster(sample), counts)


def tie_calibrated_accuracy(sample: Sample, counts: FloatArray) -> FloatArray:
    """Pairwise accuracy at the threshold that is best in the sample (Deutsch et al. 2023)."""
    found = np.empty((len(counts), 2))
    for metric, scores in enumerate(sample.scores.T):
        best = tie_calibrated(scores, sample.gold)
        forms = PairForms.of(
            scores, sample.gold, sample.clusters, sample.n_clusters, best.threshold
        )
        found[:, metric] = forms.drawn(counts).accuracy
    return found


def element_accuracy(sample: Sample, counts: FloatArray) -> FloatArray:
    """Accuracy of labels at the best threshold in steps of 0.01, searched anew in each draw."""
    items = counts @ np.bincount(sample.clusters, minlength=sample.n_clusters)
    grid = thresholds.threshold_grid(sample.scores)
    found = np.empty((len(counts), 2))
    for metric, scores in enumerate(sample.scores.T):
        right = thresholds.correct_by_cluster(
            scores, sample.gold > 0.0, sample.clusters, sample.n_clusters, grid
        )
        found[:, metric] = (counts @ right).max(axis=1) / items
    return found


SOFT = "soft pairwise"
OVER_MODELS: Mapping[str, Draws] = MappingProxyType(
    {
        SOFT: agreement_over_models("spa"),
        "pairs of models": agreement_over_models("pa"),
        "order of models": agreement_over_models("srcc"),
    }
)
"""Measures whose true value depends on the number of clusters, as their intervals say."""
MEASURES: Mapping[str, Draws] = MappingProxyType(
    {
        "Pearson": pearson,
        "Spearman": spearman,
        "Kendall": kendall,
        "Spearman within": spearman_within,
        "PLCC": fitted_pearson,
        "RMSE": fitted_error,
        **OVER_MODELS,
        "Spearman of models": spearman,
        "accuracy": accuracy,
        "AUC of margins": margin_auc,
        "AUROC": label_auroc,
        "average precision": label_precision,
        "chain rank": chain_rank,
        "tie-calibrated": tie_calibrated_accuracy,
        "element accuracy": element_accuracy,
    }
)


def _rho_by_cluster(sample: Sample) -> FloatArray:
    """Spearman's rho of both metrics within each cluster, shape (C, 2); 0 where scores are tied."""
    sizes = np.bincount(sample.clusters, minlength=sample.n_clusters)
    width = int(sizes.max(initial=0))
    inside = np.arange(width) < sizes[:, None]
    rho = np.zeros((sample.n_clusters, 2))
    places = np.where(inside, np.arange(width), np.nan)
    for metric, scores in enumerate(sample.scores.T):
        laid = np.full(inside.shape, np.nan)
        laid[np.repeat(np.arange(sizes.size), sizes), sample.gold.astype(np.intp)] = scores
        ranks = stats.rankdata(laid, axis=1, nan_policy="omit")
        x = ranks - np.nanmean(ranks, axis=1, keepdims=True)
        y = places - np.nanmean(places, axis=1, keepdims=True)
        spread = np.sqrt(np.nansum(x * x, axis=1) * np.nansum(y * y, axis=1))
        varied = spread > 0.0
        rho[varied, metric] = np.nansum(x * y, axis=1)[varied] / spread[varied]
    return rho


SAME = (Noise(0.8, 0.4), Noise(0.8, 0.4))
"""Exchangeable metrics: noise of items and of clusters."""
DIFFERENT = (Noise(0.9, 0.0), Noise(0.0, 0.9))
"""One true value, but the first metric has noise of items only, the second of clusters only."""
BETTER = (Noise(0.8, 0.4), Noise(1.1, 0.4))
"""The first metric is better."""

CORRELATIONS: Mapping[str, Statistic] = {
    "Pearson": "pearson",
    "Spearman": "spearman",
    "Kendall": "kendall",
}
"""Measures that PERM-BOTH tests, and their names there."""
_NAMES: Mapping[tuple[Noise, ...], str] = {SAME: "same", DIFFERENT: "different", BETTER: "better"}
_SIZES = (5, 20)
_SMALL = (5, 5)


@dataclass(frozen=True)
class Scenario:
    """A measure on a design."""

    measure: str  # one of `MEASURES`
    design: Design  # the simulated benchmark
    # of the repetitions asked for, less than 1 where these are slow or power is looked at
    repetitions_share: float = 1.0

    @property
    def noises(self) -> str:
        """Name of the metrics' noises: `same`, `different` or `better`; others in figures."""
        figures = (f"{one.item}:{one.cluster}" for one in self.design.noises)
        return _NAMES.get(self.design.noises) or " ".join(figures)

    @property
    def limit(self) -> Design:
        """The design that has the true value: of any number of clusters, but for `OVER_MODELS`."""
        return self.design if self.measure in OVER_MODELS else self.design.with_clusters(0)

    @property
    def null(self) -> bool:
        """True where both metrics have the same true value."""
        return self.design.noises != BETTER

    @property
    def ties(self) -> str:
        """Levels of gold and scores."""
        levels = self.design.gold_levels, self.design.score_levels
        return " / ".join("-" if n is None else str(n) for n in levels)

    @property
    def name(self) -> str:
        """Tells it from all others."""
        sizes = "-".join(map(str, self.design.sizes))
        if self.design.misjudged:
            sizes += f", misjudged {self.design.misjudged}"
        if self.design.kind == "evalmi":
            sizes += " of EvalMi"
        return f"{self.measure}, {self.noises}, C={self.design.n_clusters}, {sizes}, {self.ties}"


def scenarios() -> tuple[Scenario, ...]:
    """Scenarios of the report."""
    return (*_correlations(), *_means(), *_nonlinear(), *_power())


def quick_scenarios() -> tuple[Scenario, ...]:
    """Small scenarios, one of each kind."""
    tied = Design(30, _SIZES, DIFFERENT, gold_levels=5, score_levels=9)
    return (
        Scenario("Pearson", tied),
        Scenario("Kendall", tied),
        Scenario("accuracy", Design(30, _SIZES, DIFFERENT, "margin", score_levels=9)),
        Scenario("chain rank", Design(30, _SIZES, SAME, "order", score_levels=9)),
    )


def _correlations() -> Iterator[Scenario]:
    for measure in CORRELATIONS:
        slow = measure != "Pearson"
        for noises in (SAME, DIFFERENT):
            for n_clusters in (12, 30, 100):
                share = 0.5 if slow and n_clusters < 100 else 1.0
                yield Scenario(measure, _tied(n_clusters, _SIZES, noises), share)
        yield Scenario(measure, _tied(300, _SMALL, DIFFERENT))
        yield Scenario(measure, Design(100, _SIZES, SAME), 0.5 if slow else 1.0)
        yield Scenario(measure, Design(100, _SIZES, SAME, gold_levels=3, score_levels=3))


def _tied(n_clusters: int, sizes: tuple[int, int], noises: tuple[Noise, Noise]) -> Design:
    return Design(n_clusters, sizes, noises, gold_levels=5, score_levels=9)


def _means() -> Iterator[Scenario]:
    for n_clusters in (12, 30, 100, 300):
        for noises in (SAME, DIFFERENT):
            yield Scenario("accuracy", Design(n_clusters, _SIZES, noises, "margin", score_levels=9))
        yield Scenario("chain rank", Design(n_clusters, _SIZES, SAME, "order", score_levels=9))


def _nonlinear() -> Iterator[Scenario]:
    for noises in (SAME, DIFFERENT):
        for n_clusters in (30, 100, 300):
            yield Scenario("element accuracy", Design(n_clusters, _SIZES, noises, "label"))
    for n_clusters in (30, 100):
        for noises in (SAME, DIFFERENT):
            margins = Design(n_clusters, _SIZES, noises, "margin", score_levels=9)
            yield Scenario("AUC of margins", margins)
            labels = Design(n_clusters, _SIZES, noises, "label")
            yield Scenario("AUROC", labels)
            yield Scenario("average precision", labels)
        yield Scenario("tie-calibrated", _tied(n_clusters, _SMALL, SAME))
        yield Scenario("Spearman within", _tied(n_clusters, _SIZES, SAME))
        for measure in ("PLCC", "RMSE"):
            yield Scenario(measure, _tied(n_clusters, _SIZES, SAME), 0.5)
    for n_prompts in (60, 200, 600, 2000):
        for n_models in (6, 12, 24, 30):
            right = Design(n_prompts, (n_models, n_models), SAME, "models")
            for design in (right, replace(right, misjudged=0.5)):
                yield Scenario("pairs of models", design, 0.25)
                yield Scenario("order of models", design, 0.25)
                if n_prompts <= 200 and n_models <= 24:  # p-values of many pairs take long
                    yield Scenario(SOFT, design, 0.25)
    evalmi, data = _evalmi()
    sizes = (60, 200, 600, 2000) if evalmi.has_answers(data) else ()
    for n_prompts, misjudged in itertools.product(sizes, (0.05, 0.3)):
        of_people = Design(n_prompts, (24, 24), SAME, "evalmi", misjudged=misjudged)
        yield Scenario("pairs of models", of_people, 0.25)
        yield Scenario("order of models", of_people, 0.25)
    for n_models in (6, 12, 24):
        yield Scenario("Spearman of models", Design(n_models, (1, 1), SAME))


def _power() -> Iterator[Scenario]:
    for measure in CORRELATIONS:
        yield Scenario(measure, _tied(100, _SMALL, BETTER), 0.25)
    yield Scenario("accuracy", Design(100, _SMALL, BETTER, "margin", score_levels=9), 0.25)
    yield Scenario("chain rank", Design(100, _SIZES, BETTER, "order", score_levels=9), 0.25)


BATCHES = 10
ITEMS = 200_000
"""Independent items of a batch for measures that pool items: what infinitely many clusters give."""
PAIRED_ITEMS = 4_000
"""The same for measures of all pairs of items, 8 million of them."""
CHAINS = 10_000
"""Clusters of a batch for means over clusters."""
BENCHMARKS = 100
"""Benchmarks of a batch whose values are averaged: agreement depends on the number of clusters."""


@dataclass(frozen=True)
class Truth:
    """True values of both metrics, shape (2,), and their standard errors, shape (2,)."""

    value: FloatArray
    error: FloatArray


def truth(measure: str, design: Design, *, same: bool, seed: int, share: float = 1.0) -> Truth:
    """True values of a design by simulation; its number of clusters matters for `OVER_MODELS` alone.

    `same`: whether both metrics have one true value by construction: then both are averaged;
    `share`: of the sizes above that is simulated, for a quick look.
    """
    start = [seed, zlib.crc32(f"{measure} {Scenario(measure, design).limit}".encode())]
    found = np.stack(
        [_batch(measure, design, np.random.default_rng([*start, i]), share) for i in range(BATCHES)]
    )
    if same:
        found = np.tile(found.mean(axis=1, keepdims=True), 2)
    return Truth(found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(BATCHES))


def _batch(measure: str, design: Design, rng: np.random.Generator, share: float) -> FloatArray:
    if measure in ("chain rank", "Spearman within"):
        sample = drawn(design.with_clusters(int(CHAINS * share)), rng)
        return MEASURES[measure](sample, np.ones((1, sample.n_clusters))).ravel()
    if measure in OVER_MODELS:
        every = (drawn(design, rng) for _ in range(max(1, int(BENCHMARKS * share))))
        once = np.ones((1, design.n_clusters))
        values = np.stack([MEASURES[measure](one, once)[0] for one in every])
        return np.asarray(values.mean(axis=0), np.float64)
    paired = measure == "tie-calibrated"
    n_items = int(share * (PAIRED_ITEMS if paired else ITEMS))
    sample = drawn(design.single_items(n_items), rng)
    if paired:
        return np.array([tie_calibrated(x, sample.gold).accuracy for x in sample.scores.T])
    if measure == "Kendall":  # the coefficient of one sample is faster than that of resamples
        return np.array([correlation.kendall(x, sample.gold) for x in sample.scores.T])
    if measure in ("PLCC", "RMSE"):
        fits = [plcc(x, sample.gold) for x in sample.scores.T]
        return np.array([fit.value if measure == "PLCC" else fit.rmse for fit in fits])
    return MEASURES[measure](_as_one_cluster(sample), np.ones((1, 1))).ravel()


def _as_one_cluster(sample: Sample) -> Sample:
    return replace(sample, clusters=np.zeros_like(sample.clusters), n_clusters=1)
