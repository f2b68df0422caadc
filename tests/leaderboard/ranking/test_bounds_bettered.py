"""An upper bound stands in a ranking only as long as nobody asks for few pairs."""

from __future__ import annotations

import numpy as np

from benchmarks.statistics.sign_flips import BOUND, flip_tests
from leaderboard.ranking import pairs
from leaderboard.ranking.pairs import Pairs

SEED = 3


def test_a_bound_in_place_of_a_draw_is_bettered_once_few_are_asked_for() -> None:
    rng = np.random.default_rng(0)
    board = rng.normal(0.0, 1.0, (12, 60)) + np.linspace(0.0, 0.6, 12)[:, None]
    ids = tuple(f"m{n}" for n in range(12))
    bounded = pairs.tests_of(ids, board, SEED, Pairs("1", (), flip_tests(board[:0], SEED)), 5)
    assert ((bounded.n_patterns == 0) & (bounded.p_value >= BOUND) & (bounded.p_value < 1)).any()
    known = Pairs("1", ids, bounded)
    few = pairs.tests_of(ids[:3], board[:3], SEED, known, 5)
    np.testing.assert_array_equal(few.p_value, flip_tests(board[:3], SEED).p_value)
