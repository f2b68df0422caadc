"""Where too many pairs would be drawn for while somebody waits, upper bounds are given instead."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.statistics.flip_bound import flip_bound, tightened
from benchmarks.statistics.sign_flips import ENUMERATED, pair_tests

SEED = 3


@pytest.fixture
def board() -> np.ndarray:
    """Twelve metrics whose differences are from none to large, over 60 blocks."""
    rng = np.random.default_rng(0)
    return rng.normal(0.0, 1.0, (12, 60)) + np.linspace(0.0, 0.6, 12)[:, None]


def test_the_bounds_lie_above_what_drawing_finds_and_say_that_they_are_bounds(
    board: np.ndarray,
) -> None:
    a, b = np.triu_indices(12, 1)
    drawn = pair_tests(board, a, b, SEED)
    near = drawn.n_patterns > 0
    assert near.sum() > 20
    bounded = pair_tests(board, a, b, SEED, most_drawn=int(near.sum()) - 1)
    assert (bounded.n_patterns[near] == 0).all()
    assert (bounded.p_value >= drawn.p_value * 0.98 - 0.01).all()  # drawing is off by chance
    assert (bounded.p_value <= 1.0).all()
    # What needs no drawing is as it was.
    np.testing.assert_array_equal(bounded.p_value[~near], drawn.p_value[~near])


def test_as_many_pairs_as_may_be_drawn_are_drawn(board: np.ndarray) -> None:
    a, b = np.triu_indices(12, 1)
    drawn = pair_tests(board, a, b, SEED)
    same = pair_tests(board, a, b, SEED, most_drawn=int((drawn.n_patterns > 0).sum()))
    np.testing.assert_array_equal(same.p_value, drawn.p_value)


def test_few_blocks_are_enumerated_however_many_pairs_there_are() -> None:
    rng = np.random.default_rng(1)
    few = rng.normal(size=(5, ENUMERATED))
    a, b = np.triu_indices(5, 1)
    found = pair_tests(few, a, b, SEED, most_drawn=0)
    assert found.exact.all()
    np.testing.assert_array_equal(found.p_value, pair_tests(few, a, b, SEED).p_value)


def test_the_two_bounds_are_one_formula() -> None:
    sizes = np.linspace(0.0, 6.0, 50)
    hoeffding = 2.0 * np.exp(-(sizes**2) / 2.0)
    gauss = flip_bound(sizes, np.ones_like(sizes))
    np.testing.assert_allclose(tightened(hoeffding), np.minimum(np.minimum(hoeffding, gauss), 1.0))
