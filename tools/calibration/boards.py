"""Simulated boards of many metrics: false orders, ranks that are held, and what tests find."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics.intervals import PerturbedPlan, contributions
from benchmarks.statistics.joint_tests import LEVEL, JointTests
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.sign_flips import FIRST_DRAWS, pair_tests
from leaderboard.ranking.rank_ranges import rank_ranges, tiers
from tools.calibration.designs import Design, Noise, drawn
from tools.calibration.measures import MEASURES
from tools.calibration.scenarios import truth
from tools.calibration.trials import Rate, plan_of

Order = Literal["equal", "graded"]
_WORST, _BEST = 1.4, 0.6
"""Standard deviations of the noise of the worst and the best metric of a graded board."""
_EQUAL = 0.9
_TOGETHER = 0.5


@dataclass(frozen=True)
class BoardScenario:
    """A board of M metrics."""

    measure: str  # one of `MEASURES`
    n_metrics: int  # number M of metrics, even
    n_clusters: int
    order: Order  # all equal; or graded, two metrics of each true value
    unlike: bool  # whether every other metric has noise of clusters, and not of items
    repetitions_share: float = 1.0

    @property
    def name(self) -> str:
        """Tells it from all others."""
        noise = "unlike" if self.unlike else "like"
        return (
            f"board of {self.n_metrics}, {self.measure}, {self.order}, {noise} noise, "
            f"C={self.n_clusters}"
        )

    @property
    def design(self) -> Design:
        """The benchmark that the metrics are judged on."""
        n_values = self.n_metrics // 2
        sizes = np.linspace(_BEST, _WORST, n_values) if self.order == "graded" else [_EQUAL]
        spread = [float(s) for s in sizes for _ in range(self.n_metrics // len(sizes))]
        noises = tuple(
            Noise(0.0, size) if self.unlike and place % 2 else Noise(size, 0.0)
            for place, size in enumerate(spread)
        )
        kind: Literal["margin", "rating"] = "margin" if self.measure == "accuracy" else "rating"
        return Design(
            self.n_clusters, (5, 20), noises, kind, gold_levels=5, score_levels=9,
            together=_TOGETHER,
        )  # fmt: skip


@dataclass(frozen=True)
class BoardRates:
    """What came out on the simulated boards of a scenario; rates with their standard errors."""

    scenario: BoardScenario
    repetitions: int
    false_order: Rate  # boards on which a test puts a metric before one that is as good or better
    best_lost: Rate  # boards on which a best metric is called significantly worse than the best
    false_tier: Rate  # boards on which a best metric is not in the first tier
    ranks_held: Rate  # boards on which every rank range holds the true rank
    false_holm: Rate  # false orders by sign flips of each pair and Holm's correction
    power: Rate  # share of the pairs that differ in truth and are told apart
    power_holm: Rate

    def to_json(self) -> dict[str, Any]:
        """For a file; `from_json` reads it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> BoardRates:
        """From what `to_json` gave."""
        rest = {name: value for name, value in content.items() if isinstance(value, dict)}
        scenario = BoardScenario(**rest.pop("scenario"))
        rates = {name: Rate(**rate) for name, rate in rest.items()}
        return cls(scenario=scenario, repetitions=content["repetitions"], **rates)


def board_scenarios() -> Iterator[BoardScenario]:
    """Boards of the report."""
    for unlike, order in itertools.product((False, True), ("equal", "graded")):
        of: Order = "equal" if order == "equal" else "graded"
        for n_clusters in (12, 20, 30, 60, 100):
            yield BoardScenario("Spearman", 10, n_clusters, of, unlike)
        for n_clusters in (12, 30, 100, 300):
            yield BoardScenario("accuracy", 10, n_clusters, of, unlike)
            yield BoardScenario("accuracy", 60, n_clusters, of, unlike, 0.5)
        for n_clusters in (12, 30, 100):
            yield BoardScenario("Pearson", 30, n_clusters, of, unlike, 0.5)


def quick_boards() -> Iterator[BoardScenario]:
    """Small boards, one of each order."""
    yield BoardScenario("Spearman", 6, 30, "equal", unlike=True)
    yield BoardScenario("accuracy", 6, 30, "graded", unlike=False)


