"""PLCC and RMSE after a four-parameter logistic, of a sample and of resamples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, curve_fit

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics import logistic
from benchmarks.statistics.correlation import pearson
from benchmarks.statistics.logistic import (
    BestCurves,
    LogisticFit,
    Plcc,
    plcc,
    resampled_plcc,
    resampled_rmse,
)

Case = tuple[FloatArray, FloatArray, FloatArray, IntArray]


def curve(x, b1, b2, b3, b4):  # type: ignore[no-untyped-def]
    return b2 + (b1 - b2) / (1 + np.exp(-(x - b3) / np.abs(b4)))


def case(n_clusters: int = 40, size: int = 3, noise: float = 0.4) -> Case:
    """Scores, labels in tenths, counts of 25 resamples and clusters."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=n_clusters * size)
    y = np.round(3.0 + 1.3 * np.tanh(x) + rng.normal(size=x.size) * noise, 1).clip(1.0, 5.0)
    counts = rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=25)
    return x, y, counts.astype(np.float64), np.arange(x.size) // size


# The fit of a sample
def test_noise_free_labels_of_a_logistic_are_fitted_exactly_rising_or_falling() -> None:
    x = np.linspace(-2.0, 5.0, 60)
    labels = curve(x, 4.5, 1.2, 1.0, 0.8)
    fit = logistic.fit_logistic(x, labels)
    assert fit.converged
    found = (fit.upper, fit.lower, fit.midpoint, fit.width)
    assert found == pytest.approx((4.5, 1.2, 1.0, 0.8), abs=1e-5)
    assert plcc(x, labels).rmse == pytest.approx(0.0, abs=1e-6) and not plcc(x, labels).note
    falling = plcc(-x, labels)
    assert falling.value == pytest.approx(1.0, abs=1e-6) and "falls" in falling.note


@pytest.mark.parametrize("width", [None, 0.5, 0.01])
def test_the_fit_is_scipys_from_the_stated_start(width: float | None) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 3.0, 200)
    y = curve(x, 4.6, 1.5, 1.3, 0.4) + rng.normal(size=200) * 0.4
    parameters, _ = curve_fit(
        curve, x, y, p0=(y.max(), y.min(), x.mean(), width or x.std()), maxfev=10_000
    )
    expected = pearson(y, curve(x, *parameters))
    found = plcc(x, y, start_width=width) if width else plcc(x, y)
    assert found.value == pytest.approx(expected, abs=1e-6)
    in_other_units = plcc(1e-4 * x + 7.0, y, start_width=width and 1e-4 * width)
    assert in_other_units.value == pytest.approx(expected, abs=1e-6)


def test_rmse_is_the_residual_of_the_fit_in_units_of_the_labels() -> None:
    x = np.linspace(0.0, 1.0, 90)
    y = curve(x, 4.5, 1.5, 0.4, 0.1) + np.tile([0.3, -0.3, 0.0], 30)
    found, fit = plcc(x, y), logistic.fit_logistic(x, y)
    assert found.rmse == pytest.approx(float(np.sqrt(np.mean((fit(x) - y) ** 2))))
    assert found.rmse == pytest.approx(float(np.std(y)) * np.sqrt(1 - found.value**2), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-2, 2)),
    st.floats(0.2, 3.0),
    st.sampled_from([-1.0, 1.0]),
)
def test_the_slopes_given_to_the_solver_are_those_of_the_curve(
    start: tuple[float, float, float], width: float, sign: float
) -> None:
    b, x = np.array([*start, sign * width]), np.linspace(-3.0, 3.0, 7)
    expected = approx_fprime(b, lambda at: logistic._curve(at, x), 1e-7)
    np.testing.assert_allclose(logistic._slopes(b, x), expected, atol=2e-5)


def test_a_fit_that_does_not_converge_is_nan_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "MAX_EVALUATIONS", 2)
    found = plcc(*case()[:2])
    assert np.isnan(found.value) and "converge" in found.note


def test_a_curve_that_tells_nothing_has_no_plcc(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether a fit ends exactly flat depends on the last bits, so the flat curve is put in place.
    flat = LogisticFit(upper=0.5, lower=0.5, midpoint=0.0, width=1.0, converged=True)
    monkeypatch.setattr(logistic, "fit_logistic", lambda *_, **__: flat)
    found = plcc([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0])
    assert math.isnan(found.value)
    assert found.rmse == pytest.approx(0.5)


# Resamples
@pytest.mark.parametrize("noise", [0.3, 0.5, 0.8])
def test_resamples_are_near_refits_where_the_metric_has_signal(noise: float) -> None:
    x, y, counts, clusters = case(60, 4, noise)
    weights = counts.astype(int)[:, clusters]
    refits = [plcc(np.repeat(x, w), np.repeat(y, w)) for w in weights]
    found = resampled_plcc(x, y, counts, clusters)[1:]
    np.testing.assert_allclose(found, [one.value for one in refits], rtol=0, atol=1e-3)
    rmse = BestCurves(x, y, counts, clusters).rmse
    np.testing.assert_allclose(rmse, [one.rmse for one in refits], rtol=0, atol=5e-3)


def test_the_first_value_is_that_of_the_sample_itself() -> None:
    x, y, counts, clusters = case()
    found = resampled_plcc(x, y, np.vstack([counts, np.ones(40)]), clusters)
    assert found[0] == pytest.approx(found[-1], abs=1e-12)
    assert found[0] == pytest.approx(plcc(x, y).value, abs=1e-3)


def test_constant_scores_or_labels_have_no_curve_and_no_resample() -> None:
    same, rising = [1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(ValueError, match="four"):
        logistic.fit_logistic(same, rising)
    with pytest.raises(ValueError, match="constant"):
        resampled_plcc(same, rising, np.ones((1, 5)), np.arange(5))
    none = plcc(same, rising)
    assert np.isnan([none.value, none.rmse]).all()
    drawn = resampled_plcc(
        rising, [1.0, 1.0, 2.0, 3.0, 4.0], [[2, 2, 0, 0, 0], [1, 1, 1, 1, 1]], np.arange(5)
    )
    assert np.isnan(drawn[1:]).tolist() == [True, False]
    rmse = resampled_rmse(np.array([np.nan, 1.0]), [1.0, 2.0], [[1, 0], [1, 1]], [0, 1])
    np.testing.assert_array_equal(rmse, [np.nan, 0.0])


def test_only_a_fit_that_is_the_best_curve_has_resamples() -> None:
    made = case()
    curves = BestCurves(*made)
    assert curves.doubt(plcc(*made[:2])) == ""
    np.testing.assert_array_equal(curves.plcc, resampled_plcc(*made)[1:])
    assert "not the best" in curves.doubt(Plcc(0.1, "falls"))
