"""Votes between two models' images of a prompt: strengths, ranks and rates, with intervals.

Votes about one prompt are alike, and so are votes of one rater. Variances are clustered by both
(Cameron, Gelbach and Miller, JBES 2011): sums by prompt, plus sums by rater, less sums by both,
with Student's t for the smaller effective number of clusters. Intervals are never narrower than
those of independent votes. `tools.vote_study` has the simulated coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.bradley_terry import RIDGE, Posterior, posterior, win_matrix
from benchmarks.statistics.confidence_sequence import half_width, mixing_scale
from benchmarks.statistics.intervals import LEVEL
from benchmarks.statistics.multiplicity import holm_of_pairs

_SAME = 1e-9
"""Strengths that differ by less are equal: that is rounding."""


@dataclass(frozen=True)
class Votes:
    """The votes behind a board; all arrays have shape (v,).

    Raises: ValueError that names everything that is wrong with them.
    """

    first: IntArray  # model of the first image, 0..M-1
    second: IntArray  # model of the second image
    won: FloatArray  # 1 where the first was preferred, 0 where the second was, 0.5 for neither
    both_bad: BoolArray  # whether both were called bad: to the strengths a tie
    prompts: IntArray  # number of the prompt
    raters: IntArray  # number of the rater
    # chance of the prompt in its draw, on any scale: equal for all where prompts were drawn alike
    chances: FloatArray

    def __post_init__(self) -> None:
        shapes = {
            column.shape
            for column in (
                self.first,
                self.second,
                self.won,
                self.both_bad,
                self.prompts,
                self.raters,
                self.chances,
            )
        }
        if len(shapes) > 1 or self.first.ndim != 1:
            raise ValueError(f"columns of votes differ in shape: {sorted(shapes)}")
        faults = {
            "a model is compared with itself": self.first == self.second,
            "a vote is none of 0, 0.5 and 1": ~np.isin(self.won, (0.0, 0.5, 1.0)),
            "both are bad and one was preferred": self.both_bad & (self.won != 0.5),
            "a chance is not above 0": ~(self.chances > 0.0),
        }
        found = [f"{fault} ({int(at.sum())} votes)" for fault, at in faults.items() if at.any()]
        if found:
            raise ValueError("; ".join(found))

    @property
    def weights(self) -> FloatArray:
        """Inverse chances, scaled to add up to the effective number of votes (Kish 1965)."""
        inverse: FloatArray = 1.0 / self.chances
        if inverse.size:
            inverse *= inverse.sum() / (inverse**2).sum()
        return inverse


@dataclass(frozen=True)
class VoteBoard:
    """Bradley-Terry strengths of M models from votes; arrays of shape (M,) unless said.

    NaN where a model has no votes, and between models of different groups.
    """

    n_votes: IntArray
    # number of the group: models of two groups were never compared, not through others either
    groups: IntArray
    # number of the class: between two classes of a group all votes went one way, so that the
    # penalty alone keeps their difference finite (Ford, American Mathematical Monthly 1957)
    classes: IntArray
    strengths: FloatArray  # log odds against the mean of the group
    strengths_low: FloatArray
    strengths_high: FloatArray
    win_rates: FloatArray  # mean chance to be preferred to another model of the group, 0..1
    win_rates_low: FloatArray
    win_rates_high: FloatArray
    ranks: FloatArray  # in the group, 1 is best
    # ranks that the tests leave open: all of a group hold at once at the level
    ranks_low: FloatArray
    ranks_high: FloatArray
    differences: FloatArray  # (M, M), strength of the row's model less the column's, in log odds
    half_widths: FloatArray  # (M, M), half the width of the differences' intervals
    p_values: FloatArray  # (M, M), of no difference, Holm-corrected over the board


def vote_board(
    votes: Votes,
    n_models: int,
    *,
    level: float = LEVEL,
    planned: int | None = None,
    ridge: float = RIDGE,
) -> VoteBoard:
    """The board of votes, each weighted by the inverse of its prompt's chance.

    "Both bad" counts as a tie: it does not say which of two is better, and without these votes the
    strengths would be those on the prompts that are solved. `both_bad_rates` has their share.

    `level`: of the intervals; the p-values and ranks hold for all models at once. `planned`: number
    of votes that is aimed at, where the votes so far decide when to stop; intervals and p-values
    then hold at every look, those of `confidence_sequence`. None: the number was fixed beforehand.
    """
    weights = votes.weights
    wins = win_matrix(votes.first, votes.second, votes.won, n_models, weights)
    fit = posterior(wins, ridge)
    spread = _spread_of(votes, weights, fit, ridge)
    bounds = _Bounds.of(level, votes.first.size, planned)
    groups, classes = _components(wins)
    n_votes = np.bincount(np.r_[votes.first, votes.second], minlength=n_models)
    voted = n_votes > 0
    together = (groups[:, None] == groups) & voted
    size = together.sum(axis=1)
    others = together & ~np.eye(n_models, dtype=bool)
    differences = np.where(others, fit.contrasts, np.nan)
    errors = spread.of(np.eye(n_models)[:, None, :] - np.eye(n_models))
    p_values = holm_of_pairs(
        np.where(others, bounds.p_values(np.abs(fit.contrasts), errors), np.nan)
    )
    decided = p_values <= 1.0 - level
    worse, better = differences < -_SAME, differences > _SAME
    strengths = np.where(voted, fit.strengths, np.nan)
    around_mean = np.eye(n_models) - together / np.maximum(size, 1)[:, None]
    half = bounds.half_widths(spread.of(around_mean))
    rates, low, high = _win_rates(fit, others, spread, bounds)
    return VoteBoard(
        n_votes=n_votes,
        groups=groups,
        classes=classes,
        strengths=strengths,
        strengths_low=strengths - half,
        strengths_high=strengths + half,
        win_rates=rates,
        win_rates_low=low,
        win_rates_high=high,
        ranks=np.where(voted, 1.0 + worse.sum(axis=1), np.nan),
        ranks_low=np.where(voted, 1.0 + (decided & worse).sum(axis=1), np.nan),
        ranks_high=np.where(voted, size - (decided & better).sum(axis=1), np.nan),
        differences=differences,
        half_widths=np.where(others, bounds.half_widths(errors), np.nan),
        p_values=p_values,
    )


@dataclass(frozen=True)
class Rate:
    """A rate among votes, with its interval."""

    value: float  # 0..1; model-assisted rates of few votes may lie outside; NaN without votes
    error: float  # standard error, clustered by prompt and rater
    low: float  # lower end of the interval, 0..1
    high: float
    n_votes: int


def hajek_rate(
    outcomes: FloatArray,
    chances: FloatArray,
    prompts: IntArray,
    raters: IntArray,
    *,
    level: float = LEVEL,
    planned: int | None = None,
) -> Rate:
    """Mean over all prompts from votes on drawn ones: sum(y / pi) / sum(1 / pi) (Hájek 1971).

    The interval is Wilson's, of as many votes as would have this standard error if they were
    independent (Korn and Graubard, Survey Methodology 1998). Where all outcomes are alike these are
    as many as there are prompts or raters, whichever are fewer, but more than one; of one rater on
    one prompt as many as there are votes.

    `outcomes` y (v,), 0..1, such as 1 where the first model won and 0.5 for a tie; `chances` pi
    (v,), chance of the vote's prompt in its draw, on any scale; `prompts`, `raters` (v,), their
    numbers; `planned` as in `vote_board`.
    """
    none = np.zeros(outcomes.size)
    return assisted_rate(
        outcomes, none, chances, prompts, raters, of_all=np.zeros(1), level=level, planned=planned
    )


def assisted_rate(
    outcomes: FloatArray,
    predicted: FloatArray,
    chances: FloatArray,
    prompts: IntArray,
    raters: IntArray,
    *,
    of_all: FloatArray,
    level: float = LEVEL,
    planned: int | None = None,
) -> Rate:
    """Mean over all prompts with the help of a metric: mean(q) + sum((y - q) / pi) / sum(1 / pi).

    A metric that is wrong costs precision and no more (difference estimator: Särndal, Swensson and
    Wretman, Model Assisted Survey Sampling, 1992). The interval is widened like Wilson's, and equal
    to that of `hajek_rate` where all predictions are alike.

    `predicted` q (v,), win rate that the metric predicts for the vote's prompt, 0..1; `of_all`
    (K,), those of all K prompts; the others as in `hajek_rate`.
    """
    if not outcomes.size:
        return _NO_RATE
    left = outcomes - predicted
    value = float(of_all.mean() + np.average(left, weights=1.0 / chances))
    errors = _errors_of_mean(left, chances, prompts, raters)
    bounds = _Bounds.of(level, outcomes.size, planned)
    half = float(bounds.half_widths(errors))
    # The half width is that of Wald's interval: z sqrt(p (1 - p) / n), so the ratio is z² / n.
    mean = float(np.average(outcomes, weights=1.0 / chances))
    spread = mean * (1.0 - mean)
    if np.ptp(outcomes) > 0.0:
        ratio = half**2 / spread
    else:
        ways = [np.unique(way).size for way in (prompts, raters)]
        n = min((clusters for clusters in ways if clusters > 1), default=outcomes.size)
        ratio = bounds.quantile**2 / n
    middle = (min(max(value, 0.0), 1.0) + ratio / 2.0) / (1.0 + ratio)
    reach = math.sqrt(max(half**2, ratio * spread) + ratio**2 / 4.0) / (1.0 + ratio)
    low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
    return Rate(value, float(errors.largest), low, high, outcomes.size)


def both_bad_rates(votes: Votes, n_models: int, level: float = LEVEL) -> tuple[Rate, ...]:
    """For each model, how often both images were bad, weighted by the inverse chance of the prompt.

    It is the share against the models that it was drawn with, as often as it was.
    """

    def rate(rows: BoolArray) -> Rate:
        return hajek_rate(
            votes.both_bad[rows].astype(np.float64),
            votes.chances[rows],
            votes.prompts[rows],
            votes.raters[rows],
            level=level,
        )

    return tuple(
        rate((votes.first == model) | (votes.second == model)) for model in range(n_models)
    )


@dataclass(frozen=True)
class _Errors:
    """Standard errors of estimates, arrays of one shape."""

    independent: FloatArray  # if votes were independent
    clustered: FloatArray
    freedom: float  # degrees of freedom of the clustered ones

    @property
    def largest(self) -> FloatArray:
        return np.maximum(self.independent, self.clustered)


@dataclass(frozen=True)
class _Spread:
    """Covariances of the strengths, (M, M), from which those of all else follow."""

    independent: FloatArray
    clustered: FloatArray
    freedom: float

    def of(self, gradients: FloatArray) -> _Errors:
        """Errors of functions of the strengths with these gradients (..., M)."""

        def error(covariance: FloatArray) -> FloatArray:
            variance = np.einsum("...i,ij,...j->...", gradients, covariance, gradients)
            found: FloatArray = np.sqrt(np.maximum(variance, 0.0))
            return found

        return _Errors(error(self.independent), error(self.clustered), self.freedom)


@dataclass(frozen=True)
class _Bounds:
    """How many standard errors make an interval, and which p-values belong to it."""

    quantile: float  # for errors that are known
    # n rho² of the confidence sequence, where every look must hold; None: one look
    time: float | None = None

    @classmethod
    def of(cls, level: float, n_votes: int, planned: int | None) -> _Bounds:
        if planned is None:
            return cls(float(scipy.special.ndtri((1.0 + level) / 2.0)))
        n, rho = max(n_votes, 1), mixing_scale(1.0 - level, planned)
        width = half_width(np.array(float(n)), 1.0 - level, rho)
        return cls(math.sqrt(n) * float(width), n * rho**2)

    def half_widths(self, errors: _Errors) -> FloatArray:
        """The wider of both intervals, with Student's t for clustered errors."""
        student = -scipy.special.stdtrit(errors.freedom, scipy.special.ndtr(-self.quantile))
        wider: FloatArray = np.fmax(self.quantile * errors.independent, student * errors.clustered)
        return wider

    def p_values(self, sizes: FloatArray, errors: _Errors) -> FloatArray:
        """Two-sided p-values of no difference, from the sizes of differences: the larger of both."""
        with np.errstate(invalid="ignore", divide="ignore"):
            tails = np.fmax(
                scipy.special.ndtr(-sizes / errors.independent),
                scipy.special.stdtr(errors.freedom, -sizes / errors.clustered),
            )
        if self.time is None:
            return np.asarray(2.0 * tails, np.float64)
        exponent = scipy.special.ndtri(tails) ** 2 * self.time / (2.0 * (self.time + 1.0))
        found: FloatArray = np.minimum(1.0, math.sqrt(self.time + 1.0) * np.exp(-exponent))
        return found


