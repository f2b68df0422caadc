"""Values within groups equal scipy's on each group; their mean and threshold those of plain loops."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics.correlation import BY_GROUP, Groups, grouped, resampled_grouped
from benchmarks.statistics.pairwise_accuracy import (
    Calibrated,
    GroupedPairs,
    pairwise_accuracy,
    tie_calibrated,
)
from tests.benchmarks.statistics.references import scipy_value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Sample = tuple[FloatArray, FloatArray, IntArray]

SCIPY = {"pearson": stats.pearsonr, "srcc": stats.spearmanr, "krcc": stats.kendalltau}
every_measure = pytest.mark.parametrize("measure", list(SCIPY))


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Scores, labels and groups: ties, constant and empty groups all occur."""
    n = draw(st.integers(1, 24))
    score = st.one_of(st.integers(-4, 4).map(lambda k: k / 10), st.floats(-10, 10, width=32))
    label = st.integers(3, 9).map(lambda k: k / 3)
    scores = draw(st.lists(score, min_size=n, max_size=n))
    labels = draw(st.lists(label, min_size=n, max_size=n))
    groups = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    return np.array(scores, np.float64), np.array(labels), np.array(groups)


@every_measure
@settings(deadline=None)
@given(sample=samples())
def test_each_group_has_scipys_value(measure: str, sample: Sample) -> None:
    scores, labels, groups = sample
    found = BY_GROUP[measure](scores, labels, Groups.of(groups, 6))
    expected = [
        scipy_value(SCIPY[measure], scores[groups == g], labels[groups == g]) for g in range(6)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@every_measure
def test_metrics_are_columns_and_resamples_draw_groups(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 30, 400)
    x, y = rng.normal(size=(400, 3)).round(1), rng.integers(1, 6, 400).astype(float)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=7).astype(float)
    values = BY_GROUP[measure](x, y, Groups.of(groups))
    assert values.shape == (30, 3)
    np.testing.assert_array_equal(values[:, 1], BY_GROUP[measure](x[:, 1], y, Groups.of(groups)))
    np.testing.assert_allclose(grouped(measure, x, y, Groups.of(groups)), values.mean(axis=0))
    found = resampled_grouped(measure, x, y, Groups.of(groups), counts)
    np.testing.assert_allclose(found, counts @ values / 30)
    monkeypatch.setattr("benchmarks.statistics.samples._PAIRS", 5)
    np.testing.assert_allclose(BY_GROUP[measure](x, y, Groups.of(groups)), values)


@every_measure
def test_groups_without_a_value_are_left_out_of_the_mean(measure: str) -> None:
    x, y = [0.1, 0.2, 5.0, 5.0, 1.0], [1.0, 2.0, 1.0, 2.0, 3.0]
    groups = Groups.of([0, 0, 1, 1, 2])
    assert np.isnan(BY_GROUP[measure](x, y, groups)).tolist() == [False, True, True]
    assert grouped(measure, x, y, groups) == pytest.approx(1.0)
    found = resampled_grouped(measure, x, y, groups, [[1, 5, 1], [0, 2, 1]])
    assert found[0] == pytest.approx(1.0)
    assert math.isnan(found[1])


@pytest.mark.parametrize(("scale", "offset"), [(1e-200, 0.0), (1e200, 0.0), (1e-9, 1e3)])
def test_pearson_within_groups_keeps_its_digits(scale: float, offset: float) -> None:
    k = np.array([0.0, 1.0, 2.0, 4.0, 7.0])
    x = offset + scale * k
    found = BY_GROUP["pearson"](
        np.append(x, [1e9, -1e9]), [3, 1, 2, 5, 4, 1, 2], Groups.of([0, 0, 0, 0, 0, 1, 1])
    )
    exact = stats.pearsonr(((x - offset) / scale), [3, 1, 2, 5, 4]).statistic
    assert found[0] == pytest.approx(exact, abs=1e-12)


@every_measure
def test_misfits_are_refused(measure: str) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        BY_GROUP[measure]([1.0, 2.0], [1.0], Groups.of([0, 0]))
    with pytest.raises(ValueError, match="index of its group"):
        Groups.of([0, -1])
    with pytest.raises(ValueError, match="below 1"):
        Groups.of([0, 1], 1)


