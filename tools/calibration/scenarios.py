"""Scenarios of the calibration study: which measures of which designs, and their true values."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.statistics import correlation
from benchmarks.statistics.logistic import plcc
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
from tools.calibration.designs import Design, Noise, Sample, drawn, evalmi
from tools.calibration.measures import CORRELATIONS, MEASURES, OVER_MODELS, SOFT

SAME = (Noise(0.8, 0.4), Noise(0.8, 0.4))
"""Exchangeable metrics: noise of items and of clusters."""
DIFFERENT = (Noise(0.9, 0.0), Noise(0.0, 0.9))
"""One true value, but the first metric has noise of items only, the second of clusters only."""
BETTER = (Noise(0.8, 0.4), Noise(1.1, 0.4))
"""The first metric is better."""

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
                yield Scenario("mean error of models", design, 0.25)
                yield Scenario("largest error of models", design, 0.25)
                if n_prompts <= 600 and n_models == 6:  # as many tests as draws of each pair
                    yield Scenario("related pairs of models", design, 0.125)
                if n_prompts <= 200 and n_models <= 24:  # p-values of many pairs take long
                    yield Scenario(SOFT, design, 0.25)
    ratings, data = evalmi()
    sizes = (60, 200, 600, 2000) if ratings.has_answers(data) else ()
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