def _spread_of(votes: Votes, weights: FloatArray, fit: Posterior, ridge: float) -> _Spread:
    """The posterior's covariance, and the clustered one: the penalty is one more cluster of it."""
    n = len(fit.strengths)
    chance = 1.0 / (1.0 + np.exp(fit.strengths[votes.second] - fit.strengths[votes.first]))
    left = weights * (votes.won - chance)
    lines = np.arange(left.size)
    slopes = scipy.sparse.coo_array(
        (np.r_[left, -left], (np.r_[lines, lines], np.r_[votes.first, votes.second])),
        shape=(left.size, n),
    ).tocsr()
    middle, freedom = _clustered(slopes, votes.prompts, votes.raters, weights)
    bread = fit.covariance
    return _Spread(bread, bread @ (middle + ridge * np.eye(n)) @ bread, freedom)


def _errors_of_mean(
    values: FloatArray, chances: FloatArray, prompts: IntArray, raters: IntArray
) -> _Errors:
    """Errors of a mean that is weighted by inverse chances."""
    weights = 1.0 / chances / (1.0 / chances).sum()
    left = weights * (values - weights @ values)
    slopes = scipy.sparse.csr_array(left[:, None])
    clustered, freedom = _clustered(slopes, prompts, raters, weights)
    alone = math.sqrt(left @ left)
    return _Errors(np.array(alone), np.sqrt(clustered[0, 0]), freedom)