def plain_mean(scores: FloatArray, labels: FloatArray, groups: IntArray, e: float) -> float:
    shares = [
        pairwise_accuracy(scores[groups == g], labels[groups == g], e) for g in np.unique(groups)
    ]
    defined = [share for share in shares if not math.isnan(share)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def plainly_calibrated(
    scores: FloatArray, labels: FloatArray, groups: IntArray
) -> tuple[float, float]:
    """Every difference within a group tried; the smallest of equally good thresholds."""
    differences = {
        abs(float(scores[i] - scores[j]))
        for i, j in combinations(range(scores.size), 2)
        if groups[i] == groups[j]
    }
    best = (math.nan, math.nan)
    for e in sorted({0.0, *differences}):
        mean = plain_mean(scores, labels, groups, e)
        if math.isnan(mean):
            return best
        if math.isnan(best[0]) or mean > best[0] + 1e-12:
            best = (mean, e)
    return best


@settings(deadline=None, max_examples=50)
@given(sample=samples())
def test_one_threshold_is_best_for_all_groups(sample: Sample) -> None:
    scores, labels, groups = sample
    found = GroupedPairs.of(labels, Groups.of(groups)).tie_calibrated(scores)
    accuracy, threshold = plainly_calibrated(scores, labels, groups)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-12, nan_ok=True)
    assert found.threshold == pytest.approx(threshold, abs=0, nan_ok=True)


@pytest.mark.parametrize(
    ("scores", "threshold"), [([0.0, 1.0, 1.5, 9.0], 1.5), ([0.0, 0.0, 0.0, 9.0], 0.0)]
)
def test_in_groups_of_one_size_the_smallest_of_the_best_thresholds_is_told(
    scores: list[float], threshold: float
) -> None:
    pairs = GroupedPairs.of([1.0, 1.0, 1.0, 2.0], Groups.of(np.zeros(4, int)))
    assert pairs.tie_calibrated(scores) == Calibrated(1.0, threshold)


def test_groups_whose_sizes_share_no_multiple_are_weighted_in_fractions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.statistics.pairwise_accuracy.MOST_COMMON_MULTIPLE", 1)
    rng = np.random.default_rng(3)
    groups, labels = rng.integers(0, 8, 60), rng.integers(3, 8, 60) / 3
    scores = labels + rng.normal(size=60)
    found = GroupedPairs.of(labels, Groups.of(groups)).tie_calibrated(scores)
    accuracy, threshold = plainly_calibrated(scores, labels, groups)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-12)
    assert found.threshold == threshold


def test_one_group_is_the_flat_calibration() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(3, 16, 400) / 3
    for scores in (labels + rng.normal(size=400), np.round(labels + rng.normal(size=400), 1)):
        pairs = GroupedPairs.of(labels, Groups.of(np.zeros(400, int)))
        assert pairs.tie_calibrated(scores) == tie_calibrated(scores, labels)
        assert pairs.accuracy(scores, 0.3)[0] == pairwise_accuracy(scores, labels, 0.3)


@settings(deadline=None)
@given(sample=samples(), threshold=st.floats(0, 5))
def test_accuracy_at_a_threshold_is_that_of_each_group(sample: Sample, threshold: float) -> None:
    scores, labels, groups = sample
    found = GroupedPairs.of(labels, Groups.of(groups, 5)).accuracy(scores, threshold)
    expected = [
        pairwise_accuracy(scores[groups == g], labels[groups == g], threshold) for g in range(5)
    ]
    np.testing.assert_allclose(found, expected)


def test_pairs_that_cannot_be_made_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = Groups.of([0, 0, 0])
    with pytest.raises(ValueError, match="finite"):
        GroupedPairs.of([1.0, 2.0, math.nan], groups)
    with pytest.raises(ValueError, match="do not fit"):
        GroupedPairs.of([1.0, 2.0], groups)
    pairs = GroupedPairs.of([1.0, 2.0, 3.0], groups)
    with pytest.raises(ValueError, match="do not fit"):
        pairs.tie_calibrated([1.0])
    with pytest.raises(ValueError, match="finite"):
        pairs.accuracy([1.0, 2.0, math.inf])
    with pytest.raises(ValueError, match="at least 0"):
        pairs.accuracy([1.0, 2.0, 3.0], -1.0)
    monkeypatch.setattr("benchmarks.statistics.pairwise_accuracy.MOST_PAIRS", 2)
    with pytest.raises(ValueError, match="too many to list"):
        GroupedPairs.of([1.0, 2.0, 3.0], groups)


@every_measure
def test_groups_without_any_item_have_no_value(measure: str) -> None:
    nothing = Groups.of(np.empty(0, np.intp), 3)
    one = BY_GROUP[measure](np.empty(0), np.empty(0), nothing)
    assert one.shape == (3,)
    assert np.isnan(one).all()
    several = BY_GROUP[measure](np.empty((0, 2)), np.empty(0), nothing)
    assert several.shape == (3, 2)
    assert math.isnan(float(grouped(measure, np.empty(0), np.empty(0), nothing)))
