"""Ranks in many draws at once are those of scipy, ties and infinities included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import rankdata

from benchmarks.arrays import FloatArray
from leaderboard.ranking.draw_ranks import draw_ranks

_GRID = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 0.75, np.inf])
_ANY = st.floats(allow_nan=False)


@pytest.mark.parametrize("elements", [_GRID, _ANY], ids=["many ties", "few ties"])
def test_low_and_high_are_the_competition_ranks_of_scipy(
    elements: st.SearchStrategy[float],
) -> None:
    shapes = array_shapes(min_dims=2, max_dims=2, max_side=9)

    @given(arrays(np.float64, shapes, elements=elements))
    @settings(max_examples=100, deadline=None)
    def check(values: FloatArray) -> None:
        found = draw_ranks(values)
        np.testing.assert_array_equal(found.low, rankdata(values, "min", axis=0))
        np.testing.assert_array_equal(found.high, rankdata(values, "max", axis=0))
        np.testing.assert_array_equal((found.low + found.high) / 2, rankdata(values, axis=0))

    check()


def test_no_draws_and_no_values_have_no_ranks() -> None:
    assert draw_ranks(np.empty((3, 0))).low.shape == (3, 0)
    assert draw_ranks(np.empty((0, 4))).low.shape == (0, 4)


def test_single_precision_is_ranked_as_it_is() -> None:
    values = np.array([[0.1], [0.1 + 1e-9], [0.2]])
    assert draw_ranks(values).low.ravel().tolist() == [1, 2, 3]
    assert draw_ranks(values.astype(np.float32)).low.ravel().tolist() == [1, 1, 3]
