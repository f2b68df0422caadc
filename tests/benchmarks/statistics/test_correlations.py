"""Correlations of samples, of resamples and within groups: scipy's on the sample as it is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics import correlation, kendall
from benchmarks.statistics.correlation import BY_GROUP, Groups
from benchmarks.statistics.kendall import KendallForms
from benchmarks.statistics.resampling import resampled_mean
from tests.benchmarks.statistics.references import COEFFICIENTS, grouped_samples, scipy_value

SIZES = (
    "correlation._CACHED_CELLS",
    "correlation._CACHED_RANK_CELLS",
    "correlation._LEVEL_ITEMS",
    "correlation._MIXED_ITEMS",
    "kendall._CACHED_CELLS",
    "kendall._RANGE_ITEMS",
    "kendall._TABLE_CELLS",
    "samples._PAIRS",
)
"""How much is taken at once, in each module."""
every_coefficient = pytest.mark.parametrize("name", list(COEFFICIENTS))


def on_repeated_samples(
    name: str, x: FloatArray, y: FloatArray, item_counts: IntArray
) -> list[float]:
    function = COEFFICIENTS[name][2]
    return [scipy_value(function, np.repeat(x, w), np.repeat(y, w)) for w in item_counts]


@st.composite
def samples(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """x, y, cluster of each item, counts (B, C): ties, constants and gaps all occur."""
    n = draw(st.integers(2, 14))
    values = st.lists(st.integers(-6, 6), min_size=n, max_size=n)
    scale, shift = draw(st.sampled_from([1.0, 0.1, 1e-3, 37.0])), draw(st.sampled_from([0.0, 5.0]))
    n_clusters = draw(st.integers(1, n))
    clusters = draw(st.lists(st.integers(0, n_clusters - 1), min_size=n, max_size=n))
    row = st.lists(st.integers(0, 3), min_size=n_clusters, max_size=n_clusters)
    counts = draw(st.lists(row, min_size=1, max_size=6))
    x, y = np.array(draw(values)) * scale + shift, np.array(draw(values)) * scale
    return x, y, np.array(clusters), np.array(counts)


@pytest.mark.first_quick
@every_coefficient
@settings(max_examples=60, deadline=None)
@given(sample=samples())
def test_each_resample_has_the_value_of_the_repeated_sample(
    name: str, sample: tuple[FloatArray, FloatArray, IntArray, IntArray]
) -> None:
    x, y, clusters, counts = sample
    found = COEFFICIENTS[name][1](x, y, counts, clusters)
    expected = on_repeated_samples(name, x, y, counts[:, clusters])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@every_coefficient
def test_items_are_drawn_where_there_are_no_clusters_metrics_are_columns_and_blocks_change_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(40, 3)).round(1), rng.integers(1, 6, 40).astype(float)
    counts = np.vstack([np.ones((1, 40), int), rng.multinomial(40, np.full(40, 1 / 40), size=30)])
    plain, resampled, function = COEFFICIENTS[name]
    found = resampled(x, y, counts)
    for column, values in zip(x.T, found.T, strict=True):
        np.testing.assert_allclose(values, on_repeated_samples(name, column, y, counts), atol=1e-12)
        np.testing.assert_allclose(resampled(column, y, counts), values, rtol=0, atol=1e-14)
        assert plain(column, y) == pytest.approx(scipy_value(function, column, y), abs=1e-12)
    for size in SIZES:
        monkeypatch.setattr(f"benchmarks.statistics.{size}", 1)
    np.testing.assert_allclose(resampled(x, y, counts), found, atol=1e-14)
    in_clusters = resampled(x[:, 0], y, counts[:, :20], np.arange(40) % 20)
    monkeypatch.undo()
    again = resampled(x[:, 0], y, counts[:, :20], np.arange(40) % 20)
    np.testing.assert_allclose(in_clusters, again, atol=1e-14)


@every_coefficient
def test_constant_sides_and_samples_too_small_have_no_correlation(name: str) -> None:
    plain, resampled, _ = COEFFICIENTS[name]
    rising, same = [1.0, 2.0, 3.0], [0.7] * 3
    for x, y in ((same, rising), (rising, same), ([1.0], [2.0]), ([], [])):
        assert np.isnan(plain(x, y))
        assert np.isnan(resampled(x, y, np.ones((2, len(x))))).all()
    found = resampled([0.1, 0.1, 0.3], rising, [[1, 1, 0], [1, 0, 1], [0, 0, 3], [0, 0, 0]])
    assert np.isnan(found).tolist() == [True, False, True, True]


@every_coefficient
def test_shapes_that_do_not_fit_are_refused(name: str) -> None:
    plain, resampled, _ = COEFFICIENTS[name]
    with pytest.raises(ValueError, match="length"):
        plain([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="fit"):
        resampled([1.0, 2.0], [1.0], np.ones((1, 2)))
    with pytest.raises(ValueError, match="cluster"):
        resampled([1.0, 2.0], [1.0, 2.0], np.ones((1, 2)), [0, 2])
    with pytest.raises(ValueError, match="clusters"):
        resampled([1.0, 2.0], [1.0, 2.0], np.ones((1, 2)), [0, 1, 1])
    for counts in ([[1.0, 0.5]], [[2.0, -1.0]]) if name != "pearson" else ():
        with pytest.raises(ValueError, match="whole"):
            resampled([1.0, 2.0], [1.0, 2.0], counts)


@pytest.mark.parametrize(("offset", "step"), [(1.0, 2.2e-16), (100.0, 1.4e-14), (-1e6, 2e-10)])
def test_close_scores_far_from_zero_keep_their_correlation(offset: float, step: float) -> None:
    k = np.arange(40.0)
    x = offset + step * k
    steps = (x - offset) / step  # what the doubles hold of the line
    assert correlation.pearson(x, k) == pytest.approx(stats.pearsonr(steps, k)[0], abs=1e-12)
    counts = np.random.default_rng(0).multinomial(40, np.full(40, 1 / 40), 5)
    found = correlation.resampled_pearson(x, k, counts)
    expected = on_repeated_samples("pearson", steps, k, counts)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_an_undrawn_outlier_costs_no_precision() -> None:
    x, y = np.array([1e6, 1.0, 1.0001, 1.0002, 1.0004]), np.array([0.0, 3.0, 1.0, 2.0, 5.0])
    found = correlation.resampled_pearson(x, y, [[0, 1, 1, 1, 1]])
    assert found[0] == pytest.approx(stats.pearsonr(x[1:], y[1:])[0], abs=1e-12)


# Rank correlations of many items, ranges of labels and draws -----------------------------------

Change = Callable[[FloatArray], FloatArray]
LABELS: dict[str, Change] = {
    "few labels": np.round,
    "common and rare labels": lambda y: np.where(y > 0, np.round(y), y),
    "different labels": lambda y: y,
}
SCORES: dict[str, Change] = {
    "untied": lambda x: x,
    "few ties": lambda x: np.where(np.arange(x.size) % 50 < 2, 0.25, x),
    "many ties": lambda x: np.round(x, 1),
}


def drawn_sample(seed: int, n: int) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """Scores, labels, clusters of very different sizes, and counts that are not all small."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    clusters = (n ** rng.random(n) / n * 40).astype(np.intp)
    counts = rng.poisson(1.0, (5, 40)).astype(float)
    return y + rng.normal(size=n), y, clusters, counts


