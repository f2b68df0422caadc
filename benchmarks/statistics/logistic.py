"""PLCC and RMSE after a four-parameter logistic is fitted from scores to labels.

f(x) = b2 + (b1 - b2) / (1 + exp(-(x - b3) / |b4|)), fitted by least squares from the start
b = (max y, min y, mean x, std x): the convention of image quality assessment (VQEG) that
EvalMuse-40K follows for its PLCC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares
from scipy.special import expit

from benchmarks.arrays import FloatArray
from benchmarks.statistics.correlation import anchored, pearson

MAX_EVALUATIONS = 10_000
_MIN_WIDTH = 1e-12


@dataclass(frozen=True)
class LogisticFit:
    """A fitted curve.

    Attributes:
        upper: b1, the value approached for high scores.
        lower: b2, the value approached for low scores.
        midpoint: b3, in units of the score.
        width: |b4|, in units of the score.
        converged: whether the least-squares solver met a convergence criterion.
    """

    upper: float
    lower: float
    midpoint: float
    width: float
    converged: bool

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """The curve at these scores, same shape."""
        x = np.asarray(scores, np.float64)
        curve: FloatArray = self.lower + (self.upper - self.lower) * expit(
            (x - self.midpoint) / max(self.width, _MIN_WIDTH)
        )
        return curve


@dataclass(frozen=True)
class Plcc:
    """A PLCC and what a reader must know about it.

    Attributes:
        value: in -1..1; NaN where it is undefined.
        note: why the value is NaN, or that the fitted curve falls; empty as a rule.
        rmse: root of the mean squared difference between curve and labels, in units of the
            labels; NaN where no curve is fitted.
    """

    value: float
    note: str = ""
    rmse: float = math.nan


def fit_logistic(
    scores: ArrayLike, labels: ArrayLike, *, start_width: float | None = None
) -> LogisticFit:
    """Fit the four-parameter logistic from scores to labels (Levenberg-Marquardt).

    The scores are standardised for the fit, which changes neither the start nor the optimum.

    Args:
        scores: shape (n,), finite, n >= 4, not constant.
        labels: shape (n,), finite.
        start_width: b4 from which the solver starts, in units of the score, > 0; None: the
            standard deviation of the scores.

    Returns:
        The curve in units of the given scores.

    Raises:
        ValueError: fewer than four points, or constant scores.
    """
    x, y = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    if x.size < 4 or (x == x[0]).all():
        raise ValueError("a four-parameter curve needs four points and scores that differ")
    mean, std = float(x.mean()), float(x.std())
    z = (x - mean) / std
    found = least_squares(
        lambda b: _curve(b, z) - y,
        jac=lambda b: _slopes(b, z),
        x0=(y.max(), y.min(), 0.0, 1.0 if start_width is None else start_width / std),
        method="lm",
        max_nfev=MAX_EVALUATIONS,
    )
    upper, lower, midpoint, width = (float(b) for b in found.x)
    return LogisticFit(upper, lower, mean + std * midpoint, std * abs(width), found.status > 0)


def plcc(scores: ArrayLike, labels: ArrayLike, *, start_width: float | None = None) -> Plcc:
    """Pearson correlation of labels and fitted scores (EvalMuse-40K, evaluation metrics).

    The curve may fall, so a metric that runs against the labels also gets a positive PLCC; the
    note then says so.

    Args:
        scores: shape (n,), finite.
        labels: shape (n,), finite.
        start_width: see `fit_logistic`.

    Returns:
        The value, never a plain Pearson correlation in its place: NaN with a note where the fit
        cannot be made or does not converge.
    """
    x, y = anchored(scores), np.asarray(labels, np.float64)
    if x.size < 4:
        return Plcc(math.nan, "fewer than 4 images: the logistic has 4 parameters")
    if (x == x[0]).all() or (y == y[0]).all():
        return Plcc(math.nan, "scores or labels are constant")
    fit = fit_logistic(x, y, start_width=start_width)
    if not fit.converged:
        return Plcc(math.nan, "the logistic fit did not converge")
    fitted = fit(x)
    value, rmse = pearson(y, fitted), float(np.sqrt(np.mean((y - fitted) ** 2)))
    if math.isnan(value):
        return Plcc(value, "the fitted logistic is constant", rmse)
    falls = fit.upper < fit.lower
    note = "the fitted curve falls: high scores go with low labels" if falls else ""
    return Plcc(value, note, rmse)


def _curve(b: FloatArray, x: FloatArray) -> FloatArray:
    curve: FloatArray = b[1] + (b[0] - b[1]) * expit((x - b[2]) / max(abs(b[3]), _MIN_WIDTH))
    return curve


def _slopes(b: FloatArray, x: FloatArray) -> FloatArray:
    """Derivatives of the curve with respect to b1..b4, shape (n, 4)."""
    width = max(abs(b[3]), _MIN_WIDTH)
    z = (x - b[2]) / width
    s = expit(z)
    steepness = (b[0] - b[1]) * s * (1.0 - s) / width
    slopes = np.empty((x.size, 4), order="F")
    slopes[:, 0], slopes[:, 1] = s, 1.0 - s
    slopes[:, 2], slopes[:, 3] = -steepness, -steepness * z * (np.sign(b[3]) or 1.0)
    return slopes
