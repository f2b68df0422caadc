"""Squared distances of contributions, and the bounds that follow from them without drawing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.statistics import flip_bound as module
from benchmarks.statistics.flip_bound import FACTOR, flip_bound, squared_differences, tightened
from benchmarks.statistics.sign_flips import flip_tests


@pytest.fixture
def board() -> np.ndarray:
    """Nine metrics over 40 blocks."""
    return np.random.default_rng(4).normal(2.0, 1.0, (9, 40)) / 40


def one_by_one(rows: np.ndarray) -> np.ndarray:
    return np.array([[math.fsum((a - b) ** 2) for b in rows] for a in rows])


def test_distances_are_those_of_each_two_rows(board: np.ndarray) -> None:
    found = squared_differences(board)
    np.testing.assert_allclose(found, one_by_one(board), rtol=1e-10, atol=0)
    np.testing.assert_array_equal(found, found.T)
    assert (np.diag(found) == 0.0).all()


def test_rows_that_nearly_agree_keep_the_digits_a_product_would_lose(board: np.ndarray) -> None:
    close = board[0].copy()
    close[3] += 1e-7
    found = squared_differences(np.vstack([board, close]))
    assert found[0, 9] == found[9, 0] == pytest.approx(1e-14, rel=1e-6)


def test_rows_that_differ_by_rounding_only_have_no_distance(board: np.ndarray) -> None:
    rounded = board[0] * (1.0 + 2.0**-52)
    assert (rounded != board[0]).any()
    found = squared_differences(np.vstack([board, rounded]))
    assert found[0, 9] == 0.0
    assert (found[1:9, 9] > 0.0).all()


def test_more_close_pairs_than_are_looked_at_together_change_nothing(
    board: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    shifts = np.zeros((9, 40))
    shifts[:, 5] = np.arange(9) * 1e-8
    close = board[0] + shifts
    whole = squared_differences(close)
    monkeypatch.setattr(module, "_AT_A_TIME", 5)
    np.testing.assert_array_equal(squared_differences(close), whole)
    np.testing.assert_allclose(whole, one_by_one(close), rtol=1e-6)


def test_a_row_with_a_gap_has_no_distance_and_the_others_keep_theirs(board: np.ndarray) -> None:
    gap = board.copy()
    gap[4, 7] = np.nan
    found = squared_differences(gap)
    assert np.isnan(found[4]).all()
    assert np.isnan(found[:, 4]).all()
    kept = [0, 1, 2, 3, 5, 6, 7, 8]
    np.testing.assert_allclose(
        found[np.ix_(kept, kept)], squared_differences(board[kept]), rtol=1e-12
    )


@pytest.mark.parametrize("shape", [(3, 0), (0, 4), (0, 0)])
def test_without_blocks_or_rows_nothing_is_known(shape: tuple[int, int]) -> None:
    found = squared_differences(np.zeros(shape))
    assert found.shape == (shape[0], shape[0])
    assert np.isnan(found).all()


def test_distances_bound_what_the_test_of_the_same_contributions_finds(board: np.ndarray) -> None:
    board[5:] += 0.03
    tests = flip_tests(board, 3)
    bound = flip_bound(tests.difference, squared_differences(board))
    assert (bound >= tests.p_value * 0.9 - 0.005).all()  # drawing is off by chance
    assert bound[0, 8] < 0.05
    assert (np.diag(bound) == 1.0).all()


def test_the_bound_is_the_tail_of_a_normal_times_the_constant_of_the_paper() -> None:
    assert math.floor(FACTOR * 1000) == 3178
    assert pytest.approx(1.0 / (4.0 * stats.norm.sf(math.sqrt(2.0)))) == FACTOR
    t = np.array([0.5, 2.0, 3.0, 6.0])
    expected = np.minimum(FACTOR * 2.0 * stats.norm.sf(t), 1.0)
    np.testing.assert_allclose(flip_bound(3.0 * t, np.full(4, 9.0)), expected, rtol=1e-12)


def test_the_smaller_of_both_bounds_is_given() -> None:
    t = np.array([0.0, 0.3, 1.0, 1.5, 2.0, 4.0, 8.0])
    hoeffding = 2.0 * np.exp(-(t**2) / 2.0)
    gauss = FACTOR * 2.0 * stats.norm.sf(t)
    expected = np.minimum(np.minimum(hoeffding, gauss), 1.0)
    found = tightened(hoeffding)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found[0] == 1.0
    assert (found[4:] < hoeffding[4:]).all()
