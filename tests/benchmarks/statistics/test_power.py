"""Power: the formulas in numbers, and against simulated boards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.statistics.power import (
    clusters_needed,
    detectable,
    probability,
    se_of_accuracies,
    se_of_correlations,
    se_of_neighbours,
)

PLANNED = {400: 7.7, 500: 6.9, 724: 5.7, 1000: 4.9, 1306: 4.2, 6399: 1.9}


@pytest.mark.parametrize(("n", "points"), PLANNED.items())
def test_what_comparisons_find_where_three_in_ten_are_discordant(n: int, points: float) -> None:
    assert 100 * detectable(se_of_accuracies(0.3, n)) == pytest.approx(points, abs=0.05)


@pytest.mark.parametrize(("points", "n"), [(2, 5887), (1, 23547)])
def test_how_many_comparisons_find_a_difference(points: float, n: int) -> None:
    # 2.802 rounded, the textbook's factor, gives 5,888 and 23,554.
    assert clusters_needed(points / 100, se_of_accuracies(0.3, 1000), 1000) == n
    assert math.isinf(clusters_needed(0.0, 0.01, 1000))


def test_what_is_just_detectable_is_found_four_times_in_five() -> None:
    assert probability(detectable(0.02), 0.02) == pytest.approx(0.8, abs=1e-4)
    assert probability(0.0, 0.02) == pytest.approx(0.05)
    assert list(probability([0.01, -0.01], 0.01)) == [probability(0.01, 0.01)] * 2


@pytest.mark.parametrize(("n", "difference", "per_prompt"), [(400, 0.07, 1), (900, 0.05, 3)])
def test_simulated_boards_find_a_difference_as_often_as_is_said(
    n: int, difference: float, per_prompt: int
) -> None:
    random, psi = np.random.default_rng(5), 0.3
    chances = [(psi + difference) / 2, (psi - difference) / 2, 1 - psi]
    draws = random.choice([1.0, -1.0, 0.0], (4000, n // per_prompt), p=chances)
    # All comparisons of a prompt come out alike: icc is 1.
    z = draws.mean(axis=1) / (draws.std(axis=1) / math.sqrt(draws.shape[1]))
    se = se_of_accuracies(psi, n, difference, design_effect=per_prompt)
    assert (np.abs(z) > 1.96).mean() == pytest.approx(probability(difference, se), abs=0.03)


def test_correlations_of_simulated_images_differ_as_is_said() -> None:
    n = 300
    people, shared, one, other = np.random.default_rng(6).normal(size=(4, 1500, n))
    ranks = [
        stats.zscore(stats.rankdata(x, axis=1), axis=1)
        for x in (people + shared + one, people + shared + other, people)
    ]
    drawn = np.array([(metric * ranks[2]).mean(axis=1) for metric in ranks[:2]])
    said = se_of_correlations(drawn.mean(), np.corrcoef(drawn)[0, 1], n)
    assert np.std(drawn[0] - drawn[1]) == pytest.approx(said, rel=0.1)


def test_a_board_has_the_median_error_of_its_neighbours() -> None:
    random = np.random.default_rng(7)
    noise = random.normal(scale=[[0.01], [0.02], [0.04]], size=(3, 5000))
    values = np.array([0.5, 0.7, 0.6])
    found = se_of_neighbours(values, values[:, None] + noise)
    # In order: 0.7 (0.02), 0.6 (0.04), 0.5 (0.01).
    assert found == pytest.approx(np.median(np.hypot([0.02, 0.04], [0.04, 0.01])), rel=0.05)
    undefined = np.full((1, 5000), np.nan)
    assert math.isnan(se_of_neighbours([0.5, np.nan], np.vstack([noise[:1], undefined])))
