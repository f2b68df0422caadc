"""What each cluster adds to a value: contributions of means and of any other measure."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics import correlation
from benchmarks.statistics.influence import (
    MAX_BLOCKS,
    PerturbedPlan,
    acceleration,
    contributions,
    influence,
)
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean

Resampled = Callable[[FloatArray, FloatArray, FloatArray, IntArray], FloatArray]
RESAMPLED: dict[str, Resampled] = {
    "pearson": correlation.resampled_pearson,
    "spearman": correlation.resampled_spearman,
    "kendall": correlation.resampled_kendall,
}
PLAIN = {
    "pearson": correlation.pearson,
    "spearman": correlation.spearman,
    "kendall": correlation.kendall,
}


def plan_of(n_clusters: int, most_blocks: int = MAX_BLOCKS, n_resamples: int = 5) -> PerturbedPlan:
    names = tuple(map(str, range(n_clusters)))
    return PerturbedPlan.of(ResamplingPlan(names, 3, n_resamples), most_blocks)


def all_of(plan: PerturbedPlan, rows: int = 1) -> np.ndarray:
    return np.ones((rows, plan.n_blocks), bool)


def shares_of(value: float, draws: FloatArray, plan: PerturbedPlan) -> FloatArray:
    _, without, twice = plan.split(draws[None])
    found: FloatArray = contributions(np.array([value]), without, twice, all_of(plan))[0]
    return found


def clustered(
    n_clusters: int, levels: int | None = None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Scores, gold and clusters of 1 to 4 items."""
    rng = np.random.default_rng(n_clusters)
    clusters = np.repeat(np.arange(n_clusters), rng.integers(1, 5, n_clusters))
    gold = rng.normal(size=n_clusters)[clusters] + rng.normal(size=clusters.size)
    scores = gold + rng.normal(size=clusters.size)
    return (np.round(scores), np.round(gold), clusters) if levels else (scores, gold, clusters)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=40))
@settings(deadline=None, max_examples=60)
def test_contributions_to_a_mean_are_the_cluster_values_over_their_number(
    values: list[float],
) -> None:
    v = np.array(values)
    plan = plan_of(v.size)
    shares = shares_of(float(v.mean()), resampled_mean(v, plan.counts), plan)
    np.testing.assert_allclose(shares, v / v.size, rtol=0, atol=1e-12 * max(1.0, np.abs(v).max()))


@pytest.mark.parametrize("most_blocks", [MAX_BLOCKS, 7])
@pytest.mark.parametrize("levels", [None, 5])
@pytest.mark.parametrize("measure", list(RESAMPLED))
def test_contributions_add_up_to_the_value_of_any_measure(
    measure: str, levels: int | None, most_blocks: int
) -> None:
    scores, gold, clusters = clustered(30, levels)
    plan = plan_of(30, most_blocks)
    value = PLAIN[measure](scores, gold)
    shares = shares_of(value, RESAMPLED[measure](scores, gold, plan.counts, clusters), plan)
    assert shares.shape == (min(30, most_blocks),)
    assert shares.sum() == pytest.approx(value, abs=1e-12)


def test_more_clusters_than_blocks_add_up_too() -> None:
    scores, gold, clusters = clustered(MAX_BLOCKS + 61)
    plan = plan_of(MAX_BLOCKS + 61)
    assert plan.n_blocks == MAX_BLOCKS
    value = PLAIN["kendall"](scores, gold)
    shares = shares_of(value, RESAMPLED["kendall"](scores, gold, plan.counts, clusters), plan)
    assert shares.sum() == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("measure", list(RESAMPLED))
