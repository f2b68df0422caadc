"""Holm's and Benjamini and Hochberg's corrections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.statistics.multiplicity import benjamini_hochberg, holm, holm_of_pairs

P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=15)
HOCHBERG_1995 = (
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
)  # fmt: skip
"""The fifteen p-values of the example in Benjamini and Hochberg (1995, section 3.2)."""


def plain_holm(p: list[float]) -> list[float]:
    """Reject in order while p_(k) <= level / (m - k + 1): the smallest level that rejects."""
    m = len(p)
    order = sorted(range(m), key=lambda i: p[i])
    found = [0.0] * m
    for k, i in enumerate(order):
        found[i] = min(1.0, max((m - j) * p[order[j]] for j in range(k + 1)))
    return found


def plain_benjamini_hochberg(p: list[float]) -> list[float]:
    m = len(p)
    order = sorted(range(m), key=lambda i: p[i])
    found = [0.0] * m
    for k, i in enumerate(order):
        found[i] = min(1.0, *(m / (j + 1) * p[order[j]] for j in range(k, m)))
    return found


@given(P_VALUES)
def test_both_are_the_textbooks(p: list[float]) -> None:
    np.testing.assert_allclose(holm(p), plain_holm(p), rtol=1e-12)
    np.testing.assert_allclose(benjamini_hochberg(p), plain_benjamini_hochberg(p), rtol=1e-12)


@given(P_VALUES)
def test_the_order_of_tests_does_not_matter(p: list[float]) -> None:
    order = np.random.default_rng(len(p)).permutation(len(p))
    for correct in (holm, benjamini_hochberg):
        np.testing.assert_allclose(correct(np.array(p)[order]), correct(p)[order], rtol=1e-12)


@given(P_VALUES)
def test_corrected_p_values_keep_the_order_and_lie_between_p_and_bonferroni(p: list[float]) -> None:
    bonferroni = np.minimum(np.array(p) * len(p), 1.0)
    for correct in (holm, benjamini_hochberg):
        found = correct(p)
        assert (found >= np.array(p) * (1 - 1e-12)).all()
        assert (found <= bonferroni * (1 + 1e-12)).all()
        assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()
    assert (benjamini_hochberg(p) <= holm(p) * (1 + 1e-12)).all()


def test_the_example_of_benjamini_and_hochberg() -> None:
    """They reject four hypotheses at a false discovery rate of 5 %; Bonferroni rejects three."""
    assert (benjamini_hochberg(HOCHBERG_1995) <= 0.05).sum() == 4
    assert (holm(HOCHBERG_1995) <= 0.05).sum() == 3
    assert benjamini_hochberg(HOCHBERG_1995)[:4] == pytest.approx(
        [0.0015, 0.003, 0.0095, 0.035625], rel=1e-12
    )


def test_the_usual_worked_example_of_holm() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], rel=1e-12)


def test_what_was_not_tested_does_not_count() -> None:
    p = np.array([[0.01, np.nan], [0.04, 0.03]])
    for correct in (holm, benjamini_hochberg):
        found = correct(p)
        assert found.shape == p.shape
        assert np.isnan(found).tolist() == [[False, True], [False, False]]
        np.testing.assert_array_equal(found[~np.isnan(p)], correct(p[~np.isnan(p)]))
        assert np.isnan(correct([np.nan, np.nan])).all()
        assert correct([]).shape == (0,)


def test_each_pair_of_a_board_counts_once() -> None:
    p = np.array([[1.0, 0.01, 0.04], [0.01, 1.0, 0.03], [0.04, 0.03, 1.0]])
    found = holm_of_pairs(p)
    assert np.isnan(np.diag(found)).all()
    assert found[[0, 0, 1], [1, 2, 2]] == pytest.approx([0.03, 0.06, 0.06])
    np.testing.assert_array_equal(found, found.T)


def test_boards_without_pairs_have_nothing_to_correct() -> None:
    assert np.isnan(holm_of_pairs(np.ones((1, 1)))).all()
    assert holm_of_pairs(np.empty((0, 0))).shape == (0, 0)
