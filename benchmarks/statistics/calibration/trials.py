"""Repetitions of a scenario: what the intervals cover and what the tests say.

Repetitions come in batches. A batch shares one plan of resamples and one set of signs, as all
results of a benchmark do; both change from batch to batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics import intervals
from benchmarks.statistics.calibration.designs import Sample, drawn
from benchmarks.statistics.calibration.measures import MEASURES
from benchmarks.statistics.calibration.scenarios import CORRELATIONS, Scenario
from benchmarks.statistics.influence import PerturbedPlan, acceleration, contributions, influence
from benchmarks.statistics.intervals import Intervals
from benchmarks.statistics.paired import paired_t, wilcoxon
from benchmarks.statistics.permutation.perm_both import perm_both
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan
from benchmarks.statistics.sign_flips import FIRST_DRAWS, pair_tests

BATCH = 200
"""Repetitions that share a plan and signs."""
LEVEL = 0.05
PERM_BOTH_DRAWS = 499
"""Patterns of PERM-BOTH: 25 of 500 is 5 %."""

Method = Callable[["Found"], Intervals]


@dataclass(frozen=True)
class Found:
    """What R repetitions give for both metrics.

    Attributes:
        value: shape (2 R,): both metrics of the first repetition, then those of the next.
        resamples: shape (2 R, B).
        shares: shape (2 R, G), contributions.
        corrected: shape (2 R, G), contributions to the value less its bias. The second difference
            of the value by the weight of a block, halved, is the block's part of the bias
            (Efron and Tibshirani 1993, section 10.5: the jackknife's estimate, here central).
        n_clusters: number C of clusters.
    """

    value: FloatArray
    resamples: FloatArray
    shares: FloatArray
    corrected: FloatArray
    n_clusters: int

    @classmethod
    def of(cls, draws: FloatArray, plan: PerturbedPlan) -> Found:
        """From values in the sample and in all draws of the plan, shape (2 R, 1 + B + 2 G)."""
        value = draws[:, 0]
        resamples, without, twice = plan.split(draws[:, 1:])
        shares = contributions(value, without, twice, np.ones(without.shape, bool))
        bias = (without + twice) / 2.0 - value[:, None]
        return cls(value, resamples, shares, shares - bias, len(plan.clusters))

    @property
    def acceleration(self) -> FloatArray:
        """Shape (2 R,)."""
        return acceleration(influence(self.shares, self.value, np.ones(self.shares.shape, bool)))


def assay(found: Found) -> Intervals:
    """What Assay shows: BCa with expanded quantiles."""
    n_clusters = np.full(found.value.size, found.n_clusters)
    return intervals.bca(found.value, found.resamples, found.acceleration, n_clusters=n_clusters)


def plain_bca(found: Found) -> Intervals:
    """BCa as in the textbook."""
    return intervals.bca(found.value, found.resamples, found.acceleration)


def percentile(found: Found) -> Intervals:
    """Quantiles of the resamples."""
    return intervals.percentile(found.resamples)


METHODS: Mapping[str, Method] = MappingProxyType(
    {"assay": assay, "bca": plain_bca, "percentile": percentile}
)


@dataclass(frozen=True)
class Trials:
    """What happened in R repetitions.

    Attributes:
        values: shape (R, 2).
        covered: by method, shape (R, 2): whether the interval holds the true value.
        above: shape (R, 2), whether Assay's interval lies above the true value.
        rejected: by test, shape (R,): whether p <= 5 %.
    """

    values: FloatArray
    covered: Mapping[str, BoolArray]
    above: BoolArray
    rejected: Mapping[str, BoolArray]


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
    """One batch of repetitions.

    Args:
        scenario: what is simulated.
        truth: shape (2,), true values.
        number: of the batch; each has random numbers of its own.
        size: repetitions.
        seed: of the whole report.
        n_resamples: number B of resamples.
    """
    start = [seed, zlib.crc32(scenario.name.encode()), number]
    rng = np.random.default_rng(start)
    signs = int(rng.integers(2**31))
    plan = plan_of(scenario.design.n_clusters, int(rng.integers(2**31)), n_resamples)
    counts = np.vstack([np.ones(scenario.design.n_clusters), plan.counts])
    draws, others = [], []
    for _ in range(size):
        sample = drawn(scenario.design, rng)
        draws.append(MEASURES[scenario.measure](sample, counts).T)
        others.append(_perm_both(scenario, sample, signs))
    found = Found.of(np.concatenate(draws), plan)
    ends = {name: method(found) for name, method in METHODS.items()}
    true = np.tile(truth, size)
    rejected = _tests(found, signs)
    if scenario.measure in CORRELATIONS:
        rejected["PERM-BOTH"] = np.array(others)
    return Trials(
        values=found.value.reshape(size, 2),
        covered={
            name: ((one.low <= true) & (true <= one.high)).reshape(size, 2)
            for name, one in ends.items()
        },
        above=(ends["assay"].low > true).reshape(size, 2),
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
    if scenario.measure not in CORRELATIONS:
        return False
    test = partial(perm_both, clusters=sample.clusters, n_draws=PERM_BOTH_DRAWS, seed=seed)
    match CORRELATIONS[scenario.measure]:
        case "pearson":
            found = test(sample.scores, sample.gold, "pearson")
        case "spearman":
            found = test(sample.scores, sample.gold, "spearman")
        case _:
            found = test(sample.scores, sample.gold, "kendall")
    return bool(found.p_values[0, 1] <= LEVEL)
