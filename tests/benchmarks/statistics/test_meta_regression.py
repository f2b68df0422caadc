"""Slope of validity over time: values, intervals that hold what they promise, and when there is none."""

import math
from typing import Any

import numpy as np
import pytest
import scipy

from benchmarks.statistics.meta_regression import (
    FEWEST_DATED,
    FEWEST_YEARS,
    share_errors,
    slope_over_time,
    why_no_slope,
)

TIMES = np.array([2021.5, 2021.9, 2022.6, 2022.8, 2023.0, 2023.6, 2024.2, 2024.9])


def test_with_equal_errors_it_is_the_interval_of_ordinary_least_squares() -> None:
    values = np.array([0.52, 0.55, 0.47, 0.50, 0.44, 0.49, 0.41, 0.43])
    found = slope_over_time(values, np.full(8, 0.02), TIMES)
    plain = scipy.stats.linregress(TIMES, values)
    half = scipy.stats.t.isf(0.025, 6) * plain.stderr
    assert [found.value, found.p] == pytest.approx([plain.slope, plain.pvalue])
    assert [found.low, found.high] == pytest.approx([plain.slope - half, plain.slope + half])
    assert (found.n, found.df) == (8, 6)


def test_unequal_errors_weigh_as_the_matrix_formulas_say() -> None:
    rng = np.random.default_rng(3)
    errors = rng.uniform(0.01, 0.08, 8)
    groups = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    values = rng.normal(0.5, 0.05, 8) + 0.2 * groups - 0.03 * (TIMES - 2023)
    found = slope_over_time(values, errors, TIMES, groups)
    x = np.column_stack([groups == 0, groups == 1, TIMES]).astype(float)

    def parts(tau2: float) -> tuple[Any, ...]:
        w = np.diag(1 / (errors**2 + tau2))
        inverse = np.linalg.inv(x.T @ w @ x)
        beta = inverse @ x.T @ w @ values
        rest = values - x @ beta
        return w, inverse, beta, rest @ w @ rest

    w, inverse, _, q = parts(0.0)
    trace = np.trace(w - w @ x @ inverse @ x.T @ w)
    tau2 = max(0.0, (q - 5) / trace)
    _, inverse, beta, q = parts(tau2)
    error = math.sqrt(q / 5 * inverse[2, 2])
    assert found.df == 5
    assert found.tau == pytest.approx(math.sqrt(tau2))
    assert found.value == pytest.approx(beta[2], rel=1e-6)
    half = scipy.stats.t.isf(0.025, 5) * error
    assert [found.low, found.high] == pytest.approx([beta[2] - half, beta[2] + half], rel=1e-5)


def test_the_line_goes_through_the_weighted_means_and_its_band_is_narrowest_there() -> None:
    values = 0.6 - 0.05 * (TIMES - 2023) + np.array([1, -1, 1, -1, 1, -1, 1, -1]) * 0.01
    found = slope_over_time(values, np.full(8, 0.02), TIMES)
    middle, low, high = found.line([TIMES.mean(), TIMES.mean() + 2])
    assert middle[0] == pytest.approx(values.mean())
    assert middle[1] - middle[0] == pytest.approx(2 * found.value)
    assert (high - low)[0] < (high - low)[1]
    assert (high + low) / 2 == pytest.approx(middle)


@pytest.mark.parametrize(
    ("values", "value", "p"),
    [
        pytest.param([0.5] * 4, 0.0, 1.0, id="level"),
        pytest.param([0.1, 0.2, 0.3, 0.4], 0.1, 0.0, id="a line without any residual"),
    ],
)
def test_without_any_residual_the_slope_is_certain(values: Any, value: float, p: float) -> None:
    found = slope_over_time(values, [1.0] * 4, [0.0, 1.0, 2.0, 3.0])
    assert [found.value, found.p] == pytest.approx([value, p], abs=1e-12)


@pytest.mark.parametrize(
    ("values", "errors", "times", "groups"),
    [
        pytest.param([1, 2], [1, 1], [0, 1], None, id="too few"),
        pytest.param([1, 2, 3, 4], [1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 1, 2], id="too many groups"),
        pytest.param([1, 2, 3], [1, 0, 1], [0, 1, 2], None, id="no error"),
        pytest.param([1, 2, 3], [1, math.nan, 1], [0, 1, 2], None, id="an unknown error"),
        pytest.param([1, 2, 3], [1, 1, 1], [5, 5, 5], None, id="one time"),
        pytest.param([1, 2, 3, 4, 5], [1] * 5, [0, 1, 2, 4, 4], [0, 0, 0, 1, 1], id="of a group"),
    ],
)
def test_what_makes_no_slope_is_refused(values: Any, errors: Any, times: Any, groups: Any) -> None:
    with pytest.raises(ValueError, match=r"slope|error|times"):
        slope_over_time(values, errors, times, groups)


