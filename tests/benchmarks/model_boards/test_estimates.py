"""Means, intervals and tests of models on a slice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.model_boards.estimates import (
    Tests,
    combine_tests,
    compared,
    estimates,
    holm_over_metrics,
)
from benchmarks.model_boards.rated_models import SliceScores
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.paired import t_statistics
from benchmarks.statistics.resampling import ResamplingPlan


def between(metrics: list[SliceScores]) -> Tests:
    n_models = metrics[0].sums.shape[1] if metrics else 0
    return combine_tests([t_statistics(one.by_prompt) for one in metrics], n_models)


def counts_of(n: int, seed: int = 1, draws: int = 1000) -> np.ndarray:
    return ResamplingPlan(tuple(map(str, range(n))), seed, draws).counts


def elements(rng: np.random.Generator, n: int, n_models: int) -> SliceScores:
    """One to five elements a prompt; prompts with more of them are harder."""
    sizes = rng.integers(1, 6, n)
    prompts = np.repeat(np.arange(n), sizes)
    hard = 0.1 * rng.standard_normal(n) - 0.05 * sizes
    scores = 0.7 + hard[prompts, None] + 0.2 * rng.standard_normal((len(prompts), n_models))
    return SliceScores.of_elements(scores, prompts, n)


def test_values_of_prompts_are_taken_as_they_are() -> None:
    values = np.random.default_rng(1).uniform(size=(30, 4))
    values[3, 1] = np.nan
    scores = SliceScores.of_prompts(values)
    assert scores.means == pytest.approx(np.nanmean(values, axis=0))
    np.testing.assert_array_equal(scores.by_prompt, values)
    counts = counts_of(30)
    expected = counts @ np.nan_to_num(values[:, 1]) / (counts @ np.isfinite(values[:, 1]))
    np.testing.assert_allclose(scores.resampled(counts)[1], expected)


def test_elements_weigh_alike_whatever_prompt_they_are_of() -> None:
    scores = SliceScores.of_elements(
        np.array([[1.0], [1.0], [0.0], [np.nan]]), np.array([0, 0, 1, 1]), 3
    )
    assert scores.means == pytest.approx([2 / 3])
    assert list(scores.n_prompts) == [2]
    assert np.isnan(scores.by_prompt[2, 0])


def test_pseudo_values_average_to_the_ratio() -> None:
    scores = elements(np.random.default_rng(2), 80, 3)
    np.testing.assert_allclose(np.nanmean(scores.by_prompt, axis=0), scores.means)


def test_a_ratio_test_agrees_with_the_spread_of_its_resamples() -> None:
    scores = elements(np.random.default_rng(3), 300, 2)
    drawn = scores.resampled(counts_of(300, draws=4000))
    difference = scores.by_prompt[:, 0] - scores.by_prompt[:, 1]
    error = difference.std(ddof=1) / np.sqrt(300)
    assert (drawn[0] - drawn[1]).std() == pytest.approx(error, rel=0.05)


@pytest.mark.parametrize("of_elements", [False, True])
def test_intervals_cover_the_true_mean_as_often_as_they_say(of_elements: bool) -> None:
    rng = np.random.default_rng(4)
    n, n_models, truth = 40, 8, 0.5
    covered = []
    for trial in range(60):
        if of_elements:
            sizes = rng.integers(1, 5, n)
            prompts = np.repeat(np.arange(n), sizes)
            effect = 0.2 * rng.standard_normal((n, n_models))
            noise = 0.2 * rng.standard_normal((len(prompts), n_models))
            scores = SliceScores.of_elements(truth + effect[prompts] + noise, prompts, n)
        else:
            scores = SliceScores.of_prompts(truth + rng.exponential(1.0, (n, n_models)) - 1.0)
        found = estimates(scores, counts_of(n, seed=trial, draws=500))
        covered.append((found.ci_low <= truth) & (truth <= found.ci_high))
    assert 0.90 < np.mean(covered) < 0.985


def test_a_single_prompt_has_no_interval_and_no_score_no_mean() -> None:
    scores = SliceScores.of_prompts(np.array([[0.5, np.nan]]))
    found = estimates(scores, counts_of(1))
    assert np.isnan(found.ci_low).all() and np.isnan(found.means[1])
    tests = between([scores])
    assert np.isnan(tests.p).all() and not tests.relations().any()


def test_no_model_and_no_metric_are_no_error() -> None:
    nothing = SliceScores.of_prompts(np.empty((5, 0)))
    assert estimates(nothing, counts_of(5)).means.shape == (0,)
    assert between([nothing]).relations().shape == (1, 0, 0)
    assert between([]).relations().shape == (0, 0, 0)


def test_tests_are_paired_and_corrected_over_pairs_and_metrics() -> None:
    rng = np.random.default_rng(5)
    values = [rng.standard_normal((50, 3)) + 0.3 * np.arange(3) for _ in range(2)]
    tests = between([SliceScores.of_prompts(one) for one in values])
    pairs = [(0, 1), (0, 2), (1, 2)]
    plain = [stats.ttest_rel(one[:, a], one[:, b]).pvalue for one in values for a, b in pairs]
    assert [tests.p[j, a, b] for j in range(2) for a, b in pairs] == pytest.approx(plain)
    corrected = [tests.corrected[j, a, b] for j in range(2) for a, b in pairs]
    assert corrected == pytest.approx(list(holm(plain)))
    assert (tests.relations() == -tests.relations().swapaxes(1, 2)).all()
    np.testing.assert_array_equal(tests.corrected, holm_over_metrics(tests.p))


def test_equal_models_are_told_apart_no_more_often_than_the_level() -> None:
    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(300):
        prompts = rng.standard_normal((30, 1))
        values = prompts + 0.5 * rng.standard_normal((30, 6))
        wrong += bool(between([SliceScores.of_prompts(values)]).relations().any())
    assert wrong <= 26  # binomial(300, 0.05) exceeds this once in a hundred times


@pytest.mark.parametrize("unit", [1e-170, 1e170, 1.0, 1e3])
def test_no_test_depends_on_the_unit_of_a_score(unit: float) -> None:
    """Squares of these numbers are beyond what doubles hold."""
    values = np.random.default_rng(8).normal(1.0, 0.2, (40, 3))
    found = compared(SliceScores.of_prompts(values * unit))
    expected = t_statistics(values)
    np.testing.assert_allclose(found.p, expected.p, rtol=1e-9)
    scores = SliceScores.of_prompts(values * unit)
    assert math.frexp(scores.unit)[0] == 0.5  # a power of two: no digit of a score is lost
    np.testing.assert_array_equal(scores.in_range * scores.unit, scores.by_prompt)


def test_scores_that_are_all_nothing_have_the_unit_one() -> None:
    assert SliceScores.of_prompts(np.zeros((5, 2))).unit == 1.0
    assert SliceScores.of_prompts(np.full((5, 2), np.nan)).unit == 1.0
    assert SliceScores.of_prompts(np.empty((5, 0))).unit == 1.0


@pytest.mark.parametrize("of_elements", [False, True])
def test_some_of_the_models_keep_their_numbers(of_elements: bool) -> None:
    rng = np.random.default_rng(9)
    whole = elements(rng, 25, 5) if of_elements else SliceScores.of_prompts(rng.random((25, 5)))
    places = np.array([3, 0])
    some = whole.of_models(places)
    assert some.plain == whole.plain
    np.testing.assert_allclose(some.means, whole.means[places], rtol=1e-14)
    np.testing.assert_allclose(some.by_prompt, whole.by_prompt[:, places], rtol=1e-13)
    counts = counts_of(25)
    np.testing.assert_allclose(some.resampled(counts), whole.resampled(counts)[places])


def test_models_that_share_too_few_prompts_are_not_tested() -> None:
    values = np.random.default_rng(10).normal(size=(20, 3))
    values[12:, 1] = np.nan
    p = compared(SliceScores.of_prompts(values), least=13).p
    assert np.isnan(p[0, 1])
    assert np.isnan(p[1, 2])
    assert p[0, 2] == pytest.approx(stats.ttest_rel(values[:, 0], values[:, 2]).pvalue)
    shared = compared(SliceScores.of_prompts(values), least=12).p
    assert shared[0, 1] == pytest.approx(stats.ttest_rel(values[:12, 0], values[:12, 1]).pvalue)
