"""Ranks and pair forms of resamples where numbers are large, ties many, or clusters selected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics import correlation
from benchmarks.statistics.kendall_forms import KendallForms

FloatArray = NDArray[np.float64]

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
    rho = correlation.resampled_spearman(x, y, counts, clusters)
    tau = correlation.resampled_kendall(x, y, counts, clusters)
    for b, row in enumerate(counts.astype(int)):
        drawn = np.repeat(np.arange(x.size), row[clusters])
        assert rho[b] == pytest.approx(stats.spearmanr(x[drawn], y[drawn]).statistic, abs=1e-12)
        assert tau[b] == pytest.approx(stats.kendalltau(x[drawn], y[drawn]).statistic, abs=1e-12)


@pytest.mark.parametrize("times", [1, 40, 3000, 100_000, 10**9])
def test_multiplying_all_draws_changes_no_rank_correlation(times: int) -> None:
    """Up to numbers of draws that no integers hold: rho of copies of a sample is that of one."""
    x, y, clusters, counts = drawn_sample(1, 300)
    for labels in (np.round(y), y):
        once = correlation.resampled_spearman(x, labels, counts, clusters)
        again = correlation.resampled_spearman(x, labels, times * counts, clusters)
        np.testing.assert_allclose(again, once, rtol=0, atol=1e-12)


def test_the_forms_of_all_clusters_serve_every_selection_of_them() -> None:
    x, y, clusters, counts = drawn_sample(2, 800)
    y = np.round(y, 1)
    chosen = np.array([9, 3, 30, 12, 0])
    part = KendallForms.of(x, y, clusters, 40).among(chosen)
    inside = np.isin(clusters, chosen)
    own = np.argsort(chosen)[np.searchsorted(np.sort(chosen), clusters[inside])]
    direct = correlation.resampled_kendall(x[inside], y[inside], counts[:, chosen], own)
    np.testing.assert_allclose(part.tau_b(counts[:, chosen]), direct, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(part.excess, part.excess.T)


def test_very_many_clusters_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, clusters, counts = drawn_sample(3, 200)
    whole = correlation.resampled_kendall(x, y, counts, clusters)
    monkeypatch.setattr("benchmarks.statistics.kendall_forms._MOST_CLUSTERS", 1)
    monkeypatch.setattr("benchmarks.statistics.kendall_blocks._SIGN_CELLS", 900)
    in_blocks = correlation.resampled_kendall(x, y, counts, clusters)
    np.testing.assert_allclose(in_blocks, whole, rtol=0, atol=1e-15)


def test_a_constant_side_has_no_rank_correlation_however_often_it_is_drawn() -> None:
    x = np.array([0.25, 0.25, 0.25, 1.0])
    counts = 700_001.0 * np.array([[1, 1, 1, 0], [0, 1, 0, 0], [1, 0, 0, 1]])
    found = correlation.resampled_spearman(x, [1.0, 2.0, 3.0, 4.0], counts)
    assert np.isnan(found).tolist() == [True, True, False]
    assert found[2] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", ["resampled_spearman", "resampled_kendall"])
@pytest.mark.parametrize("counts", [[[1.0, 0.5]], [[2.0, -1.0]]])
def test_draws_are_whole_numbers(name: str, counts: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        getattr(correlation, name)([1.0, 2.0], [1.0, 2.0], counts)


def test_forms_of_samples_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="differ"):
        KendallForms.of([1.0, 2.0], [1.0, 2.0], [0], 1)
