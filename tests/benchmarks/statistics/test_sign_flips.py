"""The paired test between metrics: signs of the differences of their contributions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.influence import PerturbedPlan, contributions
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from benchmarks.statistics.sign_flips import (
    ALL_DRAWS,
    BOUND,
    ENUMERATED,
    FIRST_DRAWS,
    FlipTests,
    flip_tests,
    pair_tests,
)
from benchmarks.statistics.sign_patterns import sign_patterns

RNG = np.random.default_rng(11)
BOARD = RNG.normal(size=(6, 40)) / 40 + np.arange(6)[:, None] * 0.1 / 40


def p_of(d: object, seed: int = 1) -> float:
    """The p-value of differences d against a metric of zeros."""
    differences = np.asarray(d, np.float64)
    found = flip_tests(np.stack([differences, np.zeros(differences.size)]), seed)
    return float(found.p_value[0, 1])


def brute_force(d: FloatArray) -> float:
    """The share of all patterns of signs, one after the other."""
    total = abs(math.fsum(d))
    sums = (
        abs(math.fsum(sign * x for sign, x in zip(signs, d, strict=True)))
        for signs in itertools.product((1, -1), repeat=d.size)
    )
    return float(sum(s >= total - 1e-12 for s in sums) / 2**d.size)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
@settings(deadline=None, max_examples=60)
def test_all_patterns_of_lattice_differences(levels: list[int]) -> None:
    """Sums on a lattice tie often; thirds are not exact, so rounding must not break a tie."""
    d = np.array(levels) / 3.0
    assert p_of(d) == pytest.approx(brute_force(d), abs=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9), st.floats(1e-6, 1e6))
@settings(deadline=None, max_examples=60)
def test_the_p_value_has_no_unit(values: list[float], unit: float) -> None:
    d = np.round(np.array(values), 3)
    assert p_of(d * unit) == p_of(d) == p_of(-d)


def test_what_is_enumerated_is_exact_up_to_its_limit() -> None:
    d = RNG.normal(size=ENUMERATED) + 0.4
    found = flip_tests(np.stack([d, 0 * d]), 1)
    assert found.p_value[0, 1] == pytest.approx(brute_force(d), abs=1e-12)
    assert found.exact[0, 1]
    assert found.n_patterns[0, 1] == 2**ENUMERATED
    more = flip_tests(np.stack([np.append(d, 0.1), np.zeros(ENUMERATED + 1)]), 1)
    assert not more.exact[0, 1]


@pytest.mark.parametrize("ties", [False, True])
def test_for_a_mean_it_is_scipys_permutation_test_of_paired_samples(ties: bool) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 4, (2, 11)) / 4.0) if ties else rng.normal(size=(2, 11))

    def difference(x: np.ndarray, y: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(x.mean(axis=axis) - y.mean(axis=axis))

    expected = stats.permutation_test(
        (a, b), difference, permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    plan = PerturbedPlan.of(ResamplingPlan(tuple("abcdefghijk"), 1, 3))
    values = np.stack([a, b])
    _, without, twice = plan.split(resampled_mean(values.T, plan.counts).T)
    shares = contributions(values.mean(axis=1), without, twice, np.ones((2, 11), bool))
    found = flip_tests(shares, 1)
    assert found.difference[0, 1] == pytest.approx(expected.statistic, abs=1e-12)
    assert found.p_value[0, 1] == pytest.approx(expected.pvalue, abs=1e-12)


def exact_by_counting(d: FloatArray) -> float:
    """All 2^n patterns of up to about 20 differences."""
    sums = np.zeros(1)
    for step in d:
        sums = np.concatenate([sums + step, sums - step])
    return float((np.abs(sums) >= abs(d.sum()) - 1e-9).mean())


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.5, 0.9])
def test_drawn_patterns_come_within_monte_carlo_error_of_all(shift: float) -> None:
    d = np.random.default_rng(3).normal(size=17) + shift
    found = flip_tests(np.stack([d, 0 * d]), 9)
    exact, drawn = exact_by_counting(d), found.n_patterns[0, 1]
    assert drawn in (FIRST_DRAWS, ALL_DRAWS)
    error = math.sqrt(exact * (1 - exact) / drawn)
    assert found.p_value[0, 1] == pytest.approx(exact, abs=4 * error + 1 / drawn)


def test_a_small_p_value_gets_more_patterns() -> None:
    d = np.full(16, 1.0)
    d[0] = -1.0
    found = flip_tests(np.stack([d, 0 * d]), 2)
    assert found.n_patterns[0, 1] == ALL_DRAWS
    exact = 2 * sum(math.comb(16, k) for k in range(2)) / 2**16
    assert found.p_value[0, 1] == pytest.approx(exact, abs=4 * math.sqrt(exact / ALL_DRAWS))


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_never_below_the_exact_p_value(seed: int) -> None:
    """2 exp(-(sum d)^2 / (2 sum d^2)), against all 2^16 patterns."""
    rng = np.random.default_rng(seed)
    d = rng.normal(size=16) * rng.exponential(size=16) + rng.choice([0.0, 0.5, 1.0])
    bound = 2 * math.exp(-(d.sum() ** 2) / (2 * np.square(d).sum()))
    assert exact_by_counting(d) <= bound


def test_a_clear_difference_is_given_its_bound() -> None:
    d = np.full(200, 0.01)
    found = flip_tests(np.stack([d, 0 * d]), 1)
    assert found.p_value[0, 1] == pytest.approx(2 * math.exp(-100.0))
    assert found.p_value[0, 1] < BOUND
    assert (found.n_patterns[0, 1], bool(found.exact[0, 1])) == (0, False)


def same(found: FlipTests, expected: FlipTests) -> None:
    for name in ("difference", "p_value", "n_units", "n_patterns", "exact"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_a_pair_has_the_same_numbers_whatever_stands_beside_it() -> None:
    whole = flip_tests(BOARD, 5)
    for chosen in ([0, 1], [4, 1, 0], [5, 4, 3, 2, 1, 0], [2]):
        same(flip_tests(BOARD[chosen], 5), whole.of(np.array(chosen)))
    crowd = np.concatenate([BOARD, RNG.normal(size=(30, 40))])
    same(flip_tests(crowd, 5).of(np.arange(6)), whole)


def test_lattice_contributions_have_the_same_numbers_in_any_company() -> None:
    """Many sums equal the observed one exactly: rounding of another product must not matter."""
    lattice = np.random.default_rng(2).integers(0, 2, (12, 60)) / 60.0
    whole = flip_tests(lattice, 7)
    for chosen in ([3, 8], [8, 3, 5]):
        same(flip_tests(lattice[chosen], 7), whole.of(np.array(chosen)))


def test_chosen_pairs_are_tested_as_on_the_board() -> None:
    whole = flip_tests(BOARD, 5)
    first, second = np.array([4, 0, 3]), np.array([2, 5, 3])
    found = pair_tests(BOARD, first, second, 5)
    np.testing.assert_array_equal(found.p_value, whole.p_value[first, second])
    assert found.p_value[2] == 1.0


def test_the_table_is_symmetric_with_ones_on_its_diagonal() -> None:
    found = flip_tests(BOARD, 5)
    np.testing.assert_array_equal(found.p_value, found.p_value.T)
    np.testing.assert_array_equal(np.diag(found.p_value), np.ones(6))
    np.testing.assert_array_equal(found.difference, -found.difference.T)
    np.testing.assert_allclose(
        found.difference[:, 0], BOARD.sum(axis=1) - BOARD[0].sum(), atol=1e-15
    )


def test_a_seed_gives_the_same_numbers_again_and_another_seed_others() -> None:
    same(flip_tests(BOARD, 5), flip_tests(BOARD.copy(), 5))
    assert (flip_tests(BOARD, 6).p_value != flip_tests(BOARD, 5).p_value).any()


def test_a_metric_without_contributions_is_not_tested_and_moves_no_other() -> None:
    gaps = np.insert(BOARD, 2, np.nan, axis=0)
    gaps[2, 3:] = 0.1
    found = flip_tests(gaps, 5)
    assert np.isnan(found.p_value[2]).all()
    assert np.isnan(found.p_value[:, 2]).all()
    assert np.isnan(found.difference[2]).all()
    same(found.of(np.array([0, 1, 3, 4, 5, 6])), flip_tests(BOARD, 5))


def test_two_metrics_that_differ_nowhere_have_p_1() -> None:
    found = flip_tests(np.stack([BOARD[0], BOARD[0] * (1 + 1e-13)]), 1)
    assert (found.p_value[0, 1], found.n_units[0, 1]) == (1.0, 0)
    assert found.exact[0, 1]


def test_one_differing_unit_can_show_nothing() -> None:
    assert p_of([0.0, 0.0, 3.0]) == 1.0
    assert p_of([5.0]) == 1.0


def test_no_units_no_metrics() -> None:
    assert np.isnan(flip_tests(np.empty((2, 0)), 1).p_value).all()  # nothing to flip is no test
    assert flip_tests(np.empty((0, 4)), 1).p_value.shape == (0, 0)
    assert flip_tests(np.ones((1, 4)), 1).p_value.tolist() == [[1.0]]


def test_patterns_are_the_same_whatever_part_is_asked_for() -> None:
    whole = np.hstack(list(sign_patterns(7, 3, 0, 3000)))
    assert whole.shape == (7, 3000)
    assert set(np.unique(whole)) == {-1.0, 1.0}
    part = np.hstack(list(sign_patterns(7, 3, 900, 2100)))
    np.testing.assert_array_equal(part, whole[:, 900:2100])
    assert abs(whole.mean()) < 4 / math.sqrt(whole.size)
    assert np.unique(whole.T, axis=0).shape[0] == 2**7