@pytest.mark.parametrize(
    ("times", "fault"),
    [
        ([2020.0] * (FEWEST_DATED - 1), "dated generators"),
        (list(np.linspace(2020, 2020 + 0.9 * FEWEST_YEARS, 6)), "span"),
        (list(np.linspace(2020, 2020 + FEWEST_YEARS, FEWEST_DATED)), ""),
        ([], "dated generators"),
    ],
)
def test_few_generators_or_years_have_a_reason(times: Any, fault: str) -> None:
    found = why_no_slope(times)
    assert (fault in found) if fault else found == ""


@pytest.mark.parametrize(
    ("slope", "n", "between", "common"),
    [
        pytest.param(-0.05, 6, 0.04, 0.0, id="few that differ, falling"),
        *(
            pytest.param(slope, n, between, common, marks=pytest.mark.slow, id=f"{slope:g}: {what}")
            for slope in (0.0, -0.05)
            for n, between, common, what in (
                (4, 0.0, 0.0, "few, prompts alone"),
                (6, 0.04, 0.0, "few that differ"),
                (24, 0.04, 0.03, "many that differ, on the same prompts"),
                (24, 0.0, 0.03, "many on the same prompts"),
            )
        ),
    ],
)
def test_intervals_hold_the_slope_in_95_of_100_samples(
    slope: float, n: int, between: float, common: float
) -> None:
    """4,000 samples: the standard error of a coverage of 0.95 is 0.0034."""
    rng = np.random.default_rng(n)
    times = np.sort(rng.uniform(2021, 2025, n))
    errors = rng.uniform(0.01, 0.05, n)
    held, wrong, samples = 0, 0, 4000
    for _ in range(samples):
        noise = rng.normal(0, np.sqrt(errors**2 + between**2)) + rng.normal(0, common)
        found = slope_over_time(0.5 + slope * (times - 2023) + noise, errors, times)
        held += found.low <= slope <= found.high
        wrong += found.p < 0.05
    assert 0.935 <= held / samples <= 0.975
    if slope == 0.0:
        assert 0.025 <= wrong / samples <= 0.065


@pytest.mark.slow
def test_a_common_slope_of_two_benchmarks_is_held_as_often() -> None:
    rng = np.random.default_rng(8)
    times, errors = rng.uniform(2021, 2025, 14), rng.uniform(0.01, 0.05, 14)
    groups = np.repeat([0, 1], [6, 8])
    held, samples = 0, 2000
    for _ in range(samples):
        noise = rng.normal(0, np.sqrt(errors**2 + 0.03**2))
        found = slope_over_time(0.3 * groups - 0.04 * times + noise, errors, times, groups)
        held += found.low <= -0.04 <= found.high
    assert 0.935 <= held / samples <= 0.975


def test_errors_of_shares_are_those_of_two_more_right_and_two_more_wrong() -> None:
    shares, n = np.array([0.5, 0.8, 1.0, 0.0]), np.array([10, 30, 30, 16])
    plain = np.sqrt(shares * (1 - shares) / n)
    middle = np.array([0.5, 26 / 34, 32 / 34, 2 / 20])
    smoothed = np.sqrt(middle * (1 - middle) / (n + 4))
    assert share_errors(shares, plain, n) == pytest.approx(np.maximum(plain, smoothed))
    # Clusters of items that are alike halve what a sample tells of each.
    assert share_errors(shares, 2 * plain, n)[2:] == pytest.approx(2 * smoothed[2:])
    assert share_errors([1.0, 1.0], [0.0, 0.0], [30, 16]) == pytest.approx(
        [smoothed[2], math.sqrt(0.9 * 0.1 / 20)]
    )


@pytest.mark.parametrize(
    ("slope", "middle", "n", "items", "alike"),
    [
        pytest.param(0.035, 0.92, 12, 1, 0.0, id="many that are right on all"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (0.0, 0.97, 12, 1, 0.0),
                (0.035, 0.92, 6, 1, 0.0),
                (-0.035, 0.9, 12, 5, 0.3),
                (-0.05, 0.75, 8, 4, 0.5),
            )
        ),
    ],
)
def test_slopes_of_shares_near_1_are_held_as_often(
    slope: float, middle: float, n: int, items: int, alike: float
) -> None:
    """30 prompts of some items each, of whose outcomes `alike` is the correlation."""
    rng, times = np.random.default_rng(n), np.linspace(2021, 2025, n)
    right = np.clip(middle + slope * (times - 2023), 0.0, 1.0)
    each, samples = right, 1000
    values, held = [], 0
    for _ in range(samples):
        if alike:
            more = (1 - alike) / alike
            each = rng.beta(right * more, (1 - right) * more, (30, n))
        of_prompts = rng.binomial(items, np.broadcast_to(each, (30, n))) / items
        shares, errors = of_prompts.mean(0), of_prompts.std(0, ddof=1) / math.sqrt(30)
        found = slope_over_time(shares, share_errors(shares, errors, np.full(n, 30)), times)
        values.append(found.value)
        held += found.low <= slope <= found.high
    assert held / samples >= 0.93
    assert np.mean(values) == pytest.approx(slope, abs=0.1 * abs(slope) + 0.001)
