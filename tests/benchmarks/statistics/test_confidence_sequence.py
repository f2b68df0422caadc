"""Confidence sequence: its formula by numerical integration, its width, and its error rates."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.confidence_sequence import (
    MIN_VALUES,
    confidence_sequence,
    half_width,
    mixing_scale,
)

LEVEL, NARROWEST = 0.05, 500


@pytest.mark.first_quick
@pytest.mark.parametrize(("n", "level"), [(40, 0.05), (500, 0.05), (1000, 0.001)])
def test_the_interval_holds_the_means_that_a_mixture_of_likelihood_ratios_does_not_refuse(
    n: int, level: float
) -> None:
    """Robbins (1970): the ratio is integrated over drifts from N(0, rho^2), here by quadrature."""
    rng = np.random.default_rng((27, n))
    x = rng.normal(0.3, 2.0, n)
    rho = mixing_scale(level, NARROWEST)

    def log_ratio(mean: float) -> float:
        total = float(((x - mean) / x.std(ddof=1)).sum())
        peak = total / (n + rho**-2)
        top = peak * total - peak**2 * n / 2
        found, _ = integrate.quad(
            lambda drift: math.exp(drift * total - drift**2 * n / 2 - top)
            * stats.norm.pdf(drift, 0, rho),
            peak - 12 / math.sqrt(n), peak + 12 / math.sqrt(n), epsabs=0,
        )  # fmt: skip
        return math.log(found) + top

    ends = [
        optimize.brentq(lambda mean: log_ratio(mean) + math.log(level), x.mean(), far)
        for far in (x.mean() - 10, x.mean() + 10)
    ]
    low, high = confidence_sequence(x, level, NARROWEST)
    assert (low[-1], high[-1]) == pytest.approx(ends, rel=1e-6)


def test_each_interval_is_of_the_values_so_far_and_too_few_have_none() -> None:
    x = np.random.default_rng(27).normal(1e6, 1.0, 100)
    low, high = confidence_sequence(x, LEVEL, NARROWEST)
    assert np.isnan(low[: MIN_VALUES - 1]).all() and np.isnan(high[: MIN_VALUES - 1]).all()
    assert np.isfinite(low[MIN_VALUES - 1 :]).all()
    for n in (MIN_VALUES, 77, 100):
        alone = confidence_sequence(x[:n], LEVEL, NARROWEST)
        assert (low[n - 1], high[n - 1]) == pytest.approx((alone[0][-1], alone[1][-1]), rel=1e-12)
        assert (low[n - 1] + high[n - 1]) / 2 == pytest.approx(x[:n].mean(), rel=1e-12)
    for of_none in confidence_sequence([], LEVEL, NARROWEST):
        assert of_none.size == 0
    equal = confidence_sequence(np.full(50, 0.1), LEVEL, NARROWEST)
    assert (equal[0][-1], equal[1][-1]) == pytest.approx((0.1, 0.1), abs=1e-12)


def test_it_is_half_as_wide_again_as_an_interval_that_is_looked_at_once() -> None:
    """construction.md E: 1.55 to 1.57 times between half and twice the number it is made for."""
    n = np.arange(NARROWEST / 2, 2 * NARROWEST + 1)
    wide = half_width(n, LEVEL, mixing_scale(LEVEL, NARROWEST)) * np.sqrt(n) / stats.norm.isf(0.025)
    assert (wide.min(), wide.max()) == pytest.approx((1.55, 1.57), abs=0.005)


def test_the_scale_is_near_the_best() -> None:
    def width(rho: float) -> float:
        return float(half_width(np.array([float(NARROWEST)]), LEVEL, rho)[0])

    best = optimize.minimize_scalar(width, bounds=(0.01, 1.0), method="bounded")
    assert width(mixing_scale(LEVEL, NARROWEST)) == pytest.approx(best.fun, rel=0.001)
    assert mixing_scale(LEVEL, NARROWEST) == pytest.approx(best.x, rel=0.02)


def clusters(effect: float, binary: bool, rng: np.random.Generator) -> FloatArray:
    """Differences of 1,000 prompts, mean of 4 seeds: prompts .10 apart, seeds .20."""
    if not binary:
        seeds: FloatArray = rng.normal(0, 0.2, (1000, 4)).mean(axis=1)
        return effect + rng.normal(0, 0.1, 1000) + seeds
    chance = rng.beta(2, 2, (1000, 1))
    one, other = (rng.random((1000, 4)) < chance for _ in range(2))
    found: FloatArray = other.mean(axis=1) - one.mean(axis=1)
    return found


@cache
def looks(effect: float, runs: int, *, binary: bool = False) -> tuple[float, float]:
    """Share of runs in which zero is excluded at any of 50 looks of 20, and mean clusters used."""
    rng, at = np.random.default_rng((27, runs, int(effect * 1e4))), np.arange(20, 1001, 20)
    used = []
    for _ in range(runs):
        low, high = confidence_sequence(clusters(effect, binary, rng), LEVEL, NARROWEST)
        apart = (low > 0) | (high < 0)
        stops = at[apart[at - 1]]
        used.append(stops[0] if stops.size else math.inf)
    found = np.array(used)
    return float(np.isfinite(found).mean()), float(np.minimum(found, 1000).mean())


def test_a_true_difference_stops_early_and_none_seldom() -> None:
    power, used = looks(0.025, 100)
    assert power >= 0.97 and 285 <= used <= 345
    assert looks(0.0, 200)[0] <= 0.055


@pytest.mark.slow
@pytest.mark.parametrize(
    ("effect", "binary", "share", "used"),
    [(0.0, False, 0.024, None), (0.0, True, 0.023, None), (0.0125, False, 0.526, 772), (0.025, False, 0.998, 315)],
)  # fmt: skip
def test_error_rates_and_length_are_those_of_the_table(
    effect: float, binary: bool, share: float, used: int | None
) -> None:
    """construction.md E, simulated there with 1,000 runs; three standard errors of both."""
    runs = 3000
    found, length = looks(effect, runs, binary=binary)
    assert found == pytest.approx(share, abs=3 * math.sqrt(share * (1 - share) * (1e-3 + 1 / runs)))
    if used is not None:
        assert length == pytest.approx(used, abs=3 * 300 * math.sqrt(1e-3 + 1 / runs))
