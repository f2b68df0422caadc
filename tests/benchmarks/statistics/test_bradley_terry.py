"""Bradley-Terry strengths against a general minimiser, and what ties, winners and gaps give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.statistics.bradley_terry import RIDGE, strengths, strengths_of_many


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
