"""Pairwise accuracy with tie calibration, flat and within groups: a plain look at every pair."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics import correlation
from benchmarks.statistics import pairwise_accuracy as module
from benchmarks.statistics.correlation import Groups
from benchmarks.statistics.kendall import KendallForms
from benchmarks.statistics.pairwise_accuracy import (
    Calibrated,
    GroupedPairs,
    PairForms,
    Pairs,
    pairwise_accuracy,
    reach,
    tie_calibrated,
)
from tests.benchmarks.statistics.references import calibrated_in_groups, grouped_samples

SCORES = st.one_of(
    st.integers(0, 5).map(lambda k: k / 10),
    st.floats(-10, 10, allow_subnormal=False),
    st.sampled_from([1e-300, -1e16, 1e16, 1.0, 1.0 + 2**-52, 3.3, 1e308, -1e308]),
)
LABELS = st.one_of(st.integers(0, 3).map(lambda k: k / 3), st.floats(0, 5))
SAMPLES = st.lists(st.tuples(SCORES, LABELS), min_size=2, max_size=14)
CLUSTERED = st.lists(st.tuples(SCORES, LABELS, st.integers(0, 4)), min_size=1, max_size=14)
TIGHT = {"_LISTED": 3, "_SPLITS": 2, "_BLOCK": 3, "_TABLE_CELLS": 8}
"""Sizes that make every block boundary matter on small samples."""
pytestmark = pytest.mark.filterwarnings("ignore:overflow")


@pytest.fixture(params=["whole", "blocks"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in TIGHT.items() if request.param == "blocks" else ():
        monkeypatch.setattr(module, name, size)


def split(sample: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    scores, labels = np.array(sample, np.float64).reshape(-1, 2).T
    return scores, labels


def right_pairs(scores: FloatArray, labels: FloatArray, threshold: float) -> int:
    right = 0
    for i, j in combinations(range(scores.size), 2):
        tied = abs(scores[i] - scores[j]) <= threshold
        if labels[i] == labels[j]:
            right += tied
        else:
            right += not tied and (scores[i] < scores[j]) == (labels[i] < labels[j])
    return right


def plainly_calibrated(scores: FloatArray, labels: FloatArray) -> tuple[float, float]:
    differences = {abs(float(a - b)) for a, b in combinations(scores, 2)}
    n_pairs = scores.size * (scores.size - 1) // 2
    found = [(right_pairs(scores, labels, e), -e) for e in {0.0, *differences}]
    right, minus_e = max(found)
    return right / n_pairs, -minus_e


@pytest.mark.slow
@pytest.mark.usefixtures("sizes")
def test_calibration_finds_the_best_and_smallest_threshold() -> None:
    @given(SAMPLES)
    @settings(deadline=None, max_examples=300)
    def holds(sample: list[tuple[float, float]]) -> None:
        scores, labels = split(sample)
        found = tie_calibrated(scores, labels)
        assert (found.accuracy, found.threshold) == plainly_calibrated(scores, labels)

    holds()


@pytest.mark.first_quick
@pytest.mark.usefixtures("sizes")
def test_accuracy_at_any_threshold_is_that_of_all_pairs() -> None:
    @given(SAMPLES, st.floats(0, 20))
    @settings(deadline=None)
    def holds(sample: list[tuple[float, float]], threshold: float) -> None:
        scores, labels = split(sample)
        n_pairs = scores.size * (scores.size - 1) // 2
        expected = right_pairs(scores, labels, threshold) / n_pairs
        assert pairwise_accuracy(scores, labels, threshold) == expected

    holds()


@given(SAMPLES)
@settings(deadline=None)
def test_pairs_are_counted_by_who_ties_them(sample: list[tuple[float, float]]) -> None:
    """Concordant, discordant, tied in labels, in scores, in both; ignoring ties of labels."""
    scores, labels = split(sample)
    c = d = h = m = both = 0
    for i, j in combinations(range(scores.size), 2):
        same = scores[i] == scores[j], labels[i] == labels[j]
        alike = (scores[i] < scores[j]) == (labels[i] < labels[j])
        both, m, h = both + all(same), m + (same == (True, False)), h + (same == (False, True))
        c, d = c + (not any(same) and alike), d + (not any(same) and not alike)
    pairs = Pairs.of(scores, labels)
    assert (pairs.concordant, pairs.both_tied, pairs.label_tied) == (c, both, h + both)
    defined = bool(c + d + h and c + d + m)
    tau_b = (c - d) / math.sqrt((c + d + h) * (c + d + m)) if defined else math.nan
    assert correlation.kendall(scores, labels) == pytest.approx(tau_b, nan_ok=True)
    ordered = c / (c + d + m) if c + d + m else math.nan
    assert Pairs.of(scores, labels).accuracy_ignoring_ties == pytest.approx(ordered, nan_ok=True)


@given(st.lists(SCORES, max_size=20), st.floats(0, 2e16))
@example([], 0.0)
def test_reach_goes_by_the_rounded_differences(scores: list[float], threshold: float) -> None:
    values = np.unique(scores)
    expected = [int((values - value <= threshold).sum()) for value in values]
    assert reach(values, threshold).tolist() == expected


@pytest.mark.slow
def test_a_large_sample_is_calibrated_as_sorting_all_its_differences_does() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(3, 16, 2500) / 3
    for scores in (
        labels + 0.3 * rng.normal(size=2500),
        np.exp(4 * labels + 0.3 * rng.normal(size=2500)),
        np.round(labels + 0.3 * rng.normal(size=2500), 2),
        np.append(1e12, labels[1:] + 0.3 * rng.normal(size=2499)),
    ):
        i, j = np.triu_indices(scores.size, 1)
        difference, order = scores[j] - scores[i], np.sign(labels[j] - labels[i])
        gain = (order == 0).astype(int) - (np.sign(difference) * order > 0)
        listed, position = np.unique(np.abs(difference), return_inverse=True)
        right = np.cumsum(np.bincount(position, gain)) + (np.sign(difference) * order > 0).sum()
        if listed[0] > 0:
            listed, right = listed[1:], right[1:]
            listed, right = np.append(0.0, listed), np.append((gain < 0).sum(), right)
        best = int(np.argmax(right))
        found = tie_calibrated(scores, labels)
        assert found.threshold == listed[best]
        assert found.accuracy == right[best] / difference.size


def test_the_worked_example_and_constant_scores() -> None:
    human, metric = [1.0, 1.0, 2.0, 3.0], [0.10, 0.15, 0.40, 0.90]
    assert pairwise_accuracy(metric, human) == 5 / 6
    assert tie_calibrated(metric, human) == Calibrated(1.0, 0.15 - 0.10)
    assert tie_calibrated([5.0] * 4, human) == Calibrated(1 / 6, 0.0)
    assert Pairs.of([5.0] * 4, human).accuracy_ignoring_ties == 0.0
    assert tie_calibrated([1.0, 2.0, 4.0], [3.0] * 3).threshold == 3.0


@pytest.mark.parametrize("n", [0, 1])
def test_without_pairs_nothing_is_defined(n: int) -> None:
    sample = np.zeros(n), np.zeros(n)
    assert math.isnan(tie_calibrated(*sample).accuracy)
    assert math.isnan(pairwise_accuracy(*sample))
    pairs = Pairs.of(*sample)
    assert math.isnan(pairs.accuracy_ignoring_ties)
    tied, concordant = pairs.within(np.array([0.0, 0.5, np.inf]))
    assert (tied.tolist(), concordant.tolist()) == ([0, 0, 0], [0, 0, 0])
    assert (pairs.n_pairs, pairs.concordant, pairs.label_tied) == (0, 0, 0)
    assert math.isnan(pairs.accuracy(0.5))


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        *((f, a, reason)
          for f in (tie_calibrated, pairwise_accuracy)
          for a, reason in ((([1.0, 2.0], [1.0]), "length"), (([1.0, math.nan], [1.0, 2.0]), "finite"))),
        (pairwise_accuracy, ([1.0, 2.0], [1.0, 2.0], -0.1), "at least 0"),
        (PairForms.of, ([1.0, 2.0], [1.0, 2.0], [0], 1), "differ"),
        (KendallForms.of, ([1.0, 2.0], [1.0, 2.0], [0], 1), "differ"),
    ],
)  # fmt: skip
def test_misfits_are_refused(
    function: Callable[..., object], arguments: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        function(*arguments)


# Resamples of clusters
@given(CLUSTERED, st.lists(st.integers(0, 3), min_size=5, max_size=5), st.floats(0, 3))
@settings(deadline=None, max_examples=50)
def test_a_resample_is_the_sample_repeated(
    sample: list[tuple[float, float, int]], times: list[int], threshold: float
) -> None:
    scores, labels, clusters = (np.array(column) for column in zip(*sample, strict=True))
    drawn = np.repeat(np.arange(scores.size), np.array(times)[clusters])
    x, y, counts = scores[drawn], labels[drawn], np.array([times], np.float64)
    forms = PairForms.of(scores, labels, clusters, 5, threshold)
    np.testing.assert_allclose(forms.drawn(counts).accuracy, [pairwise_accuracy(x, y, threshold)])
    found = PairForms.of(scores, labels, clusters, 5).drawn(counts)
    np.testing.assert_allclose(
        found.accuracy_ignoring_ties, [Pairs.of(x, y).accuracy_ignoring_ties]
    )
    np.testing.assert_allclose(found.tau_b, [correlation.kendall(x, y)], atol=1e-12)


def test_forms_of_some_clusters_are_those_of_their_items(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=60).round(1), rng.integers(0, 4, 60) / 3.0
    clusters, chosen = rng.integers(0, 20, 60), np.array([17, 3, 4, 9])
    counts = rng.multinomial(4, np.full(4, 0.25), size=50).astype(np.float64)
    inside = np.isin(clusters, chosen)
    own = [chosen.tolist().index(cluster) for cluster in clusters[inside]]
    expected = PairForms.of(scores[inside], labels[inside], own, 4, 0.2).drawn(counts)
    monkeypatch.setattr(module, "_BLOCK_CELLS", 100)
    found = PairForms.of(scores, labels, clusters, 20, 0.2).among(chosen).drawn(counts)
    for name in ("accuracy", "label_tied", "score_tied"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_clusters_of_many_items_are_summed_without_overflow() -> None:
    scores, labels = np.arange(900.0), np.arange(900.0)
    forms = PairForms.of(scores, labels, np.repeat([0, 1, 2], [1, 299, 600]), 3)
    assert forms.concordant.sum() == 900 * 899 / 2
    np.testing.assert_array_equal(forms.drawn(np.array([[1.0, 1.0, 1.0]])).accuracy, [1.0])


# Published figures
@pytest.mark.paper
@pytest.mark.parametrize(
    ("metric", "at_0", "best", "threshold"),
    [
        ("clipscore_vitb32", 0.520873, 0.520873, 0.0),
        ("spice", 0.511105, 0.511105, 0.0),
        ("tifa_blip2-flant5xl", 0.601521, 0.601521, 0.0),
        ("tifa_mplug-large", 0.609409, 0.609418, 0.006061),
    ],
)
def test_tifa160_with_the_mean_of_two_ratings(
    assay_data: Path, metric: str, at_0: float, best: float, threshold: float
) -> None:
    """The released tie-calibration script on TIFA160 (Hu et al. 2023), gold human_avg."""
    path = assay_data / "tifa160" / "human_annotations_with_scores.json"
    items = json.loads(path.read_text(encoding="utf-8")).values()
    scores, labels = ([item[name] for item in items] for name in (metric, "human_avg"))
    found = tie_calibrated(scores, labels)
    values = pairwise_accuracy(scores, labels), found.accuracy, found.threshold
    assert tuple(round(value, 6) for value in values) == (at_0, best, threshold)


@pytest.mark.paper
@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("basic", (4332, 0.661736, 0.664844, 0.557615, 0.609944)),
        ("advanced", (5226, 0.714256, 0.712447, 0.605089, 0.631618)),
        ("", (9600, 0.709422, 0.725841, 0.609566, 0.641777)),
    ],
)
def test_one_rater_of_genai_bench_against_the_other_two(
    assay_data: Path, tag: str, expected: tuple[int, float, float, float, float]
) -> None:
    """The 1,600-prompt set of GenAI-Bench: first rating as metric, mean of the others as label."""
    folder = assay_data / "genai_bench"
    items = json.loads((folder / "genai1600_genai_image.json").read_text(encoding="utf-8"))
    tags = json.loads((folder / "genai1600_genai_skills.json").read_text(encoding="utf-8"))
    chosen = set(tags[tag]) if tag else set(range(1600))
    ratings = np.array(
        [rating for key, item in items.items() if int(key) in chosen
         for rating in item["models"].values()],
        np.float64,
    )  # fmt: skip
    metric, label = ratings[:, 0], ratings[:, 1:].mean(axis=1)
    found = tie_calibrated(metric, label)
    values = (
        correlation.pearson(metric, label),
        correlation.spearman(metric, label),
        stats.kendalltau(metric, label).statistic,
        found.accuracy,
    )
    assert (len(metric), *(round(float(value), 6) for value in values)) == expected
    assert found.threshold == 0.0


# Within groups
@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(sample=grouped_samples(), threshold=st.floats(0, 5))
def test_all_groups_have_one_threshold(
    sample: tuple[FloatArray, FloatArray, IntArray], threshold: float
) -> None:
    scores, labels, groups = sample
    pairs = GroupedPairs.of(labels, Groups.of(groups, 5))
    found = pairs.tie_calibrated(scores)
    accuracy, best = calibrated_in_groups(scores, labels, groups)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-12, nan_ok=True)
    assert found.threshold == pytest.approx(best, abs=0, nan_ok=True)
    at = [pairwise_accuracy(scores[groups == g], labels[groups == g], threshold) for g in range(5)]
    np.testing.assert_allclose(pairs.accuracy(scores, threshold), at)


@pytest.mark.parametrize(
    ("scores", "threshold"), [([0.0, 1.0, 1.5, 9.0], 1.5), ([0.0, 0.0, 0.0, 9.0], 0.0)]
)
def test_equal_groups_take_the_smallest_best_threshold(
    scores: list[float], threshold: float
) -> None:
    pairs = GroupedPairs.of([1.0, 1.0, 1.0, 2.0], Groups.of(np.zeros(4, int)))
    assert pairs.tie_calibrated(scores) == Calibrated(1.0, threshold)


def test_one_group_is_the_flat_calibration_of_many_items_too() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(3, 16, 400) / 3
    pairs = GroupedPairs.of(labels, Groups.of(np.zeros(400, int)))
    for scores in (labels + rng.normal(size=400), np.round(labels + rng.normal(size=400), 1)):
        assert pairs.tie_calibrated(scores) == tie_calibrated(scores, labels)
        assert pairs.accuracy(scores, 0.3)[0] == pairwise_accuracy(scores, labels, 0.3)


def test_groups_without_a_common_multiple_get_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_COMMON_MULTIPLE", 1)
    rng = np.random.default_rng(3)
    groups, labels = rng.integers(0, 8, 60), rng.integers(3, 8, 60) / 3
    scores = labels + rng.normal(size=60)
    found = GroupedPairs.of(labels, Groups.of(groups)).tie_calibrated(scores)
    accuracy, threshold = calibrated_in_groups(scores, labels, groups)
    assert found.accuracy == pytest.approx(accuracy, abs=1e-12)
    assert found.threshold == threshold


def test_pairs_that_cannot_be_made_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, groups = [1.0, 2.0, 3.0], Groups.of([0, 0, 0])
    pairs = GroupedPairs.of(labels, groups)
    for match, act in (
        ("finite", lambda: GroupedPairs.of([1.0, 2.0, math.nan], groups)),
        ("fit", lambda: GroupedPairs.of([1.0, 2.0], groups)),
        ("fit", lambda: pairs.tie_calibrated([1.0])),
        ("finite", lambda: pairs.accuracy([1.0, 2.0, math.inf])),
        ("at least 0", lambda: pairs.accuracy(labels, -1.0)),
    ):
        with pytest.raises(ValueError, match=match):
            act()
    monkeypatch.setattr(module, "MOST_PAIRS", 2)
    with pytest.raises(ValueError, match="too many"):
        GroupedPairs.of(labels, groups)
