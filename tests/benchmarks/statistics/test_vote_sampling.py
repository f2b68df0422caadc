"""Chances of pairs and prompts against the formulas, and draws that have them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from benchmarks.statistics.bradley_terry import Posterior, posterior
from benchmarks.statistics.vote_sampling import (
    draw_pair,
    pair_chances,
)


def a_posterior(n: int = 5, seed: int = 0) -> Posterior:
    wins = np.random.default_rng(seed).integers(0, 9, (n, n)).astype(float)
    np.fill_diagonal(wins, 0.0)
    return posterior(wins)


def test_chances_of_pairs_follow_the_rule() -> None:
    found = a_posterior()
    expected = np.zeros((5, 5))
    for i in range(5):
        for j in range(i + 1, 5):
            towards = np.zeros(5)
            towards[i], towards[j] = 1.0, -1.0
            v = towards @ found.covariance @ towards
            delta = found.strengths[i] - found.strengths[j]
            p = scipy.special.expit(delta)
            told = v * p * (1 - p)
            expected[i, j] = told / (1 + told) * scipy.stats.norm.pdf(delta / math.sqrt(v))
    expected = 0.8 * expected / expected.sum() + np.triu(np.full((5, 5), 0.2 / 10), 1)
    assert pair_chances(found) == pytest.approx(expected, abs=1e-12)


def test_only_allowed_pairs_are_drawn_and_share_all_the_chance() -> None:
    allowed = np.zeros((5, 5), bool)
    allowed[0, 3] = allowed[1, 2] = allowed[4, 0] = True  # the last one is below the diagonal
    chances = pair_chances(a_posterior(), allowed, uniform=0.5)
    assert set(zip(*np.nonzero(chances), strict=True)) == {(0, 3), (1, 2)}
    assert chances.sum() == pytest.approx(1.0)
    assert chances.max() < 0.75
    with pytest.raises(ValueError, match="no pair"):
        pair_chances(a_posterior(), np.zeros((5, 5), bool))


def test_pairs_that_are_all_decided_are_still_drawn() -> None:
    strengths = np.array([900.0, 0.0, -500.0])
    chances = pair_chances(Posterior(strengths, np.eye(3) * 1e-3))
    assert chances.sum() == pytest.approx(1.0)
    assert chances[1, 2] == pytest.approx(0.8 + 0.2 / 3)


def test_a_new_model_is_drawn_more_often_than_others() -> None:
    wins = np.full((6, 6), 20.0)
    wins[5] = wins[:, 5] = 0.0
    np.fill_diagonal(wins, 0.0)
    chances = pair_chances(posterior(wins))
    assert chances[:5, 5].sum() > 2 * chances[:5, :5].sum()


def test_drawn_pairs_come_as_often_as_their_chances_and_from_the_callers_generator() -> None:
    found, n = a_posterior(), 4000
    rng = np.random.default_rng(3)
    draws = [draw_pair(found, rng) for _ in range(n)]
    chances = pair_chances(found)
    assert all(each.chance == chances[each.first, each.second] for each in draws)
    counts = np.zeros((5, 5))
    np.add.at(counts, ([d.first for d in draws], [d.second for d in draws]), 1.0)
    above = np.triu_indices(5, 1)
    assert scipy.stats.chisquare(counts[above], n * chances[above]).pvalue > 1e-3
    again = np.random.default_rng(3)
    assert [draw_pair(found, again) for _ in range(20)] == draws[:20]
