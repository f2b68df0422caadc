"""PLCC and RMSE of the best logistic curve in resamples."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics import logistic_resampled
from benchmarks.statistics.logistic import Plcc, plcc
from benchmarks.statistics.logistic_resampled import (
    BestCurves,
    plcc_with_draws,
    resampled_plcc,
    resampled_rmse,
)


@pytest.mark.parametrize("noise", [0.3, 0.8])
def test_resamples_are_within_1e_3_of_refits_where_the_metric_has_signal(noise: float) -> None:
    rng = np.random.default_rng(3)
    clusters = np.arange(240) // 4
    x = rng.normal(size=240)
    y = np.clip(np.round(3.0 + 1.3 * np.tanh(x) + rng.normal(size=240) * noise, 1), 1.0, 5.0)
    counts = rng.multinomial(60, np.full(60, 1 / 60), size=25)
    refits = [plcc(np.repeat(x, w), np.repeat(y, w)).value for w in counts[:, clusters]]
    found = resampled_plcc(x, y, counts, clusters)[1:]
    np.testing.assert_allclose(found, refits, rtol=0, atol=1e-3)


def test_a_resample_with_constant_labels_is_nan() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, 1.0, 2.0, 3.0, 4.0])
    found = resampled_plcc(x, y, [[2, 2, 0, 0, 0], [1, 1, 1, 1, 1]], np.arange(5))[1:]
    assert np.isnan(found).tolist() == [True, False]


def test_a_sample_with_constant_scores_has_no_resamples() -> None:
    with pytest.raises(ValueError, match="constant"):
        resampled_plcc([1.0] * 4, [1.0, 2.0, 3.0, 4.0], np.ones((1, 4)), np.arange(4))


def test_rmse_in_resamples_is_within_5e_3_of_refits() -> None:
    rng = np.random.default_rng(6)
    clusters = np.arange(240) // 4
    x = rng.normal(size=240)
    y = np.clip(np.round(3.0 + 1.3 * np.tanh(x) + rng.normal(size=240) * 0.5, 1), 1.0, 5.0)
    counts = rng.multinomial(60, np.full(60, 1 / 60), size=25)
    refits = [plcc(np.repeat(x, w), np.repeat(y, w)).rmse for w in counts[:, clusters]]
    found = BestCurves(x, y, counts.astype(float), clusters).rmse
    np.testing.assert_allclose(found, refits, rtol=0, atol=5e-3)


def test_rmse_is_nan_where_plcc_is() -> None:
    found = resampled_rmse(np.array([np.nan, 1.0]), [1.0, 2.0], [[1, 0], [1, 1]], [0, 1])
    np.testing.assert_array_equal(found, [np.nan, 0.0])


@pytest.fixture
def case() -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Scores, labels, counts of 30 resamples and clusters of 120 items."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=120)
    y = np.tanh(x) + rng.normal(size=120) * 0.4
    counts = rng.multinomial(40, np.full(40, 1 / 40), size=30).astype(np.float64)
    return x, y, counts, np.arange(120) // 3


def test_the_first_value_is_that_of_the_sample_itself(
    case: tuple[FloatArray, FloatArray, FloatArray, IntArray],
) -> None:
    x, y, counts, clusters = case
    found = resampled_plcc(x, y, np.vstack([counts, np.ones(40)]), clusters)
    assert found[0] == pytest.approx(found[-1], abs=1e-12)
    assert found[0] == pytest.approx(plcc(x, y).value, abs=1e-3)


def test_a_fit_that_is_the_best_curve_has_the_resamples_of_the_best_curves(
    case: tuple[FloatArray, FloatArray, FloatArray, IntArray],
) -> None:
    found = plcc_with_draws(*case)
    assert (found.fitted, found.doubt) == (plcc(*case[:2]), "")
    assert found.draws is not None
    np.testing.assert_array_equal(found.draws, resampled_plcc(*case)[1:])


def test_a_fit_that_stopped_elsewhere_has_no_resamples_and_says_so(
    case: tuple[FloatArray, FloatArray, FloatArray, IntArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logistic_resampled, "plcc", lambda *_: Plcc(0.1, "falls"))
    found = plcc_with_draws(*case)
    assert (found.fitted.value, found.fitted.note, found.draws) == (0.1, "falls", None)
    assert found.doubt == "no interval: the fit stopped at a curve that is not the best one"


def test_an_undefined_fit_has_no_resamples_and_its_own_reason() -> None:
    found = plcc_with_draws([1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0], np.ones((2, 5)), np.arange(5))
    assert np.isnan(found.fitted.value)
    assert (found.draws, found.doubt) == (None, "")
