"""What is simulated: measures, clusters, ties, and metrics that are or are not exchangeable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.statistics.calibration.designs import Design, Noise

SAME = (Noise(0.8, 0.4), Noise(0.8, 0.4))
"""Exchangeable metrics: noise of items and of clusters."""
DIFFERENT = (Noise(0.9, 0.0), Noise(0.0, 0.9))
"""One true value, but the first metric has noise of items only, the second of clusters only."""
BETTER = (Noise(0.8, 0.4), Noise(1.1, 0.4))
"""The first metric is better."""

CORRELATIONS = {"Pearson": "pearson", "Spearman": "spearman", "Kendall": "kendall"}
"""Measures that PERM-BOTH tests, and their names there."""
_NAMES = {SAME: "same", DIFFERENT: "different", BETTER: "better"}
_SIZES = (5, 20)
_SMALL = (5, 5)


@dataclass(frozen=True)
class Scenario:
    """A measure on a design.

    Attributes:
        measure: one of `measures.MEASURES`.
        design: the simulated benchmark.
        repetitions_share: of the repetitions asked for, less than 1 where these are slow or power
            is looked at.
    """

    measure: str
    design: Design
    repetitions_share: float = 1.0

    @property
    def noises(self) -> str:
        """How the two metrics differ: `same`, `different` or `better`; other noises in figures."""
        figures = (f"{one.item}:{one.cluster}" for one in self.design.noises)
        return _NAMES.get(self.design.noises) or " ".join(figures)

    @property
    def null(self) -> bool:
        """Whether both metrics have the same true value."""
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
        return f"{self.measure}, {self.noises}, C={self.design.n_clusters}, {sizes}, {self.ties}"


def scenarios() -> tuple[Scenario, ...]:
    """All of the report."""
    return (*_correlations(), *_means(), *_nonlinear(), *_power())


def quick_scenarios() -> tuple[Scenario, ...]:
    """One of each kind, small."""
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
        yield Scenario("tie-calibrated", _tied(n_clusters, _SMALL, SAME))


def _power() -> Iterator[Scenario]:
    for measure in CORRELATIONS:
        yield Scenario(measure, _tied(100, _SMALL, BETTER), 0.25)
    yield Scenario("accuracy", Design(100, _SMALL, BETTER, "margin", score_levels=9), 0.25)
    yield Scenario("chain rank", Design(100, _SIZES, BETTER, "order", score_levels=9), 0.25)
