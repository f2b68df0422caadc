"""Repetitions of a scenario: coverage of intervals, error rates of tests, standard errors."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics import intervals
from benchmarks.statistics.intervals import (
    Intervals,
    PerturbedPlan,
    acceleration,
    contributions,
    influence,
)
from benchmarks.statistics.paired import paired_t, wilcoxon
from benchmarks.statistics.perm_both import perm_both
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan
from benchmarks.statistics.sign_flips import FIRST_DRAWS, pair_tests
from tools.calibration.designs import Design, Noise, Sample, drawn
from tools.calibration.measures import CORRELATIONS, MEASURES, OVER_MODELS
from tools.calibration.scenarios import Scenario, Truth

COVERAGE = 0.94, 0.96
REJECTION = 0.045, 0.055
OF_MODELS_SLACK = 0.001
"""An agreement of few models has few values, an interval may be one of them, and the mean of many studies
lies between two: it is held where it is so near an end."""


@dataclass(frozen=True)
class Rate:
    """A share of repetitions and its Monte Carlo standard error, both in 0..1."""

    value: float
    error: float

    @classmethod
    def of(cls, hits: BoolArray) -> Rate:
        """From what happened, shape (R,)."""
        share = float(hits.mean())
        return cls(share, math.sqrt(share * (1.0 - share) / hits.size))

    @classmethod
    def mean(cls, rates: Sequence[Rate]) -> Rate:
        """The mean of rates, its error as if they were independent."""
        errors = math.sqrt(sum(rate.error**2 for rate in rates))
        return cls(sum(rate.value for rate in rates) / len(rates), errors / len(rates))

    def within(self, target: tuple[float, float], slack: float = 0.0) -> bool:
        """True where a target is met, or missed by no more than `slack` standard errors."""
        low, high = target
        return low - slack * self.error <= self.value <= high + slack * self.error


@dataclass(frozen=True)
class Rates:
    """Rates of one scenario."""

    scenario: Scenario  # what was simulated
    repetitions: int  # number R
    truth: Truth  # true values of both metrics, with standard errors
    # of both metrics: mean of the values less the truth, in standard deviations
    bias: tuple[float, float]
    spread: tuple[float, float]  # of both metrics: standard deviation of the values
    coverage: Mapping[str, tuple[Rate, Rate]]  # by method, of both metrics
    # of both metrics: how often Assay's interval lies above the true value
    above: tuple[Rate, Rate]
    rejection: Mapping[str, Rate]  # by test

    @classmethod
    def of(cls, scenario: Scenario, truth: Truth, batches: Sequence[Trials]) -> Rates:
        """Rates of all batches of a scenario together."""
        values = np.concatenate([each.values for each in batches])
        above = np.concatenate([each.above for each in batches])
        spread = values.std(axis=0, ddof=1)
        bias = (values.mean(axis=0) - truth.value) / spread
        covered = {
            name: np.concatenate([each.covered[name] for each in batches])
            for name in batches[0].covered
        }
        rejected = {
            name: np.concatenate([each.rejected[name] for each in batches])
            for name in batches[0].rejected
        }
        return cls(
            scenario=scenario,
            repetitions=len(values),
            truth=truth,
            bias=(float(bias[0]), float(bias[1])),
            spread=(float(spread[0]), float(spread[1])),
            coverage={k: (Rate.of(hits[:, 0]), Rate.of(hits[:, 1])) for k, hits in covered.items()},
            above=(Rate.of(above[:, 0]), Rate.of(above[:, 1])),
            rejection={name: Rate.of(hits) for name, hits in rejected.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """JSON values of the rates, with the name of the scenario."""
        content = asdict(self)
        content["truth"] = {
            "value": self.truth.value.tolist(),
            "error": self.truth.error.tolist(),
        }
        return {"name": self.scenario.name, **content}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Rates:
        """The inverse of `to_json`."""

        def both(rates: Sequence[Mapping[str, float]]) -> tuple[Rate, Rate]:
            return Rate(**rates[0]), Rate(**rates[1])

        of = content["scenario"]
        noises = Noise(**of["design"]["noises"][0]), Noise(**of["design"]["noises"][1])
        sizes = of["design"]["sizes"][0], of["design"]["sizes"][1]
        design = Design(**{**of["design"], "noises": noises, "sizes": sizes})
        return cls(
            scenario=Scenario(of["measure"], design, of["repetitions_share"]),
            repetitions=content["repetitions"],
            truth=Truth(np.array(content["truth"]["value"]), np.array(content["truth"]["error"])),
            bias=(content["bias"][0], content["bias"][1]),
            spread=(content["spread"][0], content["spread"][1]),
            coverage={name: both(rates) for name, rates in content["coverage"].items()},
            above=both(content["above"]),
            rejection={name: Rate(**rate) for name, rate in content["rejection"].items()},
        )


BATCH = 200
"""Repetitions that share a plan of resamples and signs, as all results of a benchmark do."""
LEVEL = 0.05
PERM_BOTH_DRAWS = 499
"""Patterns of PERM-BOTH: 25 of 500 is 5 %."""

Method = Callable[["Found"], Intervals]


@dataclass(frozen=True)
class Found:
    """Values, resamples and contributions of both metrics in R repetitions."""

    value: FloatArray  # shape (2 R,): both metrics of the first repetition, then those of the next
    resamples: FloatArray  # shape (2 R, B)
    shares: FloatArray  # shape (2 R, G), contributions
    # shape (2 R, G), contributions to the value less its bias. The second difference of the value
    # by the weight of a block, halved, is the block's part of the bias (Efron and Tibshirani 1993,
    # section 10.5: the jackknife's estimate, here central).
    corrected: FloatArray
    n_clusters: int  # number C of clusters
    uncorrected: bool = False  # whether boards show percentile intervals of the measure

    @classmethod
    def of(cls, draws: FloatArray, plan: PerturbedPlan, *, uncorrected: bool = False) -> Found:
        """From values in the sample and in all draws of the plan, shape (2 R, 1 + B + 2 G)."""
        value = draws[:, 0]
        resamples, without, twice = plan.split(draws[:, 1:])
        shares = contributions(value, without, twice, np.ones(without.shape, bool))
        bias = (without + twice) / 2.0 - value[:, None]
        n_clusters = len(plan.clusters)
        return cls(value, resamples, shares, shares - bias, n_clusters, uncorrected)

    @property
    def acceleration(self) -> FloatArray:
        """Shape (2 R,)."""
        if self.uncorrected:
            return np.full(self.value.shape, np.nan)
        return acceleration(influence(self.shares, self.value, np.ones(self.shares.shape, bool)))


def assay(found: Found) -> Intervals:
    """Assay's intervals: BCa with expanded quantiles."""
    n_clusters = np.full(found.value.size, found.n_clusters)
    ends = intervals.bca(found.value, found.resamples, found.acceleration, n_clusters=n_clusters)
    return ends.around(found.value)


