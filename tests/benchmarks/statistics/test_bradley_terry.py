"""Bradley-Terry strengths against a general minimiser, and what ties, winners and gaps give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.statistics.bradley_terry import (
    RIDGE,
    posterior,
    strengths,
    strengths_of_many,
    win_matrix,
)


def penalised(s: np.ndarray, first: np.ndarray, second: np.ndarray, won: np.ndarray) -> float:
    d = s[first] - s[second]
    fit = won * np.log1p(np.exp(-d)) + (1 - won) * np.log1p(np.exp(d))
    return float(fit.sum() + RIDGE / 2 * (s**2).sum())


@pytest.mark.parametrize("seed", range(6))
def test_strengths_minimise_the_penalised_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, c = int(rng.integers(2, 9)), int(rng.integers(2, 40))
    first = rng.integers(0, n, c)
    second = (first + rng.integers(1, n, c)) % n
    won = rng.choice([0.0, 0.5, 1.0], c)
    expected = minimize(penalised, np.zeros(n), (first, second, won), tol=1e-12).x
    found = strengths(first, second, won, n)
    seen = np.isin(np.arange(n), [first, second])
    assert np.isnan(found[~seen]).all()
    assert found[seen] == pytest.approx(expected[seen], abs=1e-5)


def test_one_that_always_wins_is_first_and_finite_and_equals_are_equal() -> None:
    both = np.array(list(itertools.combinations(range(4), 2)))
    found = strengths(both[:, 0], both[:, 1], np.ones(len(both)), 4)
    assert (np.diff(found) < 0).all()
    assert found.sum() == pytest.approx(0.0, abs=1e-9)
    assert strengths(both[:, 0], both[:, 1], np.full(len(both), 0.5), 4) == pytest.approx(0.0)


@pytest.mark.parametrize("seed", range(3))
def test_items_are_equally_strong_or_differ_by_more_than_rounding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tied = 0
    for _ in range(100):
        n = int(rng.integers(3, 9))
        both = np.array(list(itertools.combinations(rng.permutation(n), 2)))
        found = strengths(both[:, 0], both[:, 1], rng.choice([0.0, 0.5, 1.0], len(both)), n)
        apart = np.abs(found[:, None] - found)[np.triu_indices(n, 1)]
        assert not ((apart > 0) & (apart < 1e-9)).any()
        tied += int((apart == 0).sum())
    # In a round of all pairs the strengths are a function of the numbers of wins.
    assert tied > 100


@pytest.mark.parametrize("seed", range(4))
def test_the_posterior_is_the_inverse_curvature_and_any_start_leads_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    wins = rng.integers(0, 4, (n, n)) * rng.choice([1.0, 100.0, 1e4], (n, n))
    np.fill_diagonal(wins, 0.0)
    found = posterior(wins)
    first, second = np.nonzero(wins)

    def slope(s: np.ndarray) -> np.ndarray:
        left = wins[first, second] * (1 - 1 / (1 + np.exp(s[second] - s[first])))
        total = np.bincount(first, left, n) - np.bincount(second, left, n)
        return np.asarray(total - RIDGE * s)

    assert np.abs(slope(found.strengths)).max() < 1e-6
    step = 1e-6
    curvature = [
        (slope(found.strengths - step * one) - slope(found.strengths + step * one)) / (2 * step)
        for one in np.eye(n)
    ]
    assert found.covariance @ np.array(curvature) == pytest.approx(np.eye(n), abs=1e-3)
    again = posterior(wins, start=rng.normal(0, 3, n))
    assert again.strengths == pytest.approx(found.strengths, abs=1e-8)
    assert again.variances == pytest.approx(found.variances)
    for i, j in itertools.combinations(range(n), 2):
        towards = np.eye(n)[i] - np.eye(n)[j]
        assert found.variances[i, j] == pytest.approx(towards @ found.covariance @ towards)
        assert found.contrasts[i, j] == found.strengths[i] - found.strengths[j]


@pytest.mark.parametrize("seed", range(4))
def test_without_a_penalty_strengths_are_those_of_minorisation_maximisation(seed: int) -> None:
    # Hunter, Annals of Statistics 2004: s_i = wins_i / sum_j(n_ij / (s_i + s_j)), again and again.
    rng = np.random.default_rng(seed)
    wins = rng.integers(1, 20, (6, 6)).astype(float)
    np.fill_diagonal(wins, 0.0)
    worth = np.ones(6)
    for _ in range(3000):
        worth = wins.sum(axis=1) / ((wins + wins.T) / (worth[:, None] + worth)).sum(axis=1)
        worth /= np.exp(np.log(worth).mean())
    # So small a penalty leaves their common level to rounding; their differences are determined.
    strengths = posterior(wins, 1e-9).strengths
    assert strengths - strengths.mean() == pytest.approx(np.log(worth), abs=1e-6)


def test_weights_are_repetitions() -> None:
    first, second, won = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 1]), np.array([1, 0.5, 0, 0])
    times = np.array([3, 1, 2, 4])
    one, other, result = (np.repeat(column, times) for column in (first, second, won))
    expected = win_matrix(one, other, result, 4)
    assert np.array_equal(win_matrix(first, second, won, 4, times.astype(float)), expected)


@pytest.mark.parametrize("seed", range(4))
def test_many_groups_have_the_strengths_of_all_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 12)
    starts = np.cumsum(sizes) - sizes
    of = rng.choice(np.flatnonzero(sizes > 1), 60)
    first = starts[of] + rng.integers(0, sizes[of])
    second = starts[of] + (first - starts[of] + rng.integers(1, sizes[of])) % sizes[of]
    won, n = rng.choice([0.0, 0.5, 1.0], 60), int(sizes.sum())
    expected = strengths(first, second, won, n)
    found = strengths_of_many(first, second, won, n)
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)
    none = np.empty(0, np.intp)
    assert np.isnan(strengths_of_many(none, none, np.empty(0), 3)).all()


def test_groups_that_never_met_lie_around_zero_each() -> None:
    found = strengths(np.array([0, 2]), np.array([1, 3]), np.array([1.0, 0.0]), 5)
    assert found[0] == -found[1] == found[3] == -found[2] > 0
    assert np.isnan(found[4])
