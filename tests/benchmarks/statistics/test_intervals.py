"""Percentile and BCa intervals: numpy's and scipy's where they overlap, and every special case."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.intervals import Intervals, bca, percentile

RNG = np.random.default_rng(5)
SKEWED = RNG.exponential(size=(3, 400))
VALUES = np.array([0.6, 0.9, 1.3])
ACCELERATION = np.array([0.05, -0.03, 0.0])


def ends(found: Intervals) -> FloatArray:
    return np.stack([found.low, found.high], axis=1)


@given(st.integers(1, 50), st.sampled_from([0.5, 0.9, 0.95, 0.99]), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_percentile_intervals_are_numpys_quantiles(n: int, level: float, seed: int) -> None:
    draws = np.random.default_rng(seed).normal(size=(4, n))
    expected = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1).T
    np.testing.assert_allclose(ends(percentile(draws, level)), expected, rtol=0, atol=1e-12)


def test_undefined_resamples_are_left_out_as_long_as_half_are_defined() -> None:
    draws = np.stack([np.arange(10.0)] * 3)
    draws[1, 5:], draws[2, 4:] = np.nan, np.nan
    for found in (percentile(draws), bca(np.full(3, 2.0), draws, np.zeros(3))):
        assert np.isnan(found.low).tolist() == [False, False, True]
        assert np.isnan(found.high).tolist() == [False, False, True]
        assert found.defined.tolist() == [True, True, False]
    np.testing.assert_allclose(
        ends(percentile(draws))[1], np.quantile(np.arange(5), [0.025, 0.975])
    )


def test_nothing_to_draw_from_gives_no_interval() -> None:
    for draws in (np.empty((2, 0)), np.full((2, 5), np.nan)):
        for found in (percentile(draws), bca(np.zeros(2), draws, np.zeros(2))):
            assert np.isnan(ends(found)).all()
            assert not found.defined.any()
    assert percentile(np.empty((0, 5))).low.shape == (0,)
    assert bca(np.zeros(0), np.empty((0, 5)), np.zeros(0)).low.shape == (0,)


Statistic = Callable[..., np.ndarray]


def variance(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.asarray(np.var(x, axis=axis))


@pytest.mark.parametrize("statistic", [np.mean, variance, np.median])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_bca_is_scipys_for_its_resamples_and_jackknife(statistic: Statistic, level: float) -> None:
    x = np.random.default_rng(6).exponential(size=31)
    expected = stats.bootstrap(
        (x,), statistic, n_resamples=999, confidence_level=level, method="BCa", rng=1
    )
    left_out = np.array([statistic(np.delete(x, i)) for i in range(x.size)])
    u = left_out.mean() - left_out
    a = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    draws = expected.bootstrap_distribution[None]
    found = bca(np.array([statistic(x)]), draws, np.array([a]), level)
    assert found.defined.all()
    np.testing.assert_allclose(ends(found)[0], expected.confidence_interval, rtol=1e-10)


def test_bca_follows_its_formula_written_out() -> None:
    z0 = stats.norm.ppf((VALUES[:, None] > SKEWED).mean(axis=1))
    for row in range(3):
        at = [
            stats.norm.cdf(z0[row] + (z0[row] + z) / (1 - ACCELERATION[row] * (z0[row] + z)))
            for z in stats.norm.ppf([0.025, 0.975])
        ]
        found = bca(VALUES, SKEWED, ACCELERATION)
        np.testing.assert_allclose(ends(found)[row], np.quantile(SKEWED[row], at), rtol=1e-10)


def test_few_clusters_expand_the_quantiles_as_hesterberg_does() -> None:
    symmetric = np.linspace(-1, 1, 20_001)[None]
    for n in (3, 10, 40):
        found = bca(np.zeros(1), symmetric, np.zeros(1), n_clusters=np.array([n]))
        z = math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1)
        assert found.high[0] == pytest.approx(2 * stats.norm.cdf(z) - 1, abs=1e-10)
        assert found.low[0] == pytest.approx(-found.high[0], abs=1e-12)


def test_two_clusters_give_nearly_the_whole_range_of_the_resamples() -> None:
    found = bca(VALUES, SKEWED, np.zeros(3), n_clusters=np.full(3, 2))
    np.testing.assert_allclose(found.low, SKEWED.min(axis=1))
    np.testing.assert_allclose(found.high, SKEWED.max(axis=1))


def test_an_unknown_number_of_clusters_gives_the_textbook_interval_and_many_nearly_so() -> None:
    textbook = ends(bca(VALUES, SKEWED, ACCELERATION))
    for n in (0, 1):
        found = bca(VALUES, SKEWED, ACCELERATION, n_clusters=np.full(3, n))
        np.testing.assert_array_equal(ends(found), textbook)
    many = bca(VALUES, SKEWED, ACCELERATION, n_clusters=np.full(3, 10**7))
    np.testing.assert_allclose(ends(many), textbook, rtol=1e-5)


def test_intervals_of_fewer_clusters_hold_those_of_more() -> None:
    widths = [
        np.diff(ends(bca(VALUES, SKEWED, ACCELERATION, n_clusters=np.full(3, n))), axis=1)
        for n in (5, 10, 30, 100, 1000)
    ]
    assert all((wide > narrow).all() for wide, narrow in itertools.pairwise(widths))


@pytest.mark.parametrize("transform", [np.exp, np.log, np.sqrt, lambda x: 3 * x - 1])
def test_the_ends_follow_a_monotone_transform_of_the_measure(
    transform: Callable[[np.ndarray], np.ndarray],
) -> None:
    """But for the straight line between two neighbouring resamples."""
    plain = ends(bca(VALUES, SKEWED, ACCELERATION))
    moved = ends(bca(transform(VALUES), transform(SKEWED), ACCELERATION))
    for row in range(3):
        order = np.sort(SKEWED[row])
        for end, other in zip(plain[row], moved[row], strict=True):
            right = int(np.searchsorted(order, end))
            low, high = transform(order[right - 1]), transform(order[right])
            assert low <= other <= high


def test_turning_the_measure_round_turns_the_interval_round() -> None:
    plain = ends(bca(VALUES, SKEWED, ACCELERATION))
    turned = ends(bca(-VALUES, -SKEWED, -ACCELERATION))
    np.testing.assert_allclose(turned, -plain[:, ::-1], rtol=1e-12)


def test_no_bias_and_no_acceleration_make_it_the_percentile_interval() -> None:
    draws = np.linspace(0, 1, 101)[None]
    np.testing.assert_allclose(
        ends(bca(np.array([0.5]), draws, np.zeros(1))), ends(percentile(draws)), rtol=1e-12
    )


def test_resamples_that_all_equal_the_value_make_a_point() -> None:
    found = bca(np.array([0.7]), np.full((1, 50), 0.7), np.zeros(1), n_clusters=np.array([20]))
    assert (found.low[0], found.high[0], bool(found.defined[0])) == (0.7, 0.7, True)


@pytest.mark.parametrize("value", [-1.0, 2.0])
def test_a_value_beyond_all_resamples_gets_their_percentile_interval(value: float) -> None:
    draws = np.random.default_rng(1).random((1, 100))
    found = bca(np.array([value]), draws, np.zeros(1))
    np.testing.assert_allclose(ends(found), ends(percentile(draws)), rtol=1e-14)
    assert not found.defined[0]


def test_the_percentile_interval_in_its_place_is_expanded_for_few_clusters_too() -> None:
    draws = np.random.default_rng(1).random((1, 100))
    found = bca(np.array([2.0]), draws, np.zeros(1), n_clusters=np.array([5]))
    tails = stats.norm.cdf(np.sqrt(5 / 4) * stats.t.ppf([0.025, 0.975], 4))
    np.testing.assert_allclose(ends(found)[0], np.quantile(draws[0], tails), rtol=1e-12)
    assert not found.defined[0]


@pytest.mark.parametrize("acceleration", [np.nan, 0.6, -0.6])
def test_an_undefined_or_too_large_acceleration_gives_the_percentile_interval(
    acceleration: float,
) -> None:
    draws = np.random.default_rng(1).random((1, 100))
    found = bca(np.array([0.5]), draws, np.array([acceleration]))
    np.testing.assert_allclose(ends(found), ends(percentile(draws)), rtol=1e-14)
    assert not found.defined[0]


def test_an_undefined_value_has_no_bca_interval() -> None:
    assert not bca(np.array([np.nan]), SKEWED[:1], np.zeros(1)).defined[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_resamples_equal_to_the_value_but_for_rounding_count_as_equal(dtype: type) -> None:
    """Twelve clusters of right and wrong: a fifth of the resamples hit the value again."""
    draws = np.random.default_rng(2).binomial(12, 7 / 12, (1, 1000)) / 12
    exact = ends(bca(np.array([7 / 12]), draws, np.zeros(1)))
    rounded: np.ndarray = (draws * 0.1 * 10).astype(dtype)
    for value in (7 / 12, 7 / 12 * (1 + 4e-16), 7 / 12 * (1 - 4e-16)):
        found = ends(bca(np.array([value]), rounded, np.zeros(1)))
        np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_published_single_precision_is_enough() -> None:
    found = bca(VALUES, SKEWED.astype(np.float32), ACCELERATION, n_clusters=np.full(3, 30))
    whole = bca(VALUES, SKEWED, ACCELERATION, n_clusters=np.full(3, 30))
    np.testing.assert_allclose(ends(found), ends(whole), rtol=1e-6)
