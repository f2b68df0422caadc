"""Ranks and rank ranges from joint resamples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leaderboard.ranking.rank_ranges import RankRange, rank_ranges


def test_clearly_apart_entries_have_ranges_of_one_rank() -> None:
    values = np.array([0.1, 0.9, 0.5])
    draws = values[:, None] + np.linspace(-0.01, 0.01, 100)
    assert rank_ranges(values, draws) == [
        RankRange(3, 3, 3),
        RankRange(1, 1, 1),
        RankRange(2, 2, 2),
    ]


def test_entries_that_change_places_in_resamples_share_a_range() -> None:
    values = np.array([0.51, 0.5])
    draws = np.array([[1.0, 0.0] * 50, [0.0, 1.0] * 50])
    assert rank_ranges(values, draws) == [RankRange(1, 1, 2), RankRange(2, 1, 2)]


def test_equal_values_share_the_better_rank() -> None:
    values = np.array([0.5, 0.5, 0.1])
    assert [r.rank for r in rank_ranges(values, np.tile(values[:, None], 10)) if r] == [1, 1, 3]


def test_undefined_entries_get_no_rank_and_do_not_push_others_down() -> None:
    values = np.array([np.nan, 0.5])
    draws = np.array([[np.nan] * 10, [0.5] * 10])
    assert rank_ranges(values, draws) == [None, RankRange(1, 1, 1)]


def test_where_smaller_is_better_the_order_turns() -> None:
    values = np.array([1.0, 2.0])
    draws = np.tile(values[:, None], 10)
    assert [r.rank for r in rank_ranges(values, draws, higher_is_better=False) if r] == [1, 2]


def test_without_any_resample_an_entrys_range_is_everything_and_the_others_keep_theirs() -> None:
    values = np.array([1.0, 2.0, 3.0])
    draws = np.tile(values[:, None], 10)
    draws[1] = np.nan
    assert rank_ranges(values, draws) == [
        RankRange(3, 2, 3),
        RankRange(2, 1, 3),
        RankRange(1, 1, 1),
    ]


def test_an_undefined_resample_is_a_last_place_for_that_entry_alone() -> None:
    values = np.array([3.0, 2.0])
    draws = np.tile(values[:, None], 10)
    draws[0, :2] = np.nan
    assert rank_ranges(values, draws) == [RankRange(1, 1, 2), RankRange(2, 1, 2)]


@given(
    arrays(np.float64, 6, elements=st.floats(-1, 1)),
    arrays(np.float64, (6, 20), elements=st.floats(-1, 1)),
)
def test_every_range_holds_its_rank_and_lies_on_the_board(
    values: np.ndarray, noise: np.ndarray
) -> None:
    for place in rank_ranges(values, values[:, None] + noise):
        assert place is not None
        assert 1 <= place.low <= place.rank <= place.high <= 6
