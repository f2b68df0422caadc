"""Relations of models: Wilcoxon's test with a direction, votes, and both in every resample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.statistics.ordering import (
    direction,
    majority_relation,
    relation,
    resampled_directions,
    resampled_majority,
    resampled_relations,
)

NAN = float("nan")


def test_a_significant_difference_points_to_the_larger_mean() -> None:
    better = np.linspace(0.5, 1.0, 40)
    assert relation(better, better - 0.1) == 1
    assert relation(better - 0.1, better) == -1
    assert relation(better[:5], better[:5] - 0.1) == 0  # five prompts reach p = 0.0625 at best


def test_the_direction_is_that_of_the_means_not_of_the_ranks() -> None:
    differences = np.array([*np.linspace(0.01, 0.02, 60), *[-10.0] * 3])
    assert stats.wilcoxon(differences).pvalue < 0.001
    assert relation(differences, np.zeros(63)) == -1


def test_ties_and_missing_values_make_no_difference() -> None:
    same = [1.0, 2.0, 3.0]
    assert relation(same, same) == direction(same, same) == 0
    assert relation([], []) == direction([], []) == 0
    assert direction([NAN, 2.0, 9.0], [9.0, 1.0, NAN]) == 1
    with pytest.raises(ValueError, match="one length"):
        relation([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([1, 1, 0], 1),
        ([-1, 0, -1], -1),
        ([-1, 0, 1], 0),
        ([0, 0, 1], 0),
        ([1, 1, 0, 0], 0),
        ([1, 1, 0, -1], 0),
        ([-1, -1, -1, 1], -1),
        ([1], 1),
        ([], 0),
    ],
)
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
def test_each_resample_is_scipys_test_on_the_repeated_prompts(
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


def test_without_differences_no_resample_has_a_relation() -> None:
    assert resampled_relations([NAN, 0.0], np.ones((3, 2))).tolist() == [0, 0, 0]


def test_differences_that_cancel_out_but_for_rounding_have_no_direction() -> None:
    differences = np.round([1 / 3, 1 / 3, 1 / 3, -1.0], 9)
    assert direction(differences, np.zeros(4)) == 0
    assert resampled_directions(differences, np.array([[1.0, 1, 1, 1], [2, 1, 1, 1]])).tolist() == [
        0,
        1,
    ]
