"""What is kept of the tests of a board: a selection, where bounds stand, and what it weighs."""

from __future__ import annotations

import numpy as np

from benchmarks.statistics.sign_flips import BOUND, FlipTests, flip_tests


def made(p: list[float], patterns: list[int], units: list[int]) -> FlipTests:
    """One row of tests against one metric."""
    n = len(p)
    return FlipTests(
        difference=np.zeros((1, n)),
        p_value=np.array([p]),
        n_units=np.array([units]),
        n_patterns=np.array([patterns]),
        exact=np.zeros((1, n), bool),
    )


def test_a_bound_is_one_that_drawing_would_better() -> None:
    found = made(
        p=[0.3, BOUND / 2, 0.3, 1.0, BOUND],
        patterns=[0, 0, 9999, 0, 0],
        units=[20, 20, 20, 0, 20],
    )
    # A bound; one below all that drawing gives; drawn; no unit differs; a bound at the edge.
    assert found.bounded.tolist() == [[True, False, False, False, True]]


def test_an_empty_test_or_a_whole_board_weighs_what_its_arrays_hold() -> None:
    board = np.random.default_rng(1).normal(size=(6, 30))
    found = flip_tests(board, 2)
    # Two arrays of doubles, two of 8-byte integers, one of booleans, for 36 pairs.
    assert found.nbytes == 36 * (4 * 8 + 1)
    assert flip_tests(board[:0], 2).nbytes == 0
    assert found.of(np.array([2, 0])).nbytes == 4 * (4 * 8 + 1)


def test_a_selection_holds_the_same_numbers_in_its_own_order() -> None:
    board = np.random.default_rng(1).normal(size=(6, 30))
    whole, order = flip_tests(board, 2), np.array([4, 1, 3])
    some, again = whole.of(order), flip_tests(board[order], 2)
    for name in ("difference", "p_value", "n_units", "n_patterns", "exact"):
        np.testing.assert_array_equal(getattr(some, name), getattr(again, name))
