"""Plans of resamples, percentile and BCa intervals, and the contributions of clusters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.intervals import (
    MAX_BLOCKS,
    Intervals,
    PerturbedPlan,
    acceleration,
    bca,
    contributions,
    influence,
    percentile,
    wilson_low,
)
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean
from tests.benchmarks.statistics.references import COEFFICIENTS, plan_of

NAN = float("nan")
SKEWED = np.random.default_rng(5).exponential(size=(3, 400))
UNIFORM = np.random.default_rng(1).random((1, 100))
VALUES = np.array([0.6, 0.9, 1.3])
ACCELERATION = np.array([0.05, -0.03, 0.0])


def ends(found: Intervals) -> FloatArray:
    return np.stack([found.low, found.high], axis=1)


def of_one(
    value: float, draws: FloatArray, acceleration: float = 0.0, n_clusters: int | None = None
) -> Intervals:
    """BCa's interval of one value."""
    clusters = None if n_clusters is None else np.array([n_clusters])
    return bca(np.array([value]), draws, np.array([acceleration]), n_clusters=clusters)


# Plans
def test_the_first_draw_is_the_sample_and_positions_follow_the_ids() -> None:
    plan = ResamplingPlan(("a", "b", "c"), seed=1, n_resamples=4)
    np.testing.assert_array_equal(plan.draws, np.vstack([np.ones(3), plan.counts]))
    assert plan.draws.shape == (5, 3) and (plan.draws.sum(axis=1) == 3).all()
    found = plan.positions(["c", "a", "c"])
    assert found.tolist() == [2, 0, 2]
    assert found.dtype == plan.positions([]).dtype == np.intp
    np.testing.assert_array_equal(plan.counts_of(["c", "a", "c"]), plan.counts[:, [2, 0, 2]])
    with pytest.raises(KeyError, match="d"):
        plan.positions(["a", "d"])


def test_means_leave_out_what_is_undefined() -> None:
    values = np.array([[1.0, NAN, NAN], [3.0, 5.0, NAN]])
    np.testing.assert_array_equal(mean_of_defined(values), [2.0, 5.0, NAN])
    np.testing.assert_array_equal(mean_of_defined(values, axis=1), [1.0, 4.0])
    by_draw = resampled_mean(values, np.array([[1.0, 1.0], [2.0, 0.0]]))
    np.testing.assert_array_equal(by_draw, [[2.0, 5.0, NAN], [1.0, NAN, NAN]])


@given(st.integers(0, 40), st.integers(1, 12))
@settings(deadline=None)
def test_blocks_are_left_out_once_and_taken_twice_once(n_clusters: int, most_blocks: int) -> None:
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


# Intervals
@given(st.integers(1, 50), st.sampled_from([0.5, 0.9, 0.95, 0.99]), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_percentile_intervals_are_numpys_quantiles(n: int, level: float, seed: int) -> None:
    draws = np.random.default_rng(seed).normal(size=(4, n))
    expected = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1).T
    np.testing.assert_allclose(ends(percentile(draws, level)), expected, rtol=0, atol=1e-12)


def test_undefined_resamples_are_left_out_as_long_as_half_are_defined() -> None:
    draws = np.stack([np.arange(10.0)] * 3)
    draws[1, 5:], draws[2, 4:] = np.nan, np.nan
    for found in (percentile(draws), bca(np.full(3, 2.0), draws, np.zeros(3))):
        assert np.isnan(ends(found)).tolist() == [[False] * 2, [False] * 2, [True] * 2]
        assert found.defined.tolist() == [True, True, False]
    expected = np.quantile(np.arange(5), [0.025, 0.975])
    np.testing.assert_allclose(ends(percentile(draws))[1], expected)
    for none in (np.empty((2, 0)), np.full((2, 5), np.nan)):
        for found in (percentile(none), bca(np.zeros(2), none, np.zeros(2))):
            assert np.isnan(ends(found)).all() and not found.defined.any()
    assert percentile(np.empty((0, 5))).low.shape == (0,)
    assert bca(np.zeros(0), np.empty((0, 5)), np.zeros(0)).low.shape == (0,)


def variance(x: FloatArray, axis: int = -1) -> FloatArray:
    return np.asarray(np.var(x, axis=axis))


