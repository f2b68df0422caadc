"""Shares of repetitions, with Monte Carlo standard errors, and whether they meet the target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.arrays import BoolArray
from benchmarks.statistics.calibration.designs import Design, Noise
from benchmarks.statistics.calibration.scenarios import Scenario
from benchmarks.statistics.calibration.trials import Trials
from benchmarks.statistics.calibration.truths import Truth

COVERAGE = 0.94, 0.96
REJECTION = 0.045, 0.055


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
        """Whether it meets a target, or misses it by no more than `slack` standard errors."""
        low, high = target
        return low - slack * self.error <= self.value <= high + slack * self.error


@dataclass(frozen=True)
class Rates:
    """Rates of one scenario.

    Attributes:
        scenario: what was simulated.
        repetitions: number R.
        truth: true values of both metrics, with standard errors.
        bias: of both metrics: mean of the values less the truth, in standard deviations.
        spread: of both metrics: standard deviation of the values.
        coverage: by method, of both metrics.
        above: of both metrics: how often Assay's interval lies above the true value.
        rejection: by test.
    """

    scenario: Scenario
    repetitions: int
    truth: Truth
    bias: tuple[float, float]
    spread: tuple[float, float]
    coverage: Mapping[str, tuple[Rate, Rate]]
    above: tuple[Rate, Rate]
    rejection: Mapping[str, Rate]

    @classmethod
    def of(cls, scenario: Scenario, truth: Truth, batches: Sequence[Trials]) -> Rates:
        """All batches of a scenario together."""
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
        """All of it as JSON values, with the name of the scenario."""
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