def simulated_boards(
    scenario: BoardScenario,
    repetitions: int,
    seed: int,
    share: float = 1.0,
    advance: Callable[[], object] = lambda: None,
) -> BoardRates:
    """Rates of a scenario; `share` as in `designs.truth`."""
    design = scenario.design
    true = _true_values(scenario.measure, design, seed, share)
    rng = np.random.default_rng([seed, zlib.crc32(scenario.name.encode())])
    plan = plan_of(design.n_clusters, int(rng.integers(2**31)), 2)
    signs = int(rng.integers(2**31))
    counts = np.vstack([np.ones(design.n_clusters), plan.counts])
    outcomes = []
    for _ in range(max(2, int(repetitions * scenario.repetitions_share))):
        places = rng.permutation(scenario.n_metrics)
        draws = MEASURES[scenario.measure](drawn(design, rng), counts).T[places]
        outcomes.append(_outcome(draws, plan, true[places], signs))
        advance()
    return BoardRates(
        scenario,
        len(outcomes),
        *(_rate(np.array(of_rate, np.float64)) for of_rate in zip(*outcomes, strict=True)),
    )


def _rate(found: FloatArray) -> Rate:
    error = found.std() / np.sqrt(found.size)
    return Rate(float(found.mean()), float(error))


@cache
def _true_values(measure: str, design: Design, seed: int, share: float) -> FloatArray:
    """Shape (M,); exactly equal where two metrics have noise of one size."""
    sizes = np.array([one.item + one.cluster for one in design.noises])
    found = truth(measure, design.with_clusters(0), same=False, seed=seed, share=share).value
    return np.array([found[sizes == size].mean() for size in sizes])


def _outcome(
    draws: FloatArray, plan: PerturbedPlan, true: FloatArray, seed: int
) -> tuple[float, ...]:
    """What happened on one board, in the order of the fields of `BoardRates`."""
    values = draws[:, 0]
    _, without, twice = plan.split(draws[:, 1:])
    shares = contributions(values, without, twice, np.ones(without.shape, bool))
    tests = JointTests.of(shares, seed)
    ranges = rank_ranges(values, tests)
    better = true[:, None] > true
    best = true == true.max()
    first = np.array([tier == 1 for tier in tiers(values, tests)])
    held = all(
        one is not None and one.low <= 1 + above and one.high >= len(true) - below
        for one, above, below in zip(ranges, better.sum(axis=0), better.sum(axis=1), strict=True)
    )
    of_holm = _by_holm(values, shares, seed)
    found = (
        (tests.better & ~better).any(),
        (best & (tests.p_best < LEVEL)).any(),
        (best & ~first).any(),
        held,
        (of_holm & ~better).any(),
        tests.better[better].mean() if better.any() else 0.0,
        of_holm[better].mean() if better.any() else 0.0,
    )
    return tuple(map(float, found))


def _by_holm(values: FloatArray, shares: FloatArray, seed: int) -> BoolArray:
    """Which metrics are better by each pair's own test and Holm's correction, shape (M, M)."""
    first, second = np.triu_indices(len(values), 1)
    p = holm(pair_tests(shares, first, second, seed, most_draws=FIRST_DRAWS).p_value)
    differs = np.zeros((len(values),) * 2, bool)
    differs[first, second] = differs[second, first] = p < LEVEL
    return np.asarray(differs & (values[:, None] > values))


def board_table(found: Sequence[BoardRates]) -> Iterator[tuple[str, ...]]:
    """The rows of the report, its head first; rates in per cent, ± one standard error."""
    yield (
        "measure", "metrics", "true values", "noise", "clusters", "boards", "false order", "a best lost",
        "a best not in tier 1", "all ranks held", "power", "Holm: false order", "Holm: power",
    )  # fmt: skip
    for one in found:
        of = one.scenario
        graded = of.order == "graded"
        yield (
            of.measure, str(of.n_metrics), of.order, "unlike" if of.unlike else "like",
            str(of.n_clusters), str(one.repetitions), _percent(one.false_order), _percent(one.best_lost),
            _percent(one.false_tier), _percent(one.ranks_held), _percent(one.power) if graded else "",
            _percent(one.false_holm), _percent(one.power_holm) if graded else "",
        )  # fmt: skip


def _percent(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} ± {100 * rate.error:.1f}"
