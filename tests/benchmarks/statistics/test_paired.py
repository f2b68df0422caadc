"""Paired tests of two models on the same prompts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.statistics.paired import dominance, paired_t, wilcoxon

LEVELS = st.integers(0, 4)
PAIRS = st.lists(st.tuples(LEVELS, LEVELS), min_size=3, max_size=40)


@given(PAIRS)
@settings(deadline=None)
def test_the_t_test_is_scipys(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    found = paired_t(a, b)
    if np.ptp(a - b) > 0:
        expected = stats.ttest_rel(a, b)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p_value == pytest.approx(expected.pvalue)
    assert paired_t(b, a).p_value == found.p_value


@given(PAIRS)
@settings(deadline=None)
def test_wilcoxon_leaves_zeros_out(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    differs = a != b
    if not differs.any():
        return
    # The number of pairs chooses the method, so it is compared where none is dropped by either.
    found, expected = wilcoxon(a, b), stats.wilcoxon(a, b, zero_method="wilcox")
    assert found.statistic == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.statistic == wilcoxon(a[differs], b[differs]).statistic


@given(PAIRS)
def test_dominance_counts_strict_wins_only(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    wins, losses = dominance(a, b)
    assert wins == sum(x > y for x, y in pairs) / len(pairs)
    assert losses == sum(x < y for x, y in pairs) / len(pairs)
    assert wins + losses <= 1.0


def test_models_that_are_equal_everywhere_differ_in_nothing() -> None:
    same = [3.0, 4.0, 4.5]
    for test in (paired_t, wilcoxon):
        found = test(same, same)
        assert (found.statistic, found.p_value) == (0.0, 1.0)
        assert not found.significant(0.05)
    assert dominance(same, same) == (0.0, 0.0)


def test_a_constant_gain_is_as_significant_as_can_be() -> None:
    found = paired_t([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    assert (found.statistic, found.p_value) == (math.inf, 0.0)
    assert paired_t([1.0, 2.0], [2.0, 3.0]).statistic == -math.inf


def test_too_few_prompts_make_no_test() -> None:
    assert math.isnan(paired_t([1.0], [2.0]).p_value)
    assert not paired_t([1.0], [2.0]).significant(0.05)
    assert math.isnan(wilcoxon([], []).p_value)
    assert all(map(math.isnan, dominance([], [])))


def test_samples_of_different_length_are_refused() -> None:
    for test in (paired_t, wilcoxon, dominance):
        with pytest.raises(ValueError, match="one length"):
            test([1.0, 2.0], [1.0])