@pytest.mark.parametrize("labels", list(LABELS))
@pytest.mark.parametrize("scores", list(SCORES))
def test_samples_of_many_groups_and_ranges_have_scipys_values(labels: str, scores: str) -> None:
    x, y, clusters, counts = drawn_sample(0, 1500)
    x, y = SCORES[scores](x), LABELS[labels](y)
    for name in ("spearman", "kendall"):
        found = COEFFICIENTS[name][1](x, y, counts, clusters)
        expected = on_repeated_samples(name, x, y, counts.astype(int)[:, clusters])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("times", [1, 40, 3000, 100_000, 10**9])
def test_multiplying_all_draws_changes_no_rank_correlation(times: int) -> None:
    """Up to numbers of draws that no integers hold: rho of copies of a sample is that of one."""
    x, y, clusters, counts = drawn_sample(1, 300)
    for labels in (np.round(y), y):
        once = correlation.resampled_spearman(x, labels, counts, clusters)
        again = correlation.resampled_spearman(x, labels, times * counts, clusters)
        np.testing.assert_allclose(again, once, rtol=0, atol=1e-12)


def test_a_constant_side_has_no_rank_correlation_however_often_it_is_drawn() -> None:
    x = np.array([0.25, 0.25, 0.25, 1.0])
    counts = 700_001.0 * np.array([[1, 1, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1]])
    found = correlation.resampled_spearman(x, [1.0, 2.0, 3.0, 4.0], counts)
    assert np.isnan(found).tolist() == [True, True, False]
    assert found[2] == pytest.approx(1.0, abs=1e-15)