def test_the_influence_is_half_the_difference_of_samples_with_a_cluster_doubled_and_dropped(
    measure: str,
) -> None:
    """Physically repeated items and the plain coefficient: nothing of the plan is used."""
    scores, gold, clusters = clustered(12, levels=5)
    plan = plan_of(12)
    value = PLAIN[measure](scores, gold)
    shares = shares_of(value, RESAMPLED[measure](scores, gold, plan.counts, clusters), plan)
    moved = np.empty(12)
    for c in range(12):
        twice = np.concatenate([np.arange(clusters.size), np.flatnonzero(clusters == c)])
        without = np.flatnonzero(clusters != c)
        ends = [PLAIN[measure](scores[items], gold[items]) for items in (twice, without)]
        moved[c] = (ends[0] - ends[1]) / 2.0 * (1.0 - 1.0 / 12**2)
    np.testing.assert_allclose(shares, value / 12 + moved - moved.mean(), rtol=0, atol=1e-12)


def test_pseudo_values_follow_the_numerical_derivative_by_the_weight_of_a_cluster() -> None:
    scores, gold, clusters = clustered(200)
    plan = plan_of(200)
    value = correlation.pearson(scores, gold)
    draws = correlation.resampled_pearson(scores, gold, plan.counts, clusters)
    moved = shares_of(value, draws, plan) - value / 200

    def weighted(c: int, step: float) -> float:
        w = np.where(clusters == c, 1.0 + step, 1.0)
        covariance = np.cov(scores, gold, aweights=w, ddof=0)
        return float(covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))

    slope = np.array([weighted(c, 1e-4) - weighted(c, -1e-4) for c in range(200)]) / 2e-4
    np.testing.assert_allclose(moved, slope - slope.mean(), rtol=0, atol=2e-3 * np.abs(slope).max())


def test_the_spread_of_contributions_is_the_standard_error_of_a_mean() -> None:
    v = np.random.default_rng(1).exponential(size=50)
    plan = plan_of(50)
    value = float(v.mean())
    shares = shares_of(value, resampled_mean(v, plan.counts), plan)[None]
    moved = influence(shares, np.array([value]), all_of(plan))
    assert math.sqrt(np.square(moved).sum()) == pytest.approx(v.std() / math.sqrt(50), rel=1e-12)


def test_clusters_outside_a_slice_have_no_share_but_may_have_an_influence() -> None:
    plan = plan_of(6)
    members = np.array([[True, True, True, False, False, False]])
    value = np.array([0.6])
    without = np.array([[0.5, 0.6, 0.7, 0.6, 0.55, 0.6]])
    twice = np.array([[0.7, 0.6, 0.5, 0.6, 0.65, 0.6]])
    shares = contributions(value, without, twice, members)
    assert shares.sum() == pytest.approx(0.6, abs=1e-15)
    assert shares[0, 3] == shares[0, 5] == 0.0
    assert shares[0, 4] == pytest.approx(0.05 * (1 - 1 / 9))
    np.testing.assert_array_equal(
        influence(shares, value, members)[0] == shares[0], [False] * 3 + [True] * 3
    )
    assert plan.blocks_with(np.array([0, 1, 2, 2])).tolist() == members[0].tolist()


def test_the_mean_of_a_slice_leaves_nothing_to_clusters_outside() -> None:
    v = np.random.default_rng(2).normal(size=20)
    v[8:] = np.nan
    plan = plan_of(20)
    inside = plan.blocks_with(np.arange(8))[None]
    _, without, twice = plan.split(resampled_mean(v, plan.counts)[None])
    shares = contributions(np.array([np.nanmean(v)]), without, twice, inside)[0]
    np.testing.assert_allclose(shares, np.append(v[:8] / 8, np.zeros(12)), rtol=0, atol=1e-15)


def test_members_that_a_metric_gave_no_scores_share_its_value_evenly() -> None:
    """A metric that skipped clusters of a slice has the same members as all other metrics."""
    v = np.append(np.random.default_rng(2).normal(size=8), [np.nan, np.nan])
    plan = plan_of(10)
    value = float(np.nanmean(v))
    shares = shares_of(value, resampled_mean(v, plan.counts), plan)
    assert shares.sum() == pytest.approx(value, abs=1e-14)
    assert shares[8] == shares[9]