@pytest.mark.parametrize("statistic", [np.mean, variance, np.median])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_bca_is_scipys_bootstrap(statistic: Callable[..., FloatArray], level: float) -> None:
    x = np.random.default_rng(6).exponential(size=31)
    expected = stats.bootstrap(
        (x,), statistic, n_resamples=999, confidence_level=level, method="BCa", rng=1
    )
    left_out = np.array([statistic(np.delete(x, i)) for i in range(x.size)])
    u = left_out.mean() - left_out
    a = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    draws = expected.bootstrap_distribution[None]
    found = bca(np.array([statistic(x)]), draws, np.array([a]), level)
    assert found.defined.all()
    np.testing.assert_allclose(ends(found)[0], expected.confidence_interval, rtol=1e-10)


def test_few_clusters_expand_the_quantiles_as_hesterberg_does() -> None:
    symmetric = np.linspace(-1, 1, 20_001)[None]
    for n in (3, 10, 40):
        found = of_one(0.0, symmetric, n_clusters=n)
        z = math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1)
        assert found.high[0] == pytest.approx(2 * stats.norm.cdf(z) - 1, abs=1e-10)
        assert found.low[0] == pytest.approx(-found.high[0], abs=1e-12)


@pytest.mark.parametrize("transform", [np.exp, np.log, np.sqrt, lambda x: 3 * x - 1, np.negative])
def test_bca_ends_follow_a_monotone_transform_of_the_measure(
    transform: Callable[[FloatArray], FloatArray],
) -> None:
    """But for the straight line between two neighbouring resamples."""
    sign = -1 if transform is np.negative else 1
    plain = ends(bca(VALUES, SKEWED, ACCELERATION))
    moved = ends(bca(transform(VALUES), transform(SKEWED), sign * ACCELERATION))[:, ::sign]
    for draws, own, other in zip(np.sort(SKEWED), plain, moved, strict=True):
        right = np.searchsorted(draws, own)
        bounds = np.sort([transform(draws[right - 1]), transform(draws[right])], axis=0)
        assert ((bounds[0] <= other) & (other <= bounds[1])).all()


def test_intervals_of_fewer_clusters_hold_those_of_more() -> None:
    numbers = (2, 5, 10, 30, 100, 1000, 10**7)
    of_n = [ends(bca(VALUES, SKEWED, ACCELERATION, n_clusters=np.full(3, n))) for n in numbers]
    widths = [np.diff(each, axis=1) for each in of_n]
    assert all((wide > narrow).all() for wide, narrow in itertools.pairwise(widths))
    two = bca(VALUES, SKEWED, np.zeros(3), n_clusters=np.full(3, 2))  # nearly the whole range
    np.testing.assert_allclose(ends(two), np.stack([SKEWED.min(axis=1), SKEWED.max(axis=1)], 1))
    textbook = ends(bca(VALUES, SKEWED, ACCELERATION))
    np.testing.assert_allclose(of_n[-1], textbook, rtol=1e-5)
    for unknown in (0, 1):
        found = bca(VALUES, SKEWED, ACCELERATION, n_clusters=np.full(3, unknown))
        np.testing.assert_array_equal(ends(found), textbook)


