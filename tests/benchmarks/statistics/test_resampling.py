"""The resampling plan and means over clusters."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean

NAN = float("nan")
PLAN = ResamplingPlan(("a", "b", "c"), seed=1, n_resamples=4)


def test_the_first_draw_is_the_sample_itself_and_the_others_are_the_resamples() -> None:
    assert PLAN.draws.shape == (5, 3)
    np.testing.assert_array_equal(PLAN.draws[0], 1.0)
    np.testing.assert_array_equal(PLAN.draws[1:], PLAN.counts)
    assert (PLAN.draws.sum(axis=1) == 3).all()


def test_positions_follow_the_ids_and_repeat_with_them() -> None:
    found = PLAN.positions(["c", "a", "c"])
    assert found.tolist() == [2, 0, 2]
    assert found.dtype == np.intp
    assert PLAN.positions([]).dtype == np.intp
    np.testing.assert_array_equal(PLAN.counts_of(["c", "a", "c"]), PLAN.counts[:, [2, 0, 2]])


def test_an_id_that_is_not_in_the_plan_is_an_error() -> None:
    with pytest.raises(KeyError, match="d"):
        PLAN.positions(["a", "d"])


def test_means_leave_out_what_is_undefined() -> None:
    values = np.array([[1.0, NAN, NAN], [3.0, 5.0, NAN]])
    np.testing.assert_array_equal(mean_of_defined(values), [2.0, 5.0, NAN])
    np.testing.assert_array_equal(mean_of_defined(values, axis=1), [1.0, 4.0])
    by_draw = resampled_mean(values, np.array([[1.0, 1.0], [2.0, 0.0]]))
    np.testing.assert_array_equal(by_draw, [[2.0, 5.0, NAN], [1.0, NAN, NAN]])
