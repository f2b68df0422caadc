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
    plcc_with_draws,
    resampled_plcc,
    resampled_rmse,
)


def curve(x, b1, b2, b3, b4):  # type: ignore[no-untyped-def]
    return b2 + (b1 - b2) / (1 + np.exp(-(x - b3) / np.abs(b4)))


def test_noise_free_labels_of_a_logistic_are_fitted_exactly() -> None:
    x = np.linspace(-2.0, 5.0, 60)
    fit = logistic.fit_logistic(x, curve(x, 4.5, 1.2, 1.0, 0.8))
    assert fit.converged
    found = (fit.upper, fit.lower, fit.midpoint, fit.width)
    assert found == pytest.approx((4.5, 1.2, 1.0, 0.8), abs=1e-5)


def test_the_fit_is_scipys_curve_fit_from_the_stated_start() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, 300)
    y = curve(x, 4.6, 1.5, 0.55, 0.12) + rng.normal(size=300) * 0.5
    start = (y.max(), y.min(), x.mean(), x.std())
    parameters, _ = curve_fit(curve, x, y, p0=start, maxfev=10_000)
    expected = pearson(y, curve(x, *parameters))
    assert logistic.plcc(x, y).value == pytest.approx(expected, abs=1e-6)


def test_plcc_does_not_depend_on_the_units_of_the_score() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    y = np.tanh(x) + rng.normal(size=200) * 0.3
    assert logistic.plcc(1e-4 * x + 7.0, y).value == pytest.approx(
        logistic.plcc(x, y).value, abs=1e-6
    )


def test_a_metric_that_runs_backwards_is_positive_and_says_so() -> None:
    x = np.linspace(0.0, 1.0, 80)
    found = logistic.plcc(x, curve(-x, 5.0, 1.0, -0.5, 0.1))
    assert found.value == pytest.approx(1.0, abs=1e-6)
    assert "falls" in found.note


def test_a_fit_that_does_not_converge_is_nan_with_a_note_never_plain_pearson(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logistic, "MAX_EVALUATIONS", 2)
    rng = np.random.default_rng(2)
    x = rng.normal(size=50)
    found = logistic.plcc(x, x + rng.normal(size=50))
    assert np.isnan(found.value)
    assert found.note == "the logistic fit did not converge"


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "fewer than 4"),
        ([1.0] * 6, range(6), "constant"),
        (range(6), [2.0] * 6, "constant"),
    ],
)
def test_undefined_plcc_names_its_reason(x, y, reason) -> None:  # type: ignore[no-untyped-def]
    found = logistic.plcc(list(x), list(y))
    assert np.isnan(found.value)
    assert reason in found.note


def test_no_curve_is_fitted_to_constant_scores() -> None:
    with pytest.raises(ValueError, match="four points"):
        logistic.fit_logistic([1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0])


def test_rmse_is_the_residual_of_the_fit_in_units_of_the_labels() -> None:
    x = np.linspace(0.0, 1.0, 90)
    exact = curve(x, 4.5, 1.5, 0.4, 0.1)
    assert logistic.plcc(x, exact).rmse == pytest.approx(0.0, abs=1e-6)
    y = exact + np.tile([0.3, -0.3, 0.0], 30)
    found = logistic.plcc(x, y)
    fit = logistic.fit_logistic(x, y)
    assert found.rmse == pytest.approx(float(np.sqrt(np.mean((fit(x) - y) ** 2))))
    assert found.rmse == pytest.approx(float(np.std(y)) * np.sqrt(1 - found.value**2), rel=1e-6)
    assert np.isnan(logistic.plcc([1.0] * 5, range(5)).rmse)


@pytest.mark.parametrize("width", [0.5, 0.01])
def test_the_fit_can_start_at_another_width(width: float) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 3.0, 200)
    y = curve(x, 4.6, 1.5, 1.3, 0.4) + rng.normal(size=200) * 0.4
    start = (y.max(), y.min(), x.mean(), width)
    parameters, _ = curve_fit(curve, x, y, p0=start, maxfev=10_000)
    found = logistic.plcc(x, y, start_width=width)
    assert found.value == pytest.approx(pearson(y, curve(x, *parameters)), abs=1e-6)


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
    monkeypatch.setattr(logistic, "plcc", lambda *_: Plcc(0.1, "falls"))
    found = plcc_with_draws(*case)
    assert (found.fitted.value, found.fitted.note, found.draws) == (0.1, "falls", None)
    assert found.doubt == "no interval: the fit stopped at a curve that is not the best one"


def test_an_undefined_fit_has_no_resamples_and_its_own_reason() -> None:
    found = plcc_with_draws([1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0], np.ones((2, 5)), np.arange(5))
    assert np.isnan(found.fitted.value)
    assert (found.draws, found.doubt) == (None, "")


def test_a_curve_that_tells_nothing_of_the_labels_has_no_plcc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whether a fit ends exactly flat depends on the last bits, so the flat curve is put in place.
    flat = LogisticFit(upper=0.5, lower=0.5, midpoint=0.0, width=1.0, converged=True)
    monkeypatch.setattr(logistic, "fit_logistic", lambda *_, **__: flat)
    found = plcc([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0])
    assert math.isnan(found.value)
    assert found.rmse == pytest.approx(0.5)
