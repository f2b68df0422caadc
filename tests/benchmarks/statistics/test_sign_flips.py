"""Sign-flip tests of contributions, what is kept of them, and their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.sign_flips import (
    ALL_DRAWS,
    BOUND,
    ENUMERATED,
    FACTOR,
    FIRST_DRAWS,
    PairTests,
    flip_bound,
    pair_tests,
    sign_patterns,
    tightened,
)

RNG = np.random.default_rng(11)
BOARD = RNG.normal(size=(6, 40)) / 40 + np.arange(6)[:, None] * 0.1 / 40
FIELDS = ("p_value", "n_units", "n_patterns", "exact")


def of_differences(d: object, seed: int = 1) -> dict[str, float]:
    """The test of differences d: a metric against one of zeros."""
    differences = np.asarray(d, np.float64)
    found = of_rows(np.stack([differences, np.zeros(differences.size)]), seed)
    return {name: getattr(found, name)[0] for name in FIELDS}


def of_pairs(n: int) -> tuple[IntArray, IntArray]:
    first, second = np.triu_indices(n, 1)
    return first, second


def of_rows(rows: FloatArray, seed: int) -> PairTests:
    """The tests of each two rows."""
    return pair_tests(rows, *of_pairs(len(rows)), seed)


def same(found: PairTests, expected: PairTests) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def exact_by_counting(d: FloatArray) -> float:
    """All 2^n patterns of up to about 20 differences."""
    sums = np.zeros(1)
    for step in d:
        sums = np.concatenate([sums + step, sums - step])
    return float((np.abs(sums) >= abs(d.sum()) - 1e-9).mean())


# The p-value of a pair


@pytest.mark.parametrize("ties", [False, True])
def test_for_a_mean_it_is_scipys_permutation_test_of_paired_samples(ties: bool) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 4, (2, 11)) / 4.0) if ties else rng.normal(size=(2, 11))

    def difference(x: FloatArray, y: FloatArray, axis: int = -1) -> FloatArray:
        return np.asarray(x.mean(axis=axis) - y.mean(axis=axis))

    expected = stats.permutation_test(
        (a, b), difference, permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    found = of_differences((a - b) / 11)
    assert found["p_value"] == pytest.approx(expected.pvalue, abs=1e-12)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.floats(1e-6, 1e6))
@settings(deadline=None, max_examples=60)
def test_all_patterns_are_counted_and_p_has_no_unit(levels: list[int], unit: float) -> None:
    """Sums on a lattice tie often; thirds are not exact, so rounding must not break a tie."""
    d = np.array(levels) / 3.0
    p_value = of_differences(d)["p_value"]
    assert p_value == pytest.approx(exact_by_counting(d), abs=1e-12)
    assert of_differences(d * unit)["p_value"] == of_differences(-d)["p_value"] == p_value


def test_what_is_enumerated_is_exact_up_to_its_limit() -> None:
    d = RNG.normal(size=ENUMERATED) + 0.4
    found = of_differences(d)
    assert found["p_value"] == pytest.approx(exact_by_counting(d), abs=1e-12)
    assert (found["exact"], found["n_patterns"]) == (True, 2**ENUMERATED)
    assert not of_differences(np.append(d, 0.1))["exact"]


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.5, 0.9])
def test_drawn_patterns_come_within_monte_carlo_error_of_all(shift: float) -> None:
    d = np.random.default_rng(3).normal(size=17) + shift
    found, exact = of_differences(d, 9), exact_by_counting(d)
    drawn = found["n_patterns"]
    assert drawn in (FIRST_DRAWS, ALL_DRAWS)
    error = math.sqrt(exact * (1 - exact) / drawn)
    assert found["p_value"] == pytest.approx(exact, abs=4 * error + 1 / drawn)


def test_a_small_p_value_gets_more_patterns_and_a_clear_difference_its_bound() -> None:
    found = of_differences([-1.0, *[1.0] * 15], 2)
    exact = 2 * sum(math.comb(16, k) for k in range(2)) / 2**16
    assert found["n_patterns"] == ALL_DRAWS
    assert found["p_value"] == pytest.approx(exact, abs=4 * math.sqrt(exact / ALL_DRAWS))
    clear = of_differences(np.full(200, 0.01))
    assert clear["p_value"] == pytest.approx(2 * math.exp(-100.0))
    assert clear["p_value"] < BOUND
    assert (clear["n_patterns"], clear["exact"]) == (0, False)


def test_too_little_to_flip_shows_nothing() -> None:
    assert of_differences([0.0, 0.0, 3.0])["p_value"] == of_differences([5.0])["p_value"] == 1.0
    equal = of_rows(np.stack([BOARD[0], BOARD[0] * (1 + 1e-13)]), 1)
    assert (equal.p_value[0], equal.n_units[0], equal.exact[0]) == (1.0, 0, True)
    assert np.isnan(of_rows(np.empty((2, 0)), 1).p_value).all()
    assert of_rows(np.empty((0, 4)), 1).p_value.shape == (0,)


def test_a_pair_has_the_same_numbers_whatever_stands_beside_it() -> None:
    # Many sums of a lattice equal the observed one: another product's rounding must not matter.
    lattice = np.random.default_rng(2).integers(0, 2, (12, 60)) / 60.0
    crowd = np.concatenate([BOARD, RNG.normal(size=(30, 40))])
    for board in (BOARD, lattice, crowd):
        first, second = of_pairs(len(board))
        whole = pair_tests(board, first, second, 5)
        for chosen in ([0], [4, 1], [14, 3, 2, 7]):
            part = pair_tests(board, first[chosen], second[chosen], 5)
            same(part, PairTests(*(getattr(whole, name)[chosen] for name in FIELDS)))
            turned = pair_tests(board, second[chosen], first[chosen], 5)
            same(turned, part)
    assert (of_rows(BOARD, 6).p_value != of_rows(BOARD, 5).p_value).any()  # another seed


def test_a_metric_without_contributions_is_not_tested() -> None:
    gaps = np.insert(BOARD, 2, np.nan, axis=0)
    gaps[2, 3:] = 0.1
    first, second = of_pairs(7)
    gone = (first == 2) | (second == 2)
    p_value = of_rows(gaps, 5).p_value
    assert np.isnan(p_value[gone]).all()
    np.testing.assert_array_equal(p_value[~gone], of_rows(BOARD, 5).p_value)


def test_patterns_are_the_same_whatever_part_is_asked_for() -> None:
    whole = np.hstack(list(sign_patterns(7, 3, 0, 3000)))
    assert whole.shape == (7, 3000)
    assert set(np.unique(whole)) == {-1.0, 1.0}
    part = np.hstack(list(sign_patterns(7, 3, 900, 2100)))
    np.testing.assert_array_equal(part, whole[:, 900:2100])
    assert abs(whole.mean()) < 4 / math.sqrt(whole.size)
    assert np.unique(whole.T, axis=0).shape[0] == 2**7


# Bounds
def test_bounds_stand_where_too_many_would_be_drawn_above_what_drawing_finds() -> None:
    rng = np.random.default_rng(0)
    crowd = rng.normal(0.0, 1.0, (12, 60)) + np.linspace(0.0, 0.6, 12)[:, None]
    drawn = pair_tests(crowd, *of_pairs(12), 3)
    near = drawn.n_patterns > 0
    n_near = int(near.sum())
    assert n_near > 20
    bounded = pair_tests(crowd, *of_pairs(12), 3, most_drawn=n_near - 1)
    assert (bounded.n_patterns[near] == 0).all()
    assert (bounded.p_value >= drawn.p_value * 0.98 - 0.01).all()  # drawing is off by chance
    assert (bounded.p_value <= 1.0).all()
    np.testing.assert_array_equal(bounded.p_value[~near], drawn.p_value[~near])
    enough = pair_tests(crowd, *of_pairs(12), 3, most_drawn=n_near)
    np.testing.assert_array_equal(enough.p_value, drawn.p_value)
    few = rng.normal(size=(5, ENUMERATED))
    found = pair_tests(few, *of_pairs(5), 3, most_drawn=0)
    assert found.exact.all()  # however many pairs there are
    np.testing.assert_array_equal(found.p_value, pair_tests(few, *of_pairs(5), 3).p_value)


def test_bounds_are_the_tail_of_a_normal_times_the_constant_of_the_paper_or_hoeffdings() -> None:
    assert math.floor(FACTOR * 1000) == 3178
    assert pytest.approx(1.0 / (4.0 * stats.norm.sf(math.sqrt(2.0)))) == FACTOR
    t = np.array([0.0, 0.3, 1.0, 1.5, 2.0, 4.0, 8.0])
    gauss = np.minimum(FACTOR * 2.0 * stats.norm.sf(t), 1.0)
    np.testing.assert_allclose(flip_bound(3.0 * t, np.full(7, 9.0)), gauss, rtol=1e-12)
    hoeffding = 2.0 * np.exp(-(t**2) / 2.0)
    found = tightened(hoeffding)
    np.testing.assert_allclose(found, np.minimum(hoeffding, gauss), rtol=1e-9)
    assert found[0] == 1.0
    assert (found[4:] < hoeffding[4:]).all()