def test_the_forms_of_all_clusters_serve_every_selection_of_them() -> None:
    x, y, clusters, counts = drawn_sample(2, 800)
    y = np.round(y, 1)
    chosen = np.array([9, 3, 30, 12, 0])
    part = KendallForms.of(x, y, clusters, 40).among(chosen)
    inside = np.isin(clusters, chosen)
    own = np.argsort(chosen)[np.searchsorted(np.sort(chosen), clusters[inside])]
    direct = kendall.resampled_kendall(x[inside], y[inside], counts[:, chosen], own)
    np.testing.assert_allclose(part.tau_b(counts[:, chosen]), direct, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(part.excess, part.excess.T)


def test_very_many_clusters_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, clusters, counts = drawn_sample(3, 200)
    whole = kendall.resampled_kendall(x, y, counts, clusters)
    for size, most in (("_MOST_CLUSTERS", 1), ("_SIGN_CELLS", 900)):
        monkeypatch.setattr(kendall, size, most)
    in_blocks = kendall.resampled_kendall(x, y, counts, clusters)
    np.testing.assert_allclose(in_blocks, whole, rtol=0, atol=1e-15)


# Within groups --------------------------------------------------------------------------------

SCIPY = {"pearson": stats.pearsonr, "srcc": stats.spearmanr, "krcc": stats.kendalltau}
every_measure = pytest.mark.parametrize("measure", list(SCIPY))


@pytest.mark.first_quick
@every_measure
@settings(deadline=None, max_examples=40)
@given(sample=grouped_samples())
def test_each_group_is_scipys(
    measure: str, sample: tuple[FloatArray, FloatArray, IntArray]
) -> None:
    scores, labels, groups = sample
    found = BY_GROUP[measure](scores, labels, Groups.of(groups, 6))
    expected = [
        scipy_value(SCIPY[measure], scores[groups == g], labels[groups == g]) for g in range(6)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@every_measure
def test_metrics_are_columns_and_groups_drawn(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 30, 400)
    x, y = rng.normal(size=(400, 3)).round(1), rng.integers(1, 6, 400).astype(float)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=7).astype(float)
    values = BY_GROUP[measure](x, y, Groups.of(groups))
    assert values.shape == (30, 3)
    np.testing.assert_array_equal(values[:, 1], BY_GROUP[measure](x[:, 1], y, Groups.of(groups)))
    found = resampled_mean(BY_GROUP[measure](x, y, Groups.of(groups)), counts)
    np.testing.assert_allclose(found, counts @ values / 30)
    monkeypatch.setattr("benchmarks.statistics.samples._PAIRS", 5)
    np.testing.assert_allclose(BY_GROUP[measure](x, y, Groups.of(groups)), values)


@every_measure
def test_groups_without_a_value_are_left_out_of_the_mean(measure: str) -> None:
    x, y = [0.1, 0.2, 5.0, 5.0, 1.0], [1.0, 2.0, 1.0, 2.0, 3.0]
    groups = Groups.of([0, 0, 1, 1, 2])
    assert np.isnan(BY_GROUP[measure](x, y, groups)).tolist() == [False, True, True]
    found = resampled_mean(BY_GROUP[measure](x, y, groups), np.array([[1, 5, 1], [0, 2, 1]], float))
    assert found == pytest.approx([1.0, math.nan], nan_ok=True)
    nothing = Groups.of(np.empty(0, np.intp), 3)
    for shape in ((0,), (0, 2)):
        none = BY_GROUP[measure](np.empty(shape), np.empty(0), nothing)
        assert none.shape == (3, *shape[1:]) and np.isnan(none).all()


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
def test_misfits_of_groups_are_refused(measure: str) -> None:
    with pytest.raises(ValueError, match="fit"):
        BY_GROUP[measure]([1.0, 2.0], [1.0], Groups.of([0, 0]))
    with pytest.raises(ValueError, match="index"):
        Groups.of([0, -1])
    with pytest.raises(ValueError, match="below 1"):
        Groups.of([0, 1], 1)
