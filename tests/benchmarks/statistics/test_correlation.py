"""Correlations of samples and of resamples equal scipy's on the physically repeated sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics import correlation, kendall, resampled_correlation
from benchmarks.statistics.kendall import KendallForms
from tests.benchmarks.statistics.references import COEFFICIENTS, scipy_value

FloatArray = NDArray[np.float64]

SIZES = (
    "resampled_correlation._CACHED_CELLS",
    "resampled_correlation._CACHED_RANK_CELLS",
    "resampled_correlation._LEVEL_ITEMS",
    "resampled_correlation._MIXED_ITEMS",
    "kendall._CACHED_CELLS",
    "kendall._RANGE_ITEMS",
    "kendall._TABLE_CELLS",
    "samples._PAIRS",
)
every_coefficient = pytest.mark.parametrize("name", list(COEFFICIENTS))


def on_repeated_samples(
    name: str, x: FloatArray, y: FloatArray, item_counts: NDArray[np.int64]
) -> list[float]:
    scipy_function = COEFFICIENTS[name][2]
    return [scipy_value(scipy_function, np.repeat(x, w), np.repeat(y, w)) for w in item_counts]


@st.composite
def samples(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64]]:
    """x, y, cluster of each item, counts (B, C): ties, constants and gaps all occur."""
    n = draw(st.integers(2, 14))
    values = st.lists(st.integers(-6, 6), min_size=n, max_size=n)
    scale = draw(st.sampled_from([1.0, 0.1, 1e-3, 37.0]))
    shift = draw(st.sampled_from([0.0, 5.0]))
    n_clusters = draw(st.integers(1, n))
    clusters = draw(st.lists(st.integers(0, n_clusters - 1), min_size=n, max_size=n))
    row = st.lists(st.integers(0, 3), min_size=n_clusters, max_size=n_clusters)
    counts = draw(st.lists(row, min_size=1, max_size=6))
    x, y = np.array(draw(values)) * scale + shift, np.array(draw(values)) * scale
    return x, y, np.array(clusters), np.array(counts)


@every_coefficient
@settings(max_examples=150, deadline=None)
@given(sample=samples())
def test_each_resample_has_the_value_of_the_repeated_sample(
    name: str, sample: tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64]]
) -> None:
    x, y, clusters, counts = sample
    found = COEFFICIENTS[name][1](x, y, counts, clusters)
    expected = on_repeated_samples(name, x, y, counts[:, clusters])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@every_coefficient
def test_without_clusters_each_item_has_its_own_multiplicity(name: str) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=40).round(1), rng.integers(1, 6, 40).astype(float)
    counts = rng.multinomial(40, np.full(40, 1 / 40), size=30)
    found = COEFFICIENTS[name][1](x, y, counts)
    np.testing.assert_allclose(found, on_repeated_samples(name, x, y, counts), atol=1e-12)


@every_coefficient
def test_columns_of_x_are_separate_metrics(name: str) -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=9)
    resampled = COEFFICIENTS[name][1]
    together = resampled(x, y, counts)
    assert together.shape == (9, 3)
    for column in range(3):
        alone = resampled(x[:, column], y, counts)
        np.testing.assert_allclose(together[:, column], alone, rtol=0, atol=1e-14)


@every_coefficient
def test_the_plain_coefficient_is_scipys_and_that_of_drawing_everything_once(name: str) -> None:
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 9, 60).astype(float), rng.normal(size=60)
    plain, resampled, scipy_function = COEFFICIENTS[name]
    assert plain(x, y) == pytest.approx(scipy_value(scipy_function, x, y), abs=1e-12)
    assert resampled(x, y, np.ones((1, 60)))[0] == pytest.approx(plain(x, y), abs=1e-12)


@every_coefficient
@pytest.mark.parametrize(
    ("x", "y"),
    [([0.1] * 3, [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [0.7] * 3), ([1.0], [2.0]), ([], [])],
    ids=["constant x", "constant y", "one item", "no item"],
)
def test_undefined_samples_give_nan(name: str, x: list[float], y: list[float]) -> None:
    plain, resampled, _ = COEFFICIENTS[name]
    assert np.isnan(plain(x, y))
    assert np.isnan(resampled(x, y, np.ones((2, len(x))))).all()


@every_coefficient
def test_only_resamples_that_draw_one_value_are_nan(name: str) -> None:
    x, y = [0.1, 0.1, 0.3], [1.0, 2.0, 3.0]
    found = COEFFICIENTS[name][1](x, y, [[1, 1, 0], [1, 0, 1], [0, 0, 3], [0, 0, 0]])
    assert np.isnan(found).tolist() == [True, False, True, True]


def test_an_undrawn_outlier_costs_no_precision() -> None:
    x = np.array([1e6, 1.0, 1.0001, 1.0002, 1.0004])
    y = np.array([0.0, 3.0, 1.0, 2.0, 5.0])
    found = resampled_correlation.resampled_pearson(x, y, [[0, 1, 1, 1, 1]])
    assert found[0] == pytest.approx(stats.pearsonr(x[1:], y[1:])[0], abs=1e-12)


@every_coefficient
def test_blocks_that_bound_the_memory_do_not_change_the_values(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    x, y, clusters = rng.normal(size=90), rng.integers(1, 6, 90).astype(float), np.arange(90) % 30
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=25)
    whole = COEFFICIENTS[name][1](x, y, counts, clusters)
    for name_of_size in SIZES:
        monkeypatch.setattr(f"benchmarks.statistics.{name_of_size}", 1)
    np.testing.assert_allclose(COEFFICIENTS[name][1](x, y, counts, clusters), whole, atol=1e-14)


@every_coefficient
def test_shapes_that_do_not_fit_are_refused(name: str) -> None:
    plain, resampled, _ = COEFFICIENTS[name]
    with pytest.raises(ValueError, match="one length"):
        plain([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="do not fit"):
        resampled([1.0, 2.0], [1.0], np.ones((1, 2)))
    with pytest.raises(ValueError, match="every cluster"):
        resampled([1.0, 2.0], [1.0, 2.0], np.ones((1, 2)), [0, 2])


@pytest.mark.parametrize(("offset", "step"), [(1.0, 2.2e-16), (100.0, 1.4e-14), (-1e6, 2e-10)])
def test_scores_close_together_far_from_zero_keep_their_correlation(
    offset: float, step: float
) -> None:
    k = np.arange(40.0)
    x = offset + step * k
    steps = (x - offset) / step  # what the doubles hold of the line
    expected = stats.pearsonr(steps, k).statistic
    assert correlation.pearson(x, k) == pytest.approx(expected, abs=1e-12)
    counts = np.random.default_rng(0).multinomial(40, np.full(40, 1 / 40), 5).astype(float)
    found = resampled_correlation.resampled_pearson(x, k, counts)
    for b, drawn in enumerate(counts.astype(int)):
        again = stats.pearsonr(np.repeat(steps, drawn), np.repeat(k, drawn)).statistic
        assert found[b] == pytest.approx(again, abs=1e-9)


Change = Callable[[FloatArray], FloatArray]
LABELS: dict[str, Change] = {
    "few labels": np.round,
    "some common and many rare labels": lambda y: np.where(y > 0, np.round(y), y),
    "all labels different": lambda y: y,
}
SCORES: dict[str, Change] = {
    "untied": lambda x: x,
    "few ties": lambda x: np.where(np.arange(x.size) % 50 < 2, 0.25, x),
    "many ties": lambda x: np.round(x, 1),
}


def drawn_sample(seed: int, n: int) -> tuple[FloatArray, FloatArray, NDArray[np.intp], FloatArray]:
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
    rho = resampled_correlation.resampled_spearman(x, y, counts, clusters)
    tau = kendall.resampled_kendall(x, y, counts, clusters)
    for b, row in enumerate(counts.astype(int)):
        drawn = np.repeat(np.arange(x.size), row[clusters])
        assert rho[b] == pytest.approx(stats.spearmanr(x[drawn], y[drawn]).statistic, abs=1e-12)
        assert tau[b] == pytest.approx(stats.kendalltau(x[drawn], y[drawn]).statistic, abs=1e-12)


@pytest.mark.parametrize("times", [1, 40, 3000, 100_000, 10**9])
def test_multiplying_all_draws_changes_no_rank_correlation(times: int) -> None:
    """Up to numbers of draws that no integers hold: rho of copies of a sample is that of one."""
    x, y, clusters, counts = drawn_sample(1, 300)
    for labels in (np.round(y), y):
        once = resampled_correlation.resampled_spearman(x, labels, counts, clusters)
        again = resampled_correlation.resampled_spearman(x, labels, times * counts, clusters)
        np.testing.assert_allclose(again, once, rtol=0, atol=1e-12)


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
    monkeypatch.setattr("benchmarks.statistics.kendall._MOST_CLUSTERS", 1)
    monkeypatch.setattr("benchmarks.statistics.kendall._SIGN_CELLS", 900)
    in_blocks = kendall.resampled_kendall(x, y, counts, clusters)
    np.testing.assert_allclose(in_blocks, whole, rtol=0, atol=1e-15)


def test_a_constant_side_has_no_rank_correlation_however_often_it_is_drawn() -> None:
    x = np.array([0.25, 0.25, 0.25, 1.0])
    counts = 700_001.0 * np.array([[1, 1, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1]])
    found = resampled_correlation.resampled_spearman(x, [1.0, 2.0, 3.0, 4.0], counts)
    assert np.isnan(found).tolist() == [True, True, False]
    assert found[2] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", ["spearman", "kendall"])
@pytest.mark.parametrize("counts", [[[1.0, 0.5]], [[2.0, -1.0]]])
def test_draws_are_whole_numbers(name: str, counts: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        COEFFICIENTS[name][1]([1.0, 2.0], [1.0, 2.0], counts)
