"""Correlations of resamples equal scipy's on the physically repeated sample."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics import correlation

FloatArray = NDArray[np.float64]

COEFFICIENTS = {
    "pearson": (correlation.pearson, correlation.resampled_pearson, stats.pearsonr),
    "spearman": (correlation.spearman, correlation.resampled_spearman, stats.spearmanr),
    "kendall": (correlation.kendall, correlation.resampled_kendall, stats.kendalltau),
}
SIZES = (
    "resampled_moments._CACHED_CELLS",
    "resampled_ranks._CACHED_CELLS",
    "resampled_ranks._LEVEL_ITEMS",
    "resampled_ranks._MIXED_ITEMS",
    "kendall_forms._CACHED_CELLS",
    "pair_signs._RANGE_ITEMS",
    "pair_signs._TABLE_CELLS",
    "pair_lists._PAIRS",
)
every_coefficient = pytest.mark.parametrize("name", list(COEFFICIENTS))


def scipy_value(function: Callable[..., object], x: FloatArray, y: FloatArray) -> float:
    """scipy's coefficient; NaN where a side is constant or there are too few items."""
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(function(x, y)[0])  # type: ignore[index]


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
    found = correlation.resampled_pearson(x, y, [[0, 1, 1, 1, 1]])
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
    found = correlation.resampled_pearson(x, k, counts)
    for b, drawn in enumerate(counts.astype(int)):
        again = stats.pearsonr(np.repeat(steps, drawn), np.repeat(k, drawn)).statistic
        assert found[b] == pytest.approx(again, abs=1e-9)
