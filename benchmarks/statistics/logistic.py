"""PLCC and RMSE after a four-parameter logistic is fitted from scores to labels.

f(x) = b2 + (b1 - b2) / (1 + exp(-(x - b3) / |b4|)), fitted by least squares from the start
b = (max y, min y, mean x, std x): the convention of image quality assessment (VQEG) that
EvalMuse-40K follows for its PLCC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares
from scipy.special import expit

from benchmarks.statistics.correlation import anchored, pearson, sum_by_cluster

FloatArray = NDArray[np.float64]

MAX_EVALUATIONS = 10_000
GRID_TOLERANCE = 2e-3
"""Largest gap between the fit and the best curve of the grid at which resamples are given."""

# The coarse grid of curves, in standard deviations of the score. A flat curve with a far midpoint
# is an exponential.
_WIDTHS = np.geomspace(0.05, 60.0, 20)
_MIDPOINTS = np.concatenate([np.linspace(-4.0, 4.0, 33), [-12.0, -8.0, -6.0, 6.0, 8.0, 12.0]])
# The fine grid around the sample's own best curve, where the resamples' optima lie.
_WIDTH_FACTORS = np.geomspace(0.3, 3.0, 15)
_MIDPOINT_STEPS = np.linspace(-1.5, 1.5, 21)  # in widths of that curve
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


def resampled_plcc(
    scores: ArrayLike, labels: ArrayLike, counts: ArrayLike, clusters: ArrayLike
) -> FloatArray:
    """PLCC in each resample, by a search over curves that all resamples share.

    For a given midpoint and width, the least-squares b1 and b2 are a linear regression on
    s(x) = 1 / (1 + exp(-(x - b3) / |b4|)), so the fit's PLCC is the largest |Pearson(y, s)| over
    midpoint and width. That maximum is taken over a grid for all resamples at once. It is flat:
    against refits of each resample the grid's spacing costs less than 1e-3. Only for a metric
    near chance, whose fit has several optima, does the grid find better ones than the solver.

    Args:
        scores: shape (n,), finite, not constant.
        labels: shape (n,), finite.
        counts: shape (B, C), non-negative multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item.

    Returns:
        Shape (B,); NaN where a resample's scores or labels are constant.

    Raises:
        ValueError: the scores or the labels of the sample itself are constant.
    """
    x, y = anchored(scores), np.asarray(labels, np.float64)
    draws, index = np.asarray(counts, np.float64), np.asarray(clusters, np.intp)
    if x.size == 0 or np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("no curve is better than another where scores or labels are constant")
    z, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()

    # Row 0 is the sample itself, around whose best curve the fine grid lies.
    grid = _Grid.of(z, y, index, np.vstack([np.ones((1, draws.shape[1])), draws]))
    best = np.full(draws.shape[0] + 1, np.nan)
    tops = np.empty((_WIDTHS.size, _MIDPOINTS.size))
    for row, width in enumerate(_WIDTHS):
        found = grid.correlations(float(width), _MIDPOINTS)
        tops[row] = found[0]
        best = np.fmax(best, np.fmax.reduce(found, axis=1))
    row, column = (int(i) for i in np.unravel_index(np.nanargmax(tops), tops.shape))
    midpoints = _MIDPOINTS[column] + _WIDTHS[row] * _MIDPOINT_STEPS
    for factor in _WIDTH_FACTORS:
        found = grid.correlations(float(_WIDTHS[row] * factor), midpoints)
        best = np.fmax(best, np.fmax.reduce(found, axis=1))
    return best[1:]


def resampled_rmse(
    plcc_draws: FloatArray, labels: ArrayLike, counts: ArrayLike, clusters: ArrayLike
) -> FloatArray:
    """RMSE of the best curve in each resample, from its PLCC there.

    The best curve is a linear regression of the labels on its sigmoid, so its mean squared error
    is the variance of the labels times 1 - PLCC squared.

    Args:
        plcc_draws: shape (B,), from `resampled_plcc`.
        labels: shape (n,), finite.
        counts: shape (B, C), non-negative multiplicities of the clusters.
        clusters: shape (n,), column of `counts` of each item.

    Returns:
        Shape (B,), in units of the labels; NaN where the PLCC is NaN.
    """
    y = np.asarray(labels, np.float64)
    deviation = y - y.mean()
    draws, index = np.asarray(counts, np.float64), np.asarray(clusters, np.intp)
    powers = np.stack([np.ones_like(y), deviation, deviation**2], axis=1)
    number, total, square = (draws @ sum_by_cluster(powers, index, draws.shape[1])).T
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = square / number - (total / number) ** 2
    rmse: FloatArray = np.sqrt(np.maximum(variance, 0.0) * (1.0 - np.minimum(plcc_draws**2, 1.0)))
    return rmse


@dataclass(frozen=True)
class _Grid:
    """Correlations of labels with logistic curves in every resample.

    Scores `z` and labels `y` are standardised, shape (n,); `base` holds the resamples' sums of
    1, y and y squared, shape (B, 3).
    """

    z: FloatArray
    y: FloatArray
    clusters: NDArray[np.intp]
    draws: FloatArray
    base: FloatArray

    @classmethod
    def of(
        cls, z: FloatArray, y: FloatArray, clusters: NDArray[np.intp], draws: FloatArray
    ) -> _Grid:
        powers = np.stack([np.ones_like(y), y, y**2], axis=1)
        base = draws @ sum_by_cluster(powers, clusters, draws.shape[1])
        return cls(z, y, clusters, draws, base)

    def correlations(self, width: float, midpoints: FloatArray) -> FloatArray:
        """|Pearson| of the labels with each curve, shape (B, len(midpoints)), or NaN."""
        s = expit((self.z[:, None] - midpoints) / width)
        s -= s.mean(axis=0)
        products = np.hstack([s, s**2, s * self.y[:, None]])
        sums = self.draws @ sum_by_cluster(products, self.clusters, self.draws.shape[1])
        return _absolute_correlation(self.base, sums)


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


def _absolute_correlation(base: FloatArray, sums: FloatArray) -> FloatArray:
    """|Pearson| of labels with each curve, from sums (B, 1 + y + y^2) and (B, s + s^2 + s y)."""
    with np.errstate(invalid="ignore"):  # a resample may draw nothing of a small slice
        s_mean, s_square, product = np.split(sums / base[:, :1], 3, axis=1)
        y_mean, y_square = base[:, 1:2] / base[:, :1], base[:, 2:] / base[:, :1]
    s_var, y_var = s_square - s_mean**2, y_square - y_mean**2
    # A step beyond nearly all scores has no variance but that of rounding.
    usable = (s_var > 1e-9) & (s_var > 1e-6 * s_square) & (y_var > 1e-9)
    spread = np.where(usable, s_var * y_var, np.nan)
    return np.abs(product - s_mean * y_mean) / np.sqrt(spread)
