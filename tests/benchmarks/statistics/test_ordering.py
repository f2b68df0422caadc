"""Relations of models, votes of metrics, and corrections of many tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.statistics.multiplicity import benjamini_hochberg, holm, holm_of_pairs
from benchmarks.statistics.ordering import (
    direction,
    majority_relation,
    relation,
    resampled_directions,
    resampled_majority,
    resampled_relations,
)

NAN = float("nan")


# Relations: Wilcoxon's test with a direction, and the votes of several metrics
def test_a_significant_difference_points_to_the_larger_mean_not_the_larger_ranks() -> None:
    better = np.linspace(0.5, 1.0, 40)
    assert relation(better, better - 0.1) == 1
    assert relation(better - 0.1, better) == -1
    assert relation(better[:5], better[:5] - 0.1) == 0  # five prompts reach p = 0.0625 at best
    differences = np.array([*np.linspace(0.01, 0.02, 60), *[-10.0] * 3])
    assert stats.wilcoxon(differences).pvalue < 0.001
    assert relation(differences, np.zeros(63)) == -1


def test_ties_missing_values_and_rounding_make_no_difference() -> None:
    same = [1.0, 2.0, 3.0]
    assert relation(same, same) == direction(same, same) == 0
    assert relation([], []) == direction([], []) == 0
    assert direction([NAN, 2.0, 9.0], [9.0, 1.0, NAN]) == 1
    assert resampled_relations([NAN, 0.0], np.ones((3, 2))).tolist() == [0, 0, 0]
    cancelled = np.round([1 / 3, 1 / 3, 1 / 3, -1.0], 9)
    assert direction(cancelled, np.zeros(4)) == 0
    drawn = resampled_directions(cancelled, np.array([[1.0, 1, 1, 1], [2, 1, 1, 1]]))
    assert drawn.tolist() == [0, 1]
    with pytest.raises(ValueError, match="length"):
        relation([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([1, 1, 0], 1), ([-1, 0, -1], -1), ([-1, 0, 1], 0), ([0, 0, 1], 0), ([1, 1, 0, 0], 0),
        ([1, 1, 0, -1], 0), ([-1, -1, -1, 1], -1), ([1], 1), ([], 0),
    ],
)  # fmt: skip
def test_a_majority_is_more_than_half_of_the_voters(votes: list[int], expected: int) -> None:
    assert majority_relation(votes) == expected
    if votes:
        assert resampled_majority(np.array(votes)[:, None]).tolist() == [expected]


@pytest.mark.slow
@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=12),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.001, 0.05, 0.3]),
)
def test_resamples_are_scipys_on_repeated_prompts(
    values: list[int], seed: int, level: float
) -> None:
    differences = np.array(values, float)
    differences[0] = NAN
    counts = np.random.default_rng(seed).integers(0, 4, (6, differences.size)).astype(float)
    found = resampled_relations(differences, counts, level)
    signs = resampled_directions(differences, counts)
    for b, weights in enumerate(counts.astype(int)):
        drawn = np.repeat(differences, weights)
        drawn = drawn[np.isfinite(drawn)]
        mean = np.sign(drawn.sum())
        assert signs[b] == mean
        significant = False
        if drawn.any():
            test = stats.wilcoxon(drawn, zero_method="wilcox", method="asymptotic")
            if abs(test.pvalue - level) < 1e-9:
                continue
            significant = bool(test.pvalue < level)
        assert found[b] == (mean if significant else 0)


# Holm's and Benjamini and Hochberg's corrections ------------------------------------------------

P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=15)
HOCHBERG_1995 = (
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
)  # fmt: skip
"""The fifteen p-values of the example in Benjamini and Hochberg (1995, section 3.2)."""


@given(P_VALUES)
def test_both_are_the_textbooks_and_lie_between_p_and_bonferroni(p: list[float]) -> None:
    """Holm rejects in order while p_(k) <= level / (m - k + 1); the other from the largest on."""
    m, order = len(p), np.argsort(p, kind="stable")
    ascending = np.array(p)[order]
    stepwise = np.minimum(1.0, np.maximum.accumulate(np.arange(m, 0, -1) * ascending))
    from_largest = (m / np.arange(1, m + 1) * ascending)[::-1]
    for correct, expected in (
        (holm, stepwise),
        (benjamini_hochberg, np.minimum(1.0, np.minimum.accumulate(from_largest)[::-1])),
    ):
        found = correct(p)
        np.testing.assert_allclose(found[order], expected, rtol=1e-12)
        assert (found >= np.array(p) * (1 - 1e-12)).all()
        assert (found <= np.minimum(np.array(p) * m, 1.0) * (1 + 1e-12)).all()
    assert (benjamini_hochberg(p) <= holm(p) * (1 + 1e-12)).all()


def test_the_published_examples() -> None:
    """Four hypotheses are rejected at a false discovery rate of 5 %; three with Bonferroni."""
    found = benjamini_hochberg(HOCHBERG_1995)
    assert ((found <= 0.05).sum(), (holm(HOCHBERG_1995) <= 0.05).sum()) == (4, 3)
    assert found[:4] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625], rel=1e-12)
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], rel=1e-12)


def test_what_was_not_tested_does_not_count() -> None:
    p = np.array([[0.01, np.nan], [0.04, 0.03]])
    for correct in (holm, benjamini_hochberg):
        found = correct(p)
        assert np.isnan(found).tolist() == [[False, True], [False, False]]
        np.testing.assert_array_equal(found[~np.isnan(p)], correct(p[~np.isnan(p)]))
        assert np.isnan(correct([np.nan, np.nan])).all()
        assert correct([]).shape == (0,)


def test_each_pair_of_a_board_counts_once() -> None:
    p = np.array([[1.0, 0.01, 0.04], [0.01, 1.0, 0.03], [0.04, 0.03, 1.0]])
    expected = [[NAN, 0.03, 0.06], [0.03, NAN, 0.06], [0.06, 0.06, NAN]]
    np.testing.assert_allclose(holm_of_pairs(p), expected)
    assert np.isnan(holm_of_pairs(np.ones((1, 1)))).all()
    assert holm_of_pairs(np.empty((0, 0))).shape == (0, 0)