def test_a_metric_that_is_right_everywhere_has_even_shares_and_no_acceleration() -> None:
    plan = plan_of(9)
    shares = shares_of(1.0, resampled_mean(np.ones(9), plan.counts), plan)
    np.testing.assert_allclose(shares, 1 / 9, rtol=1e-15)
    moved = influence(shares[None], np.ones(1), all_of(plan))
    assert acceleration(np.where(np.abs(moved) < 1e-16, 0.0, moved)).tolist() == [0.0]


def test_a_value_that_moves_by_rounding_only_does_not_move() -> None:
    value, plan = 0.1 + 0.2, plan_of(4)
    noise = np.array([[0.0, 5e-17, -5e-17, 0.0]])
    shares = contributions(np.array([value]), 0.3 + noise, 0.3 - noise, all_of(plan))
    assert np.unique(shares).size == 1


@pytest.mark.parametrize("where", ["value", "without", "twice"])
def test_a_row_with_an_undefined_draw_has_no_contributions_and_no_acceleration(where: str) -> None:
    given_arrays = {"value": np.array([0.5]), "without": np.full((1, 3), 0.4)}
    given_arrays["twice"] = np.array([[0.6, 0.5, 0.7]])
    given_arrays[where].flat[0] = np.nan
    shares = contributions(**given_arrays, members=np.ones((1, 3), bool))
    assert np.isnan(shares).all()
    assert np.isnan(acceleration(influence(shares, np.array([0.5]), np.ones((1, 3), bool)))).all()


@pytest.mark.parametrize("n_members", [0, 1])
def test_fewer_than_two_blocks_have_no_contributions(n_members: int) -> None:
    members = np.arange(3)[None] < n_members
    shares = contributions(np.array([0.5]), np.full((1, 3), 0.4), np.full((1, 3), 0.6), members)
    assert np.isnan(shares).all()


def test_the_acceleration_of_a_mean_is_that_of_the_jackknife() -> None:
    v = np.random.default_rng(4).exponential(size=25)
    plan = plan_of(25)
    shares = shares_of(float(v.mean()), resampled_mean(v, plan.counts), plan)[None]
    found = acceleration(influence(shares, np.array([v.mean()]), all_of(plan)))[0]
    left_out = np.array([np.delete(v, i).mean() for i in range(25)])
    u = left_out.mean() - left_out
    assert found == pytest.approx((u**3).sum() / (6 * (u**2).sum() ** 1.5), rel=1e-12)
    assert found == pytest.approx(acceleration(1e-150 * (v - v.mean())[None])[0], rel=1e-9)


@given(st.integers(0, 40), st.integers(1, 12))
@settings(deadline=None)
def test_blocks_are_dealt_in_turn_left_out_once_and_taken_twice_once(
    n_clusters: int, most_blocks: int
) -> None:
    plan = plan_of(n_clusters, most_blocks)
    n_blocks = min(n_clusters, most_blocks)
    assert (plan.n_blocks, plan.n_resamples) == (n_blocks, 5 + 2 * n_blocks)
    assert plan.counts.shape == (plan.n_resamples, n_clusters)
    resamples, without, twice = plan.split(plan.counts.T)
    assert plan.bootstrap is not None
    np.testing.assert_array_equal(resamples.T, plan.bootstrap.counts)
    np.testing.assert_array_equal(without + twice, 2.0 * np.ones((n_clusters, n_blocks)))
    np.testing.assert_array_equal((without == 0).sum(axis=1), np.ones(n_clusters))
    sizes = (without == 0).sum(axis=0)
    assert n_clusters == 0 or sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(plan.blocks_with(None), np.ones(n_blocks, bool))


def test_a_perturbed_plan_is_made_from_a_plan() -> None:
    with pytest.raises(ValueError, match=r"PerturbedPlan\.of"):
        _ = PerturbedPlan(("a",), 1, 3).counts
