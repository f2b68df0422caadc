"""Kendall's W, its chi-square and its permutation test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.statistics.concordance import (
    DRAWN_ARRANGEMENTS,
    EXACT_ARRANGEMENTS,
    concordance,
    kendall_w,
)

tied = arrays(
    np.float64,
    st.tuples(st.integers(3, 6), st.integers(3, 6)),
    elements=st.integers(0, 4).map(float),
)


def test_a_textbook_case_by_hand() -> None:
    """Rank sums 4, 8, 6, 12 of three judges: S = 35, W = 12 * 35 / (9 * 60)."""
    found = concordance([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 1.0, 4.0], [1.0, 3.0, 2.0, 4.0]])
    assert found.w == pytest.approx(12 * 35 / (9 * 60), abs=1e-15)
    assert found.chi_square == pytest.approx(7.0, abs=1e-12)
    assert found.chi_square_p == pytest.approx(stats.chi2.sf(7.0, 3), abs=1e-15)


def test_ties_are_corrected_for_by_hand() -> None:
    """Ranks 1 2.5 2.5 and 1 2 3: sums 2, 4.5, 5.5; S = 6.5; T = 6; W = 12 S / (4 * 24 - 2 * 6)."""
    assert kendall_w([[1.0, 2.0, 2.0], [1.0, 2.0, 3.0]]) == pytest.approx(12 * 6.5 / 84, abs=1e-15)


@given(tied)
@settings(deadline=None)
def test_w_is_friedmans_statistic_over_m_times_n_less_one(table: np.ndarray) -> None:
    found = concordance(table)
    if math.isnan(found.w):
        assert all(np.ptp(row) == 0 for row in table)
        return
    m, n = table.shape
    friedman = stats.friedmanchisquare(*table.T)
    assert found.w == pytest.approx(friedman.statistic / (m * (n - 1)), rel=1e-10, abs=1e-10)
    assert found.chi_square == pytest.approx(friedman.statistic, rel=1e-10, abs=1e-10)
    assert found.chi_square_p == pytest.approx(friedman.pvalue, rel=1e-10, abs=1e-10)


@pytest.mark.slow
@given(tied)
@settings(deadline=None)
def test_many_tables_at_once_are_one_after_the_other(table: np.ndarray) -> None:
    stack = np.stack([table, table[::-1] + 1, table[:, ::-1] ** 2])
    np.testing.assert_array_equal(kendall_w(stack), [kendall_w(one) for one in stack])
    np.testing.assert_array_equal(kendall_w(stack), kendall_w(table))  # order does not matter


@given(arrays(np.float64, (3, 3), elements=st.integers(0, 2).map(float)))
@settings(deadline=None, max_examples=30)
def test_the_exact_p_counts_all_arrangements_of_all_judges(table: np.ndarray) -> None:
    found = concordance(table)
    if math.isnan(found.w):
        assert math.isnan(found.permutation_p)
        return
    orders = list(itertools.permutations(range(3)))
    w = kendall_w(
        np.array(
            [
                [row[list(order)] for row, order in zip(table, chosen, strict=True)]
                for chosen in itertools.product(orders, repeat=3)
            ]
        )
    )
    assert found.exact
    assert found.permutation_p == pytest.approx((w >= found.w - 1e-12).mean(), abs=1e-15)


def test_full_agreement_of_three_judges_on_four_items_happens_once_in_576() -> None:
    found = concordance([[1.0, 2.0, 3.0, 4.0]] * 3)
    assert (found.w, found.exact) == (1.0, True)
    assert found.permutation_p == pytest.approx(1 / 576)


def test_drawn_arrangements_agree_with_counted_ones_and_repeat() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(3, 6)) + 0.7 * np.arange(6)
    drawn = concordance(table)
    assert not drawn.exact
    assert math.factorial(6) ** 2 > EXACT_ARRANGEMENTS
    assert drawn == concordance(table)
    ranks = stats.rankdata(table, axis=1) - 3.5
    orders = np.array(list(itertools.permutations(range(6))))
    two = (ranks[0] + ranks[1][orders])[:, None, :] + ranks[2][orders]
    exact = float(((two**2).sum(axis=2) >= (ranks.sum(axis=0) ** 2).sum()).mean())
    error = math.sqrt(exact * (1 - exact) / DRAWN_ARRANGEMENTS)
    assert drawn.permutation_p == pytest.approx(exact, abs=4 * error + 1e-4)


def test_clear_leaders_make_p_small_though_the_field_is_mixed() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(5, 8))
    table[:, :2] += 10.0
    found = concordance(table)
    assert found.w < 1.0
    assert found.permutation_p < 0.05


@pytest.mark.parametrize(
    "table", [np.ones((3, 4)), np.empty((0, 4)), np.ones((3, 1)), np.empty((2, 0))]
)
def test_without_an_order_there_is_no_w(table: np.ndarray) -> None:
    found = concordance(table)
    assert math.isnan(found.w)
    assert math.isnan(found.chi_square_p)
    assert math.isnan(found.permutation_p)


@pytest.mark.parametrize("table", [[1.0, 2.0], [[1.0, math.nan]]])
def test_anything_but_a_table_of_finite_scores_is_refused(table: object) -> None:
    with pytest.raises(ValueError, match="finite scores"):
        concordance(np.asarray(table))
