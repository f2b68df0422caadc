"""Kolmogorov-Smirnov's statistic and the area under the ROC curve equal scipy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.statistics.two_samples import auc, ks_statistic, resampled_auc, resampled_ks

ITEMS = st.lists(
    st.tuples(st.integers(-5, 5), st.booleans(), st.integers(0, 3)), min_size=1, max_size=20
)


@pytest.mark.filterwarnings("ignore:divide by zero")  # in the p-value of samples of one item
@settings(deadline=None)
@given(items=ITEMS, times=st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_resample_is_the_sample_repeated(
    items: list[tuple[int, bool, int]], times: list[int]
) -> None:
    values, second, clusters = (np.array(column) for column in zip(*items, strict=True))
    drawn = np.repeat(np.arange(values.size), np.array(times)[clusters])
    a, b = values[drawn][~second[drawn]], values[drawn][second[drawn]]
    ks = resampled_ks(values, second, [times], clusters)[0]
    area = resampled_auc(values, second, [times], clusters)[0]
    if not (a.size and b.size):
        assert np.isnan(ks)
        assert np.isnan(area)
        return
    assert ks == pytest.approx(stats.ks_2samp(a, b, method="asymp").statistic, abs=1e-12)
    u = stats.mannwhitneyu(b, a, method="asymptotic").statistic
    assert area == pytest.approx(u / (a.size * b.size), abs=1e-12)


def test_metrics_are_columns_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, second = rng.normal(size=(50, 3)).round(1), rng.random(50) < 0.4
    counts = rng.multinomial(10, np.full(10, 0.1), size=8)
    clusters = np.arange(50) % 10
    ks, area = resampled_ks(x, second, counts, clusters), resampled_auc(x, second, counts, clusters)
    monkeypatch.setattr("benchmarks.statistics.two_samples._CACHED_CELLS", 1)
    np.testing.assert_array_equal(resampled_ks(x, second, counts, clusters), ks)
    for metric in range(3):
        alone = resampled_auc(x[:, metric], second, counts, clusters)
        np.testing.assert_allclose(alone, area[:, metric], rtol=0, atol=1e-15)
        single = ks_statistic(x[:, metric], second)
        assert single.shape == ()
        assert single == ks_statistic(x, second)[metric]


def test_separate_samples_are_as_far_apart_as_can_be() -> None:
    assert ks_statistic([1.0, 2.0, 3.0], [0, 0, 1]) == 1.0
    assert auc([1.0, 2.0, 3.0], [0, 0, 1]) == 1.0
    assert auc([5.0, 5.0], [0, 1]) == 0.5
    assert np.isnan(auc([], []))
    assert np.isnan(ks_statistic([1.0], [1]))


@pytest.mark.parametrize("function", [resampled_ks, resampled_auc])
def test_misfits_are_refused(function: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        function([1.0, 2.0], [True], np.ones((1, 2)))
    with pytest.raises(ValueError, match="every cluster"):
        function([1.0, 2.0], [True, False], np.ones((1, 1)))