def _clustered(
    slopes: scipy.sparse.csr_array, prompts: IntArray, raters: IntArray, weights: FloatArray
) -> tuple[FloatArray, float]:
    """Covariance of the summed rows (v, k), clustered both ways, and its degrees of freedom.

    Where there is one prompt or one rater, what is said is about that one.
    """
    width = slopes.shape[1]
    total = np.zeros((width, width))
    parts = [part for part in (_codes(prompts), _codes(raters)) if part.any()]
    for part in parts:
        total += _sums(slopes, part)
    if len(parts) == 2:
        total -= _sums(slopes, _codes(parts[0] * (parts[1].max() + 1) + parts[1]))
    values, vectors = np.linalg.eigh(total)
    covariance: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    sizes = [np.bincount(part, weights) for part in parts]
    effective = min((size.sum() ** 2 / (size**2).sum() for size in sizes), default=math.inf)
    return covariance, max(float(effective) - 1.0, 1.0)


def _codes(clusters: IntArray) -> IntArray:
    """Clusters numbered from 0."""
    return np.unique(clusters, return_inverse=True)[1]


def _sums(slopes: scipy.sparse.csr_array, clusters: IntArray) -> FloatArray:
    """Squares of the sums over clusters, for G >= 2 of them: with the factor G / (G - 1)."""
    n = int(clusters.max()) + 1
    lines = np.arange(clusters.size)
    members = scipy.sparse.coo_array((np.ones(clusters.size), (clusters, lines))).tocsr()
    sums = members @ slopes
    found: FloatArray = np.asarray((sums.T @ sums).toarray() * (n / (n - 1.0)), np.float64)
    return found


def _components(wins: FloatArray) -> tuple[IntArray, IntArray]:
    """Groups that votes connect, and classes within which every model beat each, if by others."""
    graph = scipy.sparse.csr_array(wins)
    _, groups = scipy.sparse.csgraph.connected_components(graph, connection="weak")
    _, classes = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    return groups.astype(np.intp), classes.astype(np.intp)


def _win_rates(
    fit: Posterior, others: BoolArray, spread: _Spread, bounds: _Bounds
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean chance to win against the others (M, M) of the group; ends on the scale of log odds."""
    n = others.sum(axis=1)
    chances = 1.0 / (1.0 + np.exp(-fit.contrasts))
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.where(others, chances, 0.0).sum(axis=1) / n
        slopes = np.where(others, chances * (1.0 - chances), 0.0) / n[:, None]
        gradients = (np.diag(slopes.sum(axis=1)) - slopes) / (rates * (1.0 - rates))[:, None]
        half = bounds.half_widths(spread.of(gradients))
        middle = scipy.special.logit(rates)
    return rates, scipy.special.expit(middle - half), scipy.special.expit(middle + half)


_NO_RATE = Rate(math.nan, math.nan, math.nan, math.nan, 0)
