"""PLCC and RMSE after a four-parameter logistic fit, of a sample and of every resample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.correlation import pearson
from benchmarks.statistics.resampling import with_sample
from benchmarks.statistics.samples import anchored, sum_by_cluster

MAX_EVALUATIONS = 10_000
_MIN_WIDTH = 1e-12


@dataclass(frozen=True)
class LogisticFit:
    """A fitted curve."""

    upper: float  # b1, the value approached for high scores
    lower: float  # b2, the value approached for low scores
    midpoint: float  # b3, in units of the score
    width: float  # |b4|, in units of the score
    converged: bool  # whether the least-squares solver met a convergence criterion

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """The curve at these scores, same shape."""
        x = np.asarray(scores, np.float64)
        curve: FloatArray = self.lower + (self.upper - self.lower) * scipy.special.expit(
            (x - self.midpoint) / max(self.width, _MIN_WIDTH)
        )
        return curve


@dataclass(frozen=True)
class Plcc:
    """A PLCC and what a reader must know about it."""

    value: float  # in -1..1; NaN where it is undefined
    note: str = ""  # why the value is NaN, or that the fitted curve falls; empty as a rule
    # root of the mean squared difference between curve and labels, in units of the labels; NaN
    # where no curve is fitted
    rmse: float = math.nan


def fit_logistic(
    scores: ArrayLike, labels: ArrayLike, *, start_width: float | None = None
) -> LogisticFit:
    """Fit the four-parameter logistic from scores to labels (Levenberg-Marquardt).

    f(x) = b2 + (b1 - b2) / (1 + exp(-(x - b3) / |b4|)), by least squares from b = (max y, min y,
    mean x, std x): the convention of image quality assessment (VQEG) that EvalMuse-40K follows.

    The scores are standardised for the fit, which changes neither the start nor the optimum.

    `scores` (n,), finite, n >= 4, not constant; `labels` (n,), finite; `start_width`: b4 from which
    the solver starts, in units of the score, > 0; None: the standard deviation of the scores.
    Returns: The curve in units of the given scores.
    """
    x, y = np.asarray(scores, np.float64), np.asarray(labels, np.float64)
    if x.size < 4 or (x == x[0]).all():
        raise ValueError("a four-parameter curve needs four points and scores that differ")
    mean, std = float(x.mean()), float(x.std())
    z = (x - mean) / std
    found = scipy.optimize.least_squares(
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

    `scores` (n,), finite; `labels` (n,), finite.
    Returns: The value, never a plain Pearson correlation in its place: NaN with a note where the
    fit cannot be made or does not converge.
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
    curve: FloatArray = b[1] + (b[0] - b[1]) * scipy.special.expit(
        (x - b[2]) / max(abs(b[3]), _MIN_WIDTH)
    )
    return curve


def _slopes(b: FloatArray, x: FloatArray) -> FloatArray:
    """Derivatives of the curve with respect to b1..b4, shape (n, 4)."""
    width = max(abs(b[3]), _MIN_WIDTH)
    z = (x - b[2]) / width
    s = scipy.special.expit(z)
    steepness = (b[0] - b[1]) * s * (1.0 - s) / width
    slopes = np.empty((x.size, 4), order="F")
    slopes[:, 0], slopes[:, 1] = s, 1.0 - s
    slopes[:, 2], slopes[:, 3] = -steepness, -steepness * z * (np.sign(b[3]) or 1.0)
    return slopes


# Best curves in every resample.


GRID_TOLERANCE = 2e-3
"""Largest gap between the fit and the best curve of the grid at which resamples are given."""

# The coarse grid of curves, in standard deviations of the score. A flat curve with a far midpoint
# is an exponential.
_WIDTHS = np.geomspace(0.05, 60.0, 20)
_MIDPOINTS = np.concatenate([np.linspace(-4.0, 4.0, 33), [-12.0, -8.0, -6.0, 6.0, 8.0, 12.0]])
# The fine grid around the sample's own best curve, where the resamples' optima lie.
_WIDTH_FACTORS = np.geomspace(0.3, 3.0, 15)
_MIDPOINT_STEPS = np.linspace(-1.5, 1.5, 21)  # in widths of that curve
_OUTLINE = 2048  # groups of neighbouring scores by which curves are looked over
_FAR = 5.0  # standard deviations


@dataclass(frozen=True)
class BestCurves:
    """Best logistic curves from scores to labels, in the sample and in every resample.

    Attributes as the arguments of `resampled_plcc`.
    """

    scores: FloatArray
    labels: FloatArray
    counts: FloatArray
    clusters: IntArray

    @cached_property
    def _plcc(self) -> FloatArray:
        """Shape (1 + B,), the sample first."""
        return resampled_plcc(self.scores, self.labels, self.counts, self.clusters)

    @property
    def plcc(self) -> FloatArray:
        """Shape (B,), see `resampled_plcc`."""
        return self._plcc[1:]

    @cached_property
    def rmse(self) -> FloatArray:
        """Shape (B,), see `resampled_rmse`."""
        return resampled_rmse(self.plcc, self.labels, self.counts, self.clusters)

    def doubt(self, fitted: Plcc) -> str:
        """Why the resamples are not those of this fit of the sample; empty where they are."""
        if abs(self._plcc[0] - fitted.value) > GRID_TOLERANCE:
            return "no interval: the fit stopped at a curve that is not the best one"
        return ""


def resampled_plcc(
    scores: ArrayLike, labels: ArrayLike, counts: ArrayLike, clusters: ArrayLike
) -> FloatArray:
    """PLCC in the sample and in each resample, by a search over curves that all of them share.

    For a given midpoint and width, the least-squares b1 and b2 are a linear regression on
    s(x) = 1 / (1 + exp(-(x - b3) / |b4|)), so the fit's PLCC is the largest |Pearson(y, s)| over
    midpoint and width. That maximum is taken over a grid for all resamples at once. It is flat:
    against refits of each resample the grid's spacing costs less than 1e-3. Only for a metric
    near chance, whose fit has several optima, does the grid find better ones than the solver.

    `scores` (n,), finite, not constant; `labels` (n,), finite; `counts` (B, C), non-negative
    multiplicities of the clusters; `clusters` (n,), column of `counts` of each item.
    Returns: shape (1 + B,): of the sample itself, each cluster once, then of the resamples; NaN
    where a resample's scores or labels are constant.
    """
    x, y = anchored(scores), np.asarray(labels, np.float64)
    draws, index = np.asarray(counts, np.float64), np.asarray(clusters, np.intp)
    if x.size == 0 or np.ptp(x) == 0 or np.ptp(y) == 0:
        raise ValueError("no curve is better than another where scores or labels are constant")
    z, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()

    grid = _Grid.of(z, y, index, with_sample(draws))
    outline = _Outline.of(z, y, np.unique(index).size)
    best = np.full(len(grid.draws), np.nan)
    for width, midpoints in outline.promising():
        found = grid.correlations(width, midpoints)
        best = np.fmax(best, np.fmax.reduce(found, axis=1))
    return best


def resampled_rmse(
    plcc_draws: FloatArray, labels: ArrayLike, counts: ArrayLike, clusters: ArrayLike
) -> FloatArray:
    """RMSE (B,) of the best curve in each resample, from its PLCC (B,) there, in units of the labels.

    The best curve is a linear regression of the labels on its sigmoid, so its mean squared error is
    the variance of the labels times 1 - PLCC squared.
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
class _Outline:
    """The sample in outline, from which curves are told that no resample can prefer."""

    z: FloatArray  # shape (k,), mean standardised scores of groups of neighbours
    y: FloatArray  # shape (k,), their mean labels
    sizes: FloatArray  # shape (k,), their numbers of items
    n_clusters: int  # clusters that are resampled

    @classmethod
    def of(cls, z: FloatArray, y: FloatArray, n_clusters: int) -> _Outline:
        """Standardised scores and labels of all items, shape (n,) each."""
        order = np.argsort(z, kind="stable")
        starts = np.unique(
            np.linspace(0, z.size, min(z.size, _OUTLINE), endpoint=False).astype(int)
        )
        sizes = np.diff(np.append(starts, z.size)).astype(np.float64)
        mean_z, mean_y = (np.add.reduceat(values[order], starts) / sizes for values in (z, y))
        return cls(mean_z, mean_y, sizes, n_clusters)

    def promising(self) -> Iterator[tuple[float, FloatArray]]:
        """Width and midpoints of the curves to try: of the coarse grid, then of the fine one.

        The fine grid lies around the best curve of the sample. A curve whose correlation is lower
        than the best r by a gap g follows from the best one's with correlation 1 - g / r or more,
        so their difference has a standard deviation of about sqrt(2 g / r) (1 - r²) / sqrt(C) over
        resamples: beyond `_FAR` of those no resample can turn them round.
        """
        coarse = np.stack([self._correlations(float(w), _MIDPOINTS) for w in _WIDTHS])
        row, column = (int(i) for i in np.unravel_index(np.nanargmax(coarse), coarse.shape))
        centre, width = _MIDPOINTS[column], float(_WIDTHS[row])
        fine = centre + width * _MIDPOINT_STEPS
        every = [(float(w), _MIDPOINTS, r) for w, r in zip(_WIDTHS, coarse, strict=True)]
        for factor in _WIDTH_FACTORS:
            narrower = float(width * factor)
            every.append((narrower, fine, self._correlations(narrower, fine)))
        top = max(float(np.nanmax(r, initial=0.0)) for _, _, r in every)
        margin = 2.0 * _FAR**2 * (1.0 - top**2) ** 2 / (max(top, 0.05) * self.n_clusters)
        for of_width, midpoints, r in every:
            # What the outline cannot tell, such as a step between two items, is tried.
            kept = ~(r < top - margin)
            if kept.any():
                yield of_width, midpoints[kept]

    def _correlations(self, width: float, midpoints: FloatArray) -> FloatArray:
        """|Pearson| of each curve with the labels in outline, shape (len(midpoints),)."""
        s = scipy.special.expit((self.z[:, None] - midpoints) / width)
        share = self.sizes / self.sizes.sum()
        s -= share @ s
        deviation = self.y - share @ self.y
        product = np.abs((share * deviation) @ s)
        spread = (share @ s**2) * (share @ deviation**2)
        return np.where(spread > 1e-12, product / np.sqrt(np.maximum(spread, 1e-12)), np.nan)


@dataclass(frozen=True)
class _Grid:
    """Correlations of labels with logistic curves in every resample.

    Scores `z` and labels `y` are standardised, shape (n,); `base` holds the resamples' sums of
    1, y and y squared, shape (B, 3).
    """

    z: FloatArray
    y: FloatArray
    clusters: IntArray
    draws: FloatArray
    base: FloatArray

    @classmethod
    def of(cls, z: FloatArray, y: FloatArray, clusters: IntArray, draws: FloatArray) -> _Grid:
        powers = np.stack([np.ones_like(y), y, y**2], axis=1)
        base = draws @ sum_by_cluster(powers, clusters, draws.shape[1])
        return cls(z, y, clusters, draws, base)

    def correlations(self, width: float, midpoints: FloatArray) -> FloatArray:
        """|Pearson| of the labels with each curve, shape (B, len(midpoints)), or NaN."""
        s = scipy.special.expit((self.z[:, None] - midpoints) / width)
        s -= s.mean(axis=0)
        products = np.hstack([s, s**2, s * self.y[:, None]])
        sums = self.draws @ sum_by_cluster(products, self.clusters, self.draws.shape[1])
        return _absolute_correlation(self.base, sums)


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
