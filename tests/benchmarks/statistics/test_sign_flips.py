"""Sign-flip tests of contributions, what is kept of them, and their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics import sign_flips as module
from benchmarks.statistics.intervals import PerturbedPlan, contributions
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from benchmarks.statistics.sign_flips import (
    ALL_DRAWS,
    BOUND,
    ENUMERATED,
    FACTOR,
    FIRST_DRAWS,
    FlipTests,
    flip_bound,
    flip_tests,
    pair_tests,
    sign_patterns,
    squared_differences,
    tightened,
)

RNG = np.random.default_rng(11)
BOARD = RNG.normal(size=(6, 40)) / 40 + np.arange(6)[:, None] * 0.1 / 40


def p_of(d: object, seed: int = 1) -> float:
    """The p-value of differences d against a metric of zeros."""
    differences = np.asarray(d, np.float64)
    found = flip_tests(np.stack([differences, np.zeros(differences.size)]), seed)
    return float(found.p_value[0, 1])


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
@settings(deadline=None, max_examples=60)
def test_all_patterns_of_lattice_differences(levels: list[int]) -> None:
    """Sums on a lattice tie often; thirds are not exact, so rounding must not break a tie."""
    d = np.array(levels) / 3.0
    assert p_of(d) == pytest.approx(exact_by_counting(d), abs=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9), st.floats(1e-6, 1e6))
@settings(deadline=None, max_examples=60)
def test_the_p_value_has_no_unit(values: list[float], unit: float) -> None:
    d = np.round(np.array(values), 3)
    assert p_of(d * unit) == p_of(d) == p_of(-d)


def test_what_is_enumerated_is_exact_up_to_its_limit() -> None:
    d = RNG.normal(size=ENUMERATED) + 0.4
    found = flip_tests(np.stack([d, 0 * d]), 1)
    assert found.p_value[0, 1] == pytest.approx(exact_by_counting(d), abs=1e-12)
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
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_a_pair_has_the_same_numbers_whatever_stands_beside_it() -> None:
    whole = flip_tests(BOARD, 5)
    for chosen in ([0, 1], [4, 1, 0], [5, 4, 3, 2, 1, 0], [2]):
        same(flip_tests(BOARD[chosen], 5), whole.of(np.array(chosen)))
    crowd = np.concatenate([BOARD, RNG.normal(size=(30, 40))])
    same(flip_tests(crowd, 5).of(np.arange(6)), whole)
    # Many sums of a lattice equal the observed one: another product's rounding must not matter.
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


def test_patterns_are_the_same_whatever_part_is_asked_for() -> None:
    whole = np.hstack(list(sign_patterns(7, 3, 0, 3000)))
    assert whole.shape == (7, 3000)
    assert set(np.unique(whole)) == {-1.0, 1.0}
    part = np.hstack(list(sign_patterns(7, 3, 900, 2100)))
    np.testing.assert_array_equal(part, whole[:, 900:2100])
    assert abs(whole.mean()) < 4 / math.sqrt(whole.size)
    assert np.unique(whole.T, axis=0).shape[0] == 2**7


def test_too_little_to_flip_shows_nothing() -> None:
    assert p_of([0.0, 0.0, 3.0]) == p_of([5.0]) == 1.0
    assert np.isnan(flip_tests(np.empty((2, 0)), 1).p_value).all()
    assert flip_tests(np.empty((0, 4)), 1).p_value.shape == (0, 0)
    assert flip_tests(np.ones((1, 4)), 1).p_value.tolist() == [[1.0]]


SEED = 3
FIELDS = ("difference", "p_value", "n_units", "n_patterns", "exact")


@pytest.fixture
def crowd() -> FloatArray:
    """Twelve metrics whose differences are from none to large, over 60 blocks."""
    rng = np.random.default_rng(0)
    return rng.normal(0.0, 1.0, (12, 60)) + np.linspace(0.0, 0.6, 12)[:, None]


def test_bounds_lie_above_what_drawing_finds_and_stand_where_too_many_would_be_drawn(
    crowd: FloatArray,
) -> None:
    a, b = np.triu_indices(12, 1)
    drawn = pair_tests(crowd, a, b, SEED)
    near = drawn.n_patterns > 0
    n_near = int(near.sum())
    assert n_near > 20
    bounded = pair_tests(crowd, a, b, SEED, most_drawn=n_near - 1)
    assert (bounded.n_patterns[near] == 0).all()
    assert (bounded.p_value >= drawn.p_value * 0.98 - 0.01).all()  # drawing is off by chance
    assert (bounded.p_value <= 1.0).all()
    np.testing.assert_array_equal(bounded.p_value[~near], drawn.p_value[~near])
    same = pair_tests(crowd, a, b, SEED, most_drawn=n_near)
    np.testing.assert_array_equal(same.p_value, drawn.p_value)


def test_few_blocks_are_enumerated_however_many_pairs_there_are() -> None:
    few = np.random.default_rng(1).normal(size=(5, ENUMERATED))
    a, b = np.triu_indices(5, 1)
    found = pair_tests(few, a, b, SEED, most_drawn=0)
    assert found.exact.all()
    np.testing.assert_array_equal(found.p_value, pair_tests(few, a, b, SEED).p_value)


def test_a_bound_is_one_that_drawing_would_better() -> None:
    # A bound; one below all that drawing gives; drawn; no unit differs; a bound at the edge.
    found = FlipTests(
        difference=np.zeros((1, 5)),
        p_value=np.array([[0.3, BOUND / 2, 0.3, 1.0, BOUND]]),
        n_units=np.array([[20, 20, 20, 0, 20]]),
        n_patterns=np.array([[0, 0, 9999, 0, 0]]),
        exact=np.zeros((1, 5), bool),
    )
    assert found.bounded.tolist() == [[True, False, False, False, True]]


def test_a_selection_holds_the_same_numbers_in_its_own_order_and_weighs_its_arrays() -> None:
    board = np.random.default_rng(1).normal(size=(6, 30))
    whole, order = flip_tests(board, 2), np.array([4, 1, 3])
    same(whole.of(order), flip_tests(board[order], 2))
    # Two arrays of doubles, two of 8-byte integers, one of booleans.
    weights = [flip_tests(board[:n], 2).nbytes for n in (0, 6)] + [whole.of(order[:2]).nbytes]
    assert weights == [n * (4 * 8 + 1) for n in (0, 36, 4)]


@pytest.fixture
def board() -> FloatArray:
    """Nine metrics over 40 blocks."""
    return np.random.default_rng(4).normal(2.0, 1.0, (9, 40)) / 40


def one_by_one(rows: FloatArray) -> FloatArray:
    return np.array([[math.fsum((a - b) ** 2) for b in rows] for a in rows])


def test_squared_differences_are_those_of_each_two_rows(board: FloatArray) -> None:
    found = squared_differences(board)
    np.testing.assert_allclose(found, one_by_one(board), rtol=1e-10, atol=0)
    np.testing.assert_array_equal(found, found.T)
    assert (np.diag(found) == 0.0).all()
    close = board[0].copy()
    close[3] += 1e-7  # a product would lose these digits
    rounded = board[0] * (1.0 + 2.0**-52)
    assert (rounded != board[0]).any()
    found = squared_differences(np.vstack([board, close, rounded]))
    assert found[0, 9] == found[9, 0] == pytest.approx(1e-14, rel=1e-6)
    assert found[0, 10] == 0.0
    assert (found[1:9, 10] > 0.0).all()


def test_more_close_pairs_than_are_looked_at_together_change_nothing(
    board: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    shifts = np.zeros((9, 40))
    shifts[:, 5] = np.arange(9) * 1e-8
    whole = squared_differences(board[0] + shifts)
    monkeypatch.setattr(module, "_AT_A_TIME", 5)
    np.testing.assert_array_equal(squared_differences(board[0] + shifts), whole)
    np.testing.assert_allclose(whole, one_by_one(board[0] + shifts), rtol=1e-6)


def test_a_row_with_a_gap_has_no_distance_and_the_others_keep_theirs(board: FloatArray) -> None:
    gap = board.copy()
    gap[4, 7] = np.nan
    found = squared_differences(gap)
    assert np.isnan(found[4]).all()
    assert np.isnan(found[:, 4]).all()
    kept = np.delete(np.arange(9), 4)
    expected = squared_differences(board[kept])
    np.testing.assert_allclose(found[np.ix_(kept, kept)], expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 0), (0, 4), (0, 0)])
def test_without_blocks_or_rows_nothing_is_known(shape: tuple[int, int]) -> None:
    found = squared_differences(np.zeros(shape))
    assert found.shape == (shape[0], shape[0])
    assert np.isnan(found).all()


def test_distances_bound_what_the_test_of_the_same_contributions_finds(board: FloatArray) -> None:
    board[5:] += 0.03
    tests = flip_tests(board, 3)
    bound = flip_bound(tests.difference, squared_differences(board))
    assert (bound >= tests.p_value * 0.9 - 0.005).all()  # drawing is off by chance
    assert bound[0, 8] < 0.05
    assert (np.diag(bound) == 1.0).all()


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
