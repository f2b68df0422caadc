"""Careless raters against scipy's binomial test, how rarely careful ones are named, and repeats."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from benchmarks.statistics.raters import check_raters, repeated_answers


def test_limits_and_p_values_are_those_of_the_exact_binomial_test() -> None:
    right, asked = np.array([0, 3, 10, 17, 20, 0]), np.array([4, 12, 20, 20, 20, 0])
    found = check_raters(right, asked, 0.75)
    tests = [
        scipy.stats.binomtest(int(k), int(n), 0.75, "less")
        for k, n in zip(right[:5], asked[:5], strict=True)
    ]
    limits = [
        scipy.stats.binomtest(int(k), int(n)).proportion_ci()
        for k, n in zip(right[:5], asked[:5], strict=True)
    ]
    assert found.low[:5] == pytest.approx([each.low for each in limits])
    assert found.high[:5] == pytest.approx([each.high for each in limits])
    # Holm: the smallest of five times 5, the next times 4, ...
    p = np.array([each.pvalue for each in tests])
    order = np.argsort(p)
    holm = np.empty(5)
    holm[order] = np.minimum(np.maximum.accumulate(p[order] * (5 - np.arange(5))), 1.0)
    assert found.p_values[:5] == pytest.approx(holm)
    assert found.careless.tolist() == [True, True, True, False, False, False]
    assert found.accuracy[:5] == pytest.approx(right[:5] / asked[:5])


def test_a_rater_who_was_not_asked_is_not_named_and_nothing_is_known_of_him() -> None:
    found = check_raters(np.array([0]), np.array([0]), 0.75)
    assert np.isnan([found.accuracy[0], found.p_values[0]]).all()
    assert (found.low[0], found.high[0], found.careless[0]) == (0.0, 1.0, False)


@pytest.mark.parametrize(
    ("right", "asked", "threshold"),
    [([3], [2], 0.75), ([-1], [2], 0.75), ([1], [2], 0.0), ([1], [2], 1.0), ([1], [2], math.nan)],
)
def test_counts_that_cannot_be_are_refused(
    right: list[int], asked: list[int], threshold: float
) -> None:
    with pytest.raises(ValueError, match="threshold"):
        check_raters(np.array(right), np.array(asked), threshold)


@pytest.mark.parametrize(("every_look", "least", "most"), [(False, 0.01, 0.05), (True, 0.0, 0.05)])
def test_raters_at_the_threshold_are_named_on_few_boards(
    every_look: bool, least: float, most: float
) -> None:
    rng = np.random.default_rng(0)
    boards, raters = 1000, 10
    false = 0
    for _ in range(boards):
        asked = rng.integers(1, 60, raters)
        right = rng.binomial(asked, 0.75)
        false += int(check_raters(right, asked, 0.75, every_look=every_look).careless.any())
    error = math.sqrt(most * (1 - most) / boards)
    assert least <= false / boards <= most + 3 * error


@pytest.mark.slow
def test_looks_after_every_answer_name_few_raters_at_the_threshold() -> None:
    rng = np.random.default_rng(1)
    right = np.cumsum(rng.random((1000, 100)) < 0.75, axis=1)
    asked = np.arange(1, 101)

    def ever_named(every_look: bool) -> float:
        # A board of each rater alone: without Holm's factor.
        named = np.zeros((101, 101), bool)
        for n in asked:
            for k in range(n + 1):
                one = check_raters(np.array([k]), np.array([n]), 0.75, every_look=every_look)
                named[k, n] = one.careless[0]
        return float(named[right, asked].any(axis=1).mean())

    assert ever_named(every_look=False) > 0.12
    assert ever_named(every_look=True) < 0.05


def test_the_likelihood_ratio_averages_over_accuracies_below_the_threshold() -> None:
    def ratio(q: float) -> float:
        return (q / 0.75) ** 11 * ((1 - q) / 0.25) ** 9 / 0.75

    average = scipy.integrate.quad(ratio, 0, 0.75)[0]
    found = check_raters(np.array([11]), np.array([20]), 0.75, every_look=True)
    assert found.p_values[0] == pytest.approx(1 / average)


def test_repeats_are_compared_with_the_time_before() -> None:
    raters = np.array([0, 1, 0, 0, 1, 0, 2])
    questions = np.array([5, 5, 5, 7, 5, 5, 9])
    answers = np.array([1, 2, 1, 1, 0, 3, 1])
    alike, asked = repeated_answers(raters, questions, answers, 4)
    assert alike.tolist() == [1, 0, 0, 0]
    assert asked.tolist() == [2, 1, 0, 0]