@pytest.mark.parametrize(
    ("value", "acceleration"),
    [(-1.0, 0.0), (2.0, 0.0), (0.5, NAN), (0.5, 0.6), (0.5, -0.6)],
)
def test_without_bca_it_is_the_percentile_interval(value: float, acceleration: float) -> None:
    """A value beyond all resamples; an acceleration that is undefined or too large."""
    found = of_one(value, UNIFORM, acceleration)
    np.testing.assert_allclose(ends(found), ends(percentile(UNIFORM)), rtol=1e-14)
    few = of_one(value, UNIFORM, acceleration, n_clusters=5)
    tails = stats.norm.cdf(np.sqrt(5 / 4) * stats.t.ppf([0.025, 0.975], 4))
    np.testing.assert_allclose(ends(few)[0], np.quantile(UNIFORM[0], tails), rtol=1e-12)
    assert not (found.defined[0] or few.defined[0] or of_one(NAN, UNIFORM).defined[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_resamples_equal_to_the_value_but_for_rounding_count_as_equal(dtype: type) -> None:
    """Twelve clusters of right and wrong: a fifth of the resamples hit the value again."""
    draws = np.random.default_rng(2).binomial(12, 7 / 12, (1, 1000)) / 12
    exact = ends(bca(np.array([7 / 12]), draws, np.zeros(1)))
    rounded: np.ndarray = (draws * 0.1 * 10).astype(dtype)
    for value in (7 / 12, 7 / 12 * (1 + 4e-16), 7 / 12 * (1 - 4e-16)):
        found = ends(bca(np.array([value]), rounded, np.zeros(1)))
        np.testing.assert_allclose(found, exact, rtol=1e-6)


# Contributions
def all_of(plan: PerturbedPlan, rows: int = 1) -> np.ndarray:
    return np.ones((rows, plan.n_blocks), bool)


def shares_of(value: float, draws: FloatArray, plan: PerturbedPlan) -> FloatArray:
    _, without, twice = plan.split(draws[None])
    found: FloatArray = contributions(np.array([value]), without, twice, all_of(plan))[0]
    return found


def clustered(n_clusters: int, *, ties: bool) -> tuple[FloatArray, FloatArray, IntArray]:
    """Scores, gold and clusters of 1 to 4 items."""
    rng = np.random.default_rng(n_clusters)
    clusters = np.repeat(np.arange(n_clusters), rng.integers(1, 5, n_clusters))
    gold = rng.normal(size=n_clusters)[clusters] + rng.normal(size=clusters.size)
    scores = gold + rng.normal(size=clusters.size)
    return (np.round(scores), np.round(gold), clusters) if ties else (scores, gold, clusters)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=40))
@settings(deadline=None, max_examples=60)
def test_contributions_to_a_mean_are_values_over_their_number(values: list[float]) -> None:
    v = np.array(values)
    plan = plan_of(v.size)
    shares = shares_of(float(v.mean()), resampled_mean(v, plan.counts), plan)
    np.testing.assert_allclose(shares, v / v.size, rtol=0, atol=1e-12 * max(1.0, np.abs(v).max()))


@pytest.mark.parametrize("n_clusters", [30, MAX_BLOCKS + 61])
@pytest.mark.parametrize("most_blocks", [MAX_BLOCKS, 7])
@pytest.mark.parametrize("measure", list(COEFFICIENTS))
def test_contributions_add_up_to_any_value(measure: str, n_clusters: int, most_blocks: int) -> None:
    scores, gold, clusters = clustered(n_clusters, ties=most_blocks == 7)
    plan = plan_of(n_clusters, most_blocks)
    plain, resampled, _ = COEFFICIENTS[measure]
    shares = shares_of(plain(scores, gold), resampled(scores, gold, plan.counts, clusters), plan)
    assert shares.shape == (min(n_clusters, most_blocks),)
    assert shares.sum() == pytest.approx(plain(scores, gold), abs=1e-12)


@pytest.mark.parametrize("measure", list(COEFFICIENTS))
def test_the_influence_is_half_the_difference_of_samples_with_a_cluster_doubled_and_dropped(
    measure: str,
) -> None:
    """Physically repeated items and the plain coefficient: nothing of the plan is used."""
    scores, gold, clusters = clustered(12, ties=True)
    plan, (plain, resampled, _) = plan_of(12), COEFFICIENTS[measure]
    value = plain(scores, gold)
    shares = shares_of(value, resampled(scores, gold, plan.counts, clusters), plan)
    moved = np.empty(12)
    for c in range(12):
        twice = np.concatenate([np.arange(clusters.size), np.flatnonzero(clusters == c)])
        without = np.flatnonzero(clusters != c)
        difference = plain(scores[twice], gold[twice]) - plain(scores[without], gold[without])
        moved[c] = difference / 2.0 * (1.0 - 1.0 / 12**2)
    np.testing.assert_allclose(shares, value / 12 + moved - moved.mean(), rtol=0, atol=1e-12)


