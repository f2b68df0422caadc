"""The threshold search in steps of 0.01."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.statistics.thresholds import (
    Threshold,
    best_index,
    best_threshold,
    correct_by_cluster,
    deal_folds,
    held_out_indices,
    threshold_grid,
)


def test_the_grid_holds_the_doubles_nearest_to_the_decimals() -> None:
    grid = threshold_grid([0.2, 0.7])
    assert grid.size == 101
    assert [grid[29], grid[58], grid[100]] == [0.29, 0.58, 1.0]


def test_the_grid_widens_to_whole_numbers_around_the_scores() -> None:
    grid = threshold_grid([-0.3, 2.4, np.nan, -np.inf])
    assert (grid[0], grid[-1], grid.size) == (-1.0, 3.0, 401)


def test_scores_that_are_no_element_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="span"):
        threshold_grid([0.0, 250.0])


def test_a_score_equal_to_the_threshold_is_positive() -> None:
    assert best_threshold([0.28, 0.29], [False, True]) == Threshold(0.29, 1.0)


def test_the_smallest_of_equally_good_thresholds_is_taken() -> None:
    assert best_threshold([0.2, 0.6], [False, True]) == Threshold(0.21, 1.0)
    assert best_threshold([0.2, 0.6], [True, True]) == Threshold(0.0, 1.0)


def test_a_missing_score_is_negative_at_every_threshold() -> None:
    found = best_threshold([np.nan, np.nan, 0.5], [True, False, True])
    assert found.value == 0.0
    assert found.accuracy == pytest.approx(2 / 3)


def test_without_scores_there_is_no_threshold() -> None:
    with pytest.raises(ValueError, match="without scores"):
        best_threshold([], [])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-20, 130), st.booleans(), st.integers(0, 2)), min_size=1, max_size=25
    )
)
def test_counts_equal_those_of_the_definition(items: list[tuple[int, bool, int]]) -> None:
    scores = np.array([score / 100 for score, _, _ in items])
    positive = np.array([label for _, label, _ in items])
    clusters = np.array([cluster for _, _, cluster in items])
    grid = threshold_grid(scores)
    found = correct_by_cluster(scores, positive, clusters, 3, grid)
    for cluster in range(3):
        mine = clusters == cluster
        expected = [((scores[mine] >= t) == positive[mine]).sum() for t in grid]
        np.testing.assert_array_equal(found[cluster], expected)
    accuracy = [((scores >= t) == positive).mean() for t in grid]
    best = best_threshold(scores, positive)
    assert best.accuracy == pytest.approx(max(accuracy))
    assert best.value == grid[int(np.argmax(accuracy))]
    assert int(best_index(found.sum(axis=0))) == int(np.argmax(accuracy))


@given(st.integers(1, 40), st.integers(1, 6), st.randoms(use_true_random=False))
def test_folds_are_even_and_do_not_depend_on_the_order_of_names(
    n: int, n_folds: int, random: Random
) -> None:
    names = [f"prompt {k}" for k in range(n)]
    folds = deal_folds(names, n_folds)
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1
    shuffled = names[:]
    random.shuffle(shuffled)
    dealt = dict(zip(shuffled, deal_folds(shuffled, n_folds), strict=True))
    assert [dealt[name] for name in names] == folds.tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 100), st.booleans(), st.integers(0, 4)), min_size=2),
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
)
def test_held_out_thresholds_are_those_of_a_search_without_the_fold(
    items: list[tuple[int, bool, int]], drawn: list[int]
) -> None:
    scores = np.array([score / 100 for score, _, _ in items])
    positive = np.array([label for _, label, _ in items])
    clusters = np.array([cluster for _, _, cluster in items])
    folds = np.array([0, 1, 0, 1, 2])
    grid = threshold_grid(scores)
    correct = correct_by_cluster(scores, positive, clusters, 5, grid)
    searched = np.array([[0, grid.size - 1]] * 3)
    found = held_out_indices(correct, folds, searched, np.array([drawn], np.float64))
    for fold in range(3):
        kept = np.repeat(np.arange(scores.size), np.array(drawn)[clusters])
        kept = kept[folds[clusters[kept]] != fold]
        if kept.size:
            best = best_threshold(scores[kept], positive[kept])
            assert grid[found[0, fold]] == best.value


def test_held_out_thresholds_stay_within_what_the_other_folds_span() -> None:
    # The outlier widens the grid to -1, but never the search for its own fold.
    scores, clusters = np.array([-0.5, 0.2, 0.8]), np.array([0, 1, 1])
    grid = threshold_grid(scores)
    correct = correct_by_cluster(scores, [True, True, True], clusters, 2, grid)
    searched = np.array([[100, 200], [0, 200]])
    found = held_out_indices(correct, np.array([0, 1]), searched, np.ones((1, 2)))
    assert grid[found[0]].tolist() == [0.0, -1.0]
