"""Pairwise accuracy with tie calibration against a plain look at every pair."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics import correlation
from benchmarks.statistics.kendall import KendallForms
from benchmarks.statistics.pairwise_accuracy import (
    PairForms,
    Pairs,
    accuracy_ignoring_ties,
    pairwise_accuracy,
    reach,
    tau_23,
    tie_calibrated,
)

FloatArray = NDArray[np.float64]

SCORES = st.one_of(
    st.integers(0, 5).map(lambda k: k / 10),
    st.floats(-10, 10, allow_subnormal=False),
    st.sampled_from([1e-300, -1e16, 1e16, 1.0, 1.0 + 2**-52, 3.3, 1e308, -1e308]),
)
LABELS = st.one_of(st.integers(0, 3).map(lambda k: k / 3), st.floats(0, 5))
SAMPLES = st.lists(st.tuples(SCORES, LABELS), min_size=2, max_size=14)
TIGHT = {"_LISTED": 3, "_SPLITS": 2, "_BLOCK": 3, "_TABLE_CELLS": 8}
"""Sizes that make every block boundary matter on small samples."""


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


@pytest.fixture(params=["in one go", "in small blocks"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in small blocks":
        for name, size in TIGHT.items():
            monkeypatch.setattr(f"benchmarks.statistics.pairwise_accuracy.{name}", size)


pytestmark = pytest.mark.filterwarnings("ignore:overflow")


def test_the_worked_example() -> None:
    human, metric = [1.0, 1.0, 2.0, 3.0], [0.10, 0.15, 0.40, 0.90]
    assert pairwise_accuracy(metric, human) == 5 / 6
    found = tie_calibrated(metric, human)
    assert (found.accuracy, found.threshold) == (1.0, 0.15 - 0.10)


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
def test_ties_of_labels_can_be_ignored_and_ties_of_scores_are_then_wrong(
    sample: list[tuple[float, float]],
) -> None:
    scores, labels = split(sample)
    ordered = [(i, j) for i, j in combinations(range(scores.size), 2) if labels[i] != labels[j]]
    found = accuracy_ignoring_ties(scores, labels)
    if not ordered:
        assert math.isnan(found)
        return
    right = sum(
        scores[i] != scores[j] and (scores[i] < scores[j]) == (labels[i] < labels[j])
        for i, j in ordered
    )
    assert found == right / len(ordered)


@given(SAMPLES)
@settings(deadline=None)
def test_tau_23_and_tau_b_count_the_same_pairs(sample: list[tuple[float, float]]) -> None:
    scores, labels = split(sample)
    kinds = {"concordant": 0, "discordant": 0, "label": 0, "score": 0, "both": 0}
    for i, j in combinations(range(scores.size), 2):
        same = (scores[i] == scores[j], labels[i] == labels[j])
        alike = (scores[i] < scores[j]) == (labels[i] < labels[j])
        untied = "concordant" if alike else "discordant"
        kind = {(True, True): "both", (True, False): "score", (False, True): "label"}
        kinds[kind.get(same, untied)] += 1
    c, d, h, m, both = kinds.values()
    n_pairs = sum(kinds.values())
    assert tau_23(scores, labels) == pytest.approx((c + both - d - h - m) / n_pairs)
    pairs = Pairs.of(scores, labels)
    assert (pairs.concordant, pairs.both_tied, pairs.label_tied) == (c, both, h + both)
    tau_b = correlation.kendall(scores, labels)
    if c + d + h and c + d + m:
        assert tau_b == pytest.approx((c - d) / math.sqrt((c + d + h) * (c + d + m)))
    else:
        assert math.isnan(tau_b)


@given(st.lists(SCORES, min_size=1, max_size=20), st.floats(0, 2e16))
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


@pytest.mark.parametrize("n", [0, 1])
def test_without_pairs_nothing_is_defined(n: int) -> None:
    for value in (
        tie_calibrated(np.zeros(n), np.zeros(n)).accuracy,
        pairwise_accuracy(np.zeros(n), np.zeros(n)),
        accuracy_ignoring_ties(np.zeros(n), np.zeros(n)),
        tau_23(np.zeros(n), np.zeros(n)),
    ):
        assert math.isnan(value)


def test_constant_scores_are_right_about_ties_only() -> None:
    labels = [1.0, 1.0, 2.0, 3.0]
    found = tie_calibrated([5.0] * 4, labels)
    assert (found.accuracy, found.threshold) == (1 / 6, 0.0)
    assert accuracy_ignoring_ties([5.0] * 4, labels) == 0.0
    assert tie_calibrated([1.0, 2.0, 4.0], [3.0] * 3).threshold == 3.0


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        *(
            (function, arguments, reason)
            for function in (tie_calibrated, pairwise_accuracy, accuracy_ignoring_ties)
            for arguments, reason in (
                (([1.0, 2.0], [1.0]), "one length"),
                (([1.0, math.nan], [1.0, 2.0]), "finite"),
            )
        ),
        (pairwise_accuracy, ([1.0, 2.0], [1.0, 2.0], -0.1), "at least 0"),
        (PairForms.of, ([1.0, 2.0], [1.0, 2.0], [0], 1), "differ"),
        (KendallForms.of, ([1.0, 2.0], [1.0, 2.0], [0], 1), "differ"),
    ],
)
def test_misfits_are_refused(
    function: Callable[..., object], arguments: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        function(*arguments)


CLUSTERED = st.lists(st.tuples(SCORES, LABELS, st.integers(0, 4)), min_size=1, max_size=14)


@given(CLUSTERED, st.lists(st.integers(0, 3), min_size=5, max_size=5), st.floats(0, 3))
@settings(deadline=None)
def test_a_resample_is_the_sample_repeated(
    sample: list[tuple[float, float, int]], times: list[int], threshold: float
) -> None:
    scores, labels, clusters = (np.array(column) for column in zip(*sample, strict=True))
    forms = PairForms.of(scores, labels, clusters, 5, threshold)
    counts = np.array([times], np.float64)
    drawn = np.repeat(np.arange(scores.size), np.array(times)[clusters])
    expected = pairwise_accuracy(scores[drawn], labels[drawn], threshold)
    np.testing.assert_allclose(forms.drawn(counts).accuracy, [expected])
    plain = PairForms.of(scores, labels, clusters, 5)
    expected = accuracy_ignoring_ties(scores[drawn], labels[drawn])
    found = plain.drawn(counts)
    np.testing.assert_allclose(found.accuracy_ignoring_ties, [expected])
    tau_b = correlation.kendall(scores[drawn], labels[drawn])
    np.testing.assert_allclose(found.tau_b, [tau_b], atol=1e-12)


def test_the_forms_of_some_clusters_are_those_of_their_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=60).round(1), rng.integers(0, 4, 60) / 3.0
    clusters = rng.integers(0, 20, 60)
    chosen = np.array([17, 3, 4, 9])
    counts = rng.multinomial(4, np.full(4, 0.25), size=50).astype(np.float64)
    inside = np.isin(clusters, chosen)
    place = {int(cluster): k for k, cluster in enumerate(chosen)}
    own = [place[int(cluster)] for cluster in clusters[inside]]
    direct = PairForms.of(scores[inside], labels[inside], own, 4, 0.2)
    monkeypatch.setattr("benchmarks.statistics.pairwise_accuracy._BLOCK_CELLS", 100)
    part = PairForms.of(scores, labels, clusters, 20, 0.2).among(chosen)
    found, expected = part.drawn(counts), direct.drawn(counts)
    np.testing.assert_array_equal(found.accuracy, expected.accuracy)
    np.testing.assert_array_equal(found.label_tied, expected.label_tied)
    np.testing.assert_array_equal(found.score_tied, expected.score_tied)


def test_clusters_of_many_items_are_summed_without_overflow() -> None:
    scores, labels = np.arange(900.0), np.arange(900.0)
    forms = PairForms.of(scores, labels, np.repeat([0, 1, 2], [1, 299, 600]), 3)
    assert forms.concordant.sum() == 900 * 899 / 2
    np.testing.assert_array_equal(forms.drawn(np.array([[1.0, 1.0, 1.0]])).accuracy, [1.0])


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
    scores = [item[metric] for item in items]
    labels = [item["human_avg"] for item in items]
    found = tie_calibrated(scores, labels)
    assert round(pairwise_accuracy(scores, labels), 6) == at_0
    assert round(found.accuracy, 6) == best
    assert round(found.threshold, 6) == threshold


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


def test_of_no_items_no_pair_is_counted_at_any_threshold() -> None:
    pairs = Pairs.of(np.empty(0), np.empty(0))
    tied, concordant = pairs.within(np.array([0.0, 0.5, np.inf]))
    assert (tied.tolist(), concordant.tolist()) == ([0, 0, 0], [0, 0, 0])
    assert (pairs.n_pairs, pairs.concordant, pairs.label_tied) == (0, 0, 0)
    assert math.isnan(pairs.accuracy_ignoring_ties)
    assert math.isnan(pairs.accuracy(0.5))