METHODS: Mapping[str, Method] = MappingProxyType({
    "assay": assay,
    "bca": lambda found: intervals.bca(found.value, found.resamples, found.acceleration),
    "percentile": lambda found: intervals.percentile(found.resamples),
})  # fmt: skip
"""Assay's intervals, the BCa of the textbook, and quantiles of the resamples."""


@dataclass(frozen=True)
class Trials:
    """Outcomes of R repetitions."""

    values: FloatArray  # shape (R, 2)
    # by method, shape (R, 2): whether the interval holds the true value
    covered: Mapping[str, BoolArray]
    above: BoolArray  # shape (R, 2), whether Assay's interval lies above the true value
    rejected: Mapping[str, BoolArray]  # by test, shape (R,): whether p <= 5 %


def plan_of(n_clusters: int, seed: int, n_resamples: int) -> PerturbedPlan:
    """A plan as a benchmark has it."""
    names = tuple(map(str, range(n_clusters)))
    return PerturbedPlan.of(ResamplingPlan(names, seed, n_resamples))


def batch(
    scenario: Scenario,
    truth: FloatArray,
    *,
    number: int,
    size: int,
    seed: int,
    n_resamples: int = DEFAULT_RESAMPLES,
) -> Trials:
    """Batch of repetitions for true values (2,); each number has random numbers of its own."""
    start = [seed, zlib.crc32(scenario.name.encode()), number]
    rng = np.random.default_rng(start)
    signs = int(rng.integers(2**31))
    plan = plan_of(scenario.design.n_clusters, int(rng.integers(2**31)), n_resamples)
    counts = np.vstack([np.ones(scenario.design.n_clusters), plan.counts])
    draws, others = [], []
    slack = OF_MODELS_SLACK if scenario.measure in OVER_MODELS else 0.0
    for _ in range(size):
        sample = drawn(scenario.design, rng)
        draws.append(MEASURES[scenario.measure](sample, counts).T)
        others.append(_perm_both(scenario, sample, signs))
    found = Found.of(np.concatenate(draws), plan, uncorrected=scenario.measure in OVER_MODELS)
    ends = {name: method(found) for name, method in METHODS.items()}
    true = np.tile(truth, size)
    rejected = _tests(found, signs)
    if scenario.measure in CORRELATIONS:
        rejected["PERM-BOTH"] = np.array(others)
    return Trials(
        values=found.value.reshape(size, 2),
        covered={
            name: ((one.low - slack <= true) & (true <= one.high + slack)).reshape(size, 2)
            for name, one in ends.items()
        },
        above=(ends["assay"].low - slack > true).reshape(size, 2),
        rejected=rejected,
    )


def _tests(found: Found, seed: int) -> dict[str, BoolArray]:
    """Tests of each repetition, which of them reject, shape (R,) each."""
    rows = np.arange(0, len(found.value), 2)
    flips, corrected = (
        pair_tests(shares, rows, rows + 1, seed, most_draws=FIRST_DRAWS).p_value
        for shares in (found.shares, found.corrected)
    )
    pseudo = (found.shares * found.shares.shape[1]).reshape(rows.size, 2, -1)
    t = np.array([paired_t(a, b).p_value for a, b in pseudo])
    signed = np.array([wilcoxon(a, b).p_value for a, b in pseudo])
    named = {"sign flips": flips, "less bias": corrected, "t": t, "Wilcoxon": signed}
    return {name: np.asarray(p <= LEVEL) for name, p in named.items()}


def _perm_both(scenario: Scenario, sample: Sample, seed: int) -> bool:
    statistic = CORRELATIONS.get(scenario.measure)
    if statistic is None:
        return False
    found = perm_both(
        sample.scores,
        sample.gold,
        statistic,
        clusters=sample.clusters,
        n_draws=PERM_BOTH_DRAWS,
        seed=seed,
    )
    return bool(found.p_values[0, 1] <= LEVEL)
