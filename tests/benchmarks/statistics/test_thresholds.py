"""The threshold search in steps of 0.01, on all data and without a fold."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.thresholds import (
    best_index,
    best_threshold,
    correct_by_cluster,
    deal_folds,
    held_out_indices,
    threshold_grid,
)

ITEMS = st.lists(
    st.tuples(st.integers(-20, 130), st.booleans(), st.integers(0, 4)), min_size=1, max_size=25
)
TIMES = st.lists(st.integers(0, 3), min_size=5, max_size=5)
Items = list[tuple[int, bool, int]]


def columns(items: Items) -> tuple[FloatArray, BoolArray, IntArray]:
    scores, labels, clusters = (np.array(column) for column in zip(*items, strict=True))
    return scores / 100, labels, clusters


# Thresholds
def test_the_grid_holds_the_nearest_doubles_between_whole_numbers_around_the_scores() -> None:
    grid = threshold_grid([0.2, 0.7])
    assert (grid.size, grid[29], grid[58], grid[100]) == (101, 0.29, 0.58, 1.0)
    wide = threshold_grid([-0.3, 2.4, np.nan, -np.inf])
    assert (wide[0], wide[-1], wide.size) == (-1.0, 3.0, 401)


@pytest.mark.parametrize(
    ("scores", "labels", "value", "accuracy"),
    [
        ([0.28, 0.29], [False, True], 0.29, 1.0),  # a score equal to the threshold is positive
        ([0.2, 0.6], [False, True], 0.21, 1.0),  # the smallest of equally good ones
        ([0.2, 0.6], [True, True], 0.0, 1.0),
        ([np.nan, np.nan, 0.5], [True, False, True], 0.0, 2 / 3),  # missing is negative at each
    ],
)
def test_the_smallest_of_the_best_thresholds_is_taken(
    scores: list[float], labels: list[bool], value: float, accuracy: float
) -> None:
    found = best_threshold(scores, labels)
    assert (found.value, found.accuracy) == pytest.approx((value, accuracy), abs=1e-15)


def test_scores_without_a_threshold_are_refused() -> None:
    with pytest.raises(ValueError, match="span"):
        threshold_grid([0.0, 250.0])
    with pytest.raises(ValueError, match="without"):
        best_threshold([], [])


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(ITEMS)
def test_counts_equal_those_of_the_definition(items: Items) -> None:
    scores, positive, clusters = columns(items)
    grid = threshold_grid(scores)
    found = correct_by_cluster(scores, positive, clusters, 5, grid)
    for cluster in range(5):
        mine = clusters == cluster
        expected = [((scores[mine] >= t) == positive[mine]).sum() for t in grid]
        np.testing.assert_array_equal(found[cluster], expected)
    accuracy = [((scores >= t) == positive).mean() for t in grid]
    best = int(np.argmax(accuracy))
    threshold = best_threshold(scores, positive)
    assert threshold.value == grid[best]
    assert threshold.accuracy == pytest.approx(accuracy[best])
    assert int(best_index(found.sum(axis=0))) == best


@given(st.integers(1, 40), st.integers(1, 6), st.randoms(use_true_random=False))
def test_folds_are_even_whatever_the_order_of_names(n: int, n_folds: int, random: Random) -> None:
    names = [f"prompt {k}" for k in range(n)]
    folds = deal_folds(names, n_folds)
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.max() - sizes.min() <= 1
    shuffled = names[:]
    random.shuffle(shuffled)
    dealt = dict(zip(shuffled, deal_folds(shuffled, n_folds), strict=True))
    assert [dealt[name] for name in names] == folds.tolist()


@settings(max_examples=60, deadline=None)
@given(ITEMS, TIMES)
def test_held_out_thresholds_are_searched_without_the_fold(items: Items, drawn: list[int]) -> None:
    scores, positive, clusters = columns([(min(abs(score), 100), *rest) for score, *rest in items])  # type: ignore[misc]
    folds = np.array([0, 1, 0, 1, 2])
    grid = threshold_grid(scores)
    correct = correct_by_cluster(scores, positive, clusters, 5, grid)
    searched = np.array([[0, grid.size - 1]] * 3)
    found = held_out_indices(correct, folds, searched, np.array([drawn], np.float64))
    for fold in range(3):
        kept = np.repeat(np.arange(scores.size), np.array(drawn)[clusters])
        kept = kept[folds[clusters[kept]] != fold]
        if kept.size:
            assert grid[found[0, fold]] == best_threshold(scores[kept], positive[kept]).value


def test_held_out_thresholds_stay_within_what_the_other_folds_span() -> None:
    # The outlier widens the grid to -1, but never the search for its own fold.
    scores, clusters = np.array([-0.5, 0.2, 0.8]), np.array([0, 1, 1])
    grid = threshold_grid(scores)
    correct = correct_by_cluster(scores, [True, True, True], clusters, 2, grid)
    searched = np.array([[100, 200], [0, 200]])
    found = held_out_indices(correct, np.array([0, 1]), searched, np.ones((1, 2)))
    assert grid[found[0]].tolist() == [0.0, -1.0]