def test_of_a_mean_the_spread_is_its_standard_error_and_the_acceleration_the_jackknifes() -> None:
    v = np.random.default_rng(4).exponential(size=25)
    plan, value = plan_of(25), float(v.mean())
    shares = shares_of(value, resampled_mean(v, plan.counts), plan)[None]
    moved = influence(shares, np.array([value]), all_of(plan))
    assert math.sqrt(np.square(moved).sum()) == pytest.approx(v.std() / 5, rel=1e-12)
    left_out = np.array([np.delete(v, i).mean() for i in range(25)])
    u = left_out.mean() - left_out
    found = acceleration(moved)[0]
    assert found == pytest.approx((u**3).sum() / (6 * (u**2).sum() ** 1.5), rel=1e-12)
    assert found == pytest.approx(acceleration(1e-150 * (v - value)[None])[0], rel=1e-9)


def test_clusters_outside_a_slice_have_no_share_but_may_have_an_influence() -> None:
    plan = plan_of(6)
    members = np.array([[True, True, True, False, False, False]])
    value = np.array([0.6])
    without = np.array([[0.5, 0.6, 0.7, 0.6, 0.55, 0.6]])
    shares = contributions(value, without, 1.2 - without, members)
    assert shares.sum() == pytest.approx(0.6, abs=1e-15)
    assert shares[0, 3] == shares[0, 5] == 0.0
    assert shares[0, 4] == pytest.approx(0.05 * (1 - 1 / 9))
    moved = influence(shares, value, members)
    assert (moved == shares).tolist() == [[False] * 3 + [True] * 3]
    assert plan.blocks_with(np.array([0, 1, 2, 2])).tolist() == members[0].tolist()


def test_clusters_without_a_value_have_no_share_outside_a_slice_and_an_even_one_inside() -> None:
    """A metric that skipped clusters of a slice has the same members as all other metrics."""
    v = np.append(np.random.default_rng(2).normal(size=8), [np.nan, np.nan])
    plan, value = plan_of(10), np.array([np.nanmean(v)])
    _, without, twice = plan.split(resampled_mean(v, plan.counts)[None])
    outside = contributions(value, without, twice, plan.blocks_with(np.arange(8))[None])[0]
    np.testing.assert_allclose(outside, np.append(v[:8] / 8, [0.0, 0.0]), rtol=0, atol=1e-15)
    inside = contributions(value, without, twice, all_of(plan))[0]
    assert inside.sum() == pytest.approx(value[0], abs=1e-14)
    assert inside[8] == inside[9]


def test_a_metric_that_is_right_everywhere_has_even_shares_and_no_acceleration() -> None:
    plan = plan_of(9)
    shares = shares_of(1.0, resampled_mean(np.ones(9), plan.counts), plan)
    np.testing.assert_allclose(shares, 1 / 9, rtol=1e-15)
    moved = influence(shares[None], np.ones(1), all_of(plan))
    assert acceleration(np.where(np.abs(moved) < 1e-16, 0.0, moved)).tolist() == [0.0]
    noise = np.array([[0.0, 5e-17, -5e-17, 0.0]])  # rounding moves nothing
    rounded = contributions(np.array([0.1 + 0.2]), 0.3 + noise, 0.3 - noise, all_of(plan_of(4)))
    assert np.unique(rounded).size == 1


@pytest.mark.parametrize("why", ["value", "without", "twice", "no member", "one member"])
def test_undefined_draws_and_fewer_than_two_blocks_have_no_contributions(why: str) -> None:
    draws = {"value": [0.5], "without": [[0.4] * 3], "twice": [[0.6, 0.5, 0.7]]}
    arrays = {name: np.array(values) for name, values in draws.items()}
    if why in arrays:
        arrays[why].flat[0] = np.nan
    members = np.arange(3)[None] < {"no member": 0, "one member": 1}.get(why, 3)
    shares = contributions(**arrays, members=members)
    assert np.isnan(shares).all()
    assert np.isnan(acceleration(influence(shares, np.array([0.5]), members))).all()


@pytest.mark.parametrize(("share", "n"), [(0.0, 5), (0.5, 12), (0.8, 40), (1.0, 3)])
def test_the_lower_limit_of_a_share_is_where_the_score_test_just_rejects(
    share: float, n: int
) -> None:
    low = wilson_low(share, n)
    assert 0.0 <= low <= share
    assert share - low == pytest.approx(
        stats.norm.ppf(0.95) * math.sqrt(low * (1 - low) / n), abs=1e-12
    )
