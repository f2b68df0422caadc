"""The difference of two metrics: as scipy and the board have it, and defined for poor input."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.difference import Differences, Measurements, differences
from benchmarks.statistics.intervals import PerturbedPlan, acceleration, bca, contributions
from benchmarks.statistics.paired import dominance, paired_t, wilcoxon
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from benchmarks.statistics.sign_flips import flip_tests

SEED = 5


def means(values: FloatArray, precision: type = np.float32) -> Measurements:
    """What is published of means of cluster values, shape (R, C)."""
    n_rows, n = values.shape
    bootstrap = ResamplingPlan(tuple(map(str, range(n))), SEED, 400)
    plan = PerturbedPlan.of(bootstrap)
    draws = np.stack([resampled_mean(row, plan.counts) for row in values])
    resamples, without, twice = plan.split(draws)
    members = np.ones((n_rows, plan.n_blocks), bool)
    mean = values.mean(axis=1)
    shares = contributions(mean, without, twice, members)
    return Measurements(mean, resamples.astype(precision), shares, np.full(n_rows, n))


def compared(a: FloatArray, b: FloatArray) -> Differences:
    return differences(means(np.atleast_2d(a)), means(np.atleast_2d(b)), SEED)


def undefined(found: Differences, row: int = 0) -> bool:
    """Whether no test says anything of a row."""
    numbers = (
        found.flips.p_value[row],
        found.units.t[row],
        found.units.t_p[row],
        found.units.wilcoxon_p[row],
        found.effect[row],
        found.effect_low[row],
    )
    return all(math.isnan(n) for n in numbers) and found.units.n[row] == 0


@st.composite
def two_samples(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    n = draw(st.integers(3, 70))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    if draw(st.booleans()):  # heavy ties
        return rng.integers(0, 3, n) / 2.0, rng.integers(0, 3, n) / 2.0
    return rng.normal(0.2, 1.0, n), rng.normal(0.0, 1.0, n)


# Against the tests over clusters, which those on pseudo-values are for a mean. ----------------


@given(two_samples())
@settings(max_examples=30, deadline=None)
def test_for_a_mean_the_paired_tests_are_those_over_clusters(
    samples: tuple[FloatArray, FloatArray],
) -> None:
    a, b = samples
    found = compared(a, b).units
    t, w = paired_t(a, b), wilcoxon(a, b)
    assert found.n[0] == a.size
    assert found.t[0] == pytest.approx(t.statistic, rel=1e-9, abs=1e-9)
    assert found.t_p[0] == pytest.approx(t.p_value, rel=1e-8, abs=1e-12)
    assert (found.wilcoxon_w[0], found.wilcoxon_p[0]) == pytest.approx((w.statistic, w.p_value))
    larger, smaller = dominance(a, b)
    assert (found.larger[0], found.smaller[0]) == (
        round(larger * a.size),
        round(smaller * a.size),
    )
    assert found.larger[0] + found.equal[0] + found.smaller[0] == a.size


@given(two_samples())
@settings(max_examples=20, deadline=None)
def test_the_effect_is_the_standardised_mean_difference_and_its_interval_the_same_scaled(
    samples: tuple[FloatArray, FloatArray],
) -> None:
    a, b = samples
    spread = np.std(a - b, ddof=1)
    if spread == 0.0:
        return
    found = compared(a, b)
    assert found.effect[0] == pytest.approx((a - b).mean() / spread, rel=1e-9, abs=1e-9)
    assert found.effect_low[0] * spread == pytest.approx(found.interval.low[0], abs=1e-9)
    assert found.effect_high[0] * spread == pytest.approx(found.interval.high[0], abs=1e-9)


@given(two_samples())
@settings(max_examples=12, deadline=None)
def test_the_permutation_test_is_that_of_swapping_clusters(
    samples: tuple[FloatArray, FloatArray],
) -> None:
    a, b = (side[:10] for side in samples)
    sums = [abs(np.dot(signs, a - b)) for signs in product((1, -1), repeat=a.size)]
    exact = np.mean(np.array(sums) >= abs((a - b).sum()) - 1e-9)
    found = compared(a, b).flips
    assert found.exact[0]
    assert found.p_value[0] == pytest.approx(exact)


@given(two_samples())
@settings(max_examples=12, deadline=None)
def test_the_interval_is_the_one_of_the_mean_of_the_differences(
    samples: tuple[FloatArray, FloatArray],
) -> None:
    a, b = samples
    of_difference = means((a - b)[None], np.float64)
    d = (a - b) - (a - b).mean()
    expected = bca(
        of_difference.values,
        of_difference.resamples,
        acceleration(d[None]),
        n_clusters=of_difference.n_clusters,
    )
    found = compared(a, b)
    assert found.interval.low[0] == pytest.approx(expected.low[0], abs=1e-6)
    assert found.interval.high[0] == pytest.approx(expected.high[0], abs=1e-6)
    assert found.percentile.low[0] <= found.percentile.high[0]


# Against the board. ---------------------------------------------------------------------------


def test_the_p_values_are_those_of_a_board_of_many_metrics_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    board = means(rng.normal(np.linspace(0.0, 1.0, 9)[:, None], 1.0, (9, 80)))
    matrix = flip_tests(board.contributions, SEED)
    a, b = np.triu_indices(9, 1)
    found = differences(board.of(a), board.of(b), SEED)
    assert found.flips.p_value.tolist() == matrix.p_value[a, b].tolist()
    assert found.flips.n_patterns.tolist() == matrix.n_patterns[a, b].tolist()
    assert found.difference == pytest.approx(matrix.difference[a, b], abs=1e-12)


@given(st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_the_other_way_round_everything_changes_its_sign_only(number: int) -> None:
    rng = np.random.default_rng(number)
    a, b = means(rng.normal(0.3, 1.0, (3, 30))), means(rng.normal(0.0, 1.0, (3, 30)))
    one, other = differences(a, b, SEED), differences(b, a, SEED)
    assert one.flips.p_value.tolist() == other.flips.p_value.tolist()
    assert one.difference == pytest.approx(-other.difference)
    assert one.interval.low == pytest.approx(-other.interval.high, rel=1e-6)
    assert one.effect == pytest.approx(-other.effect)
    assert one.units.larger.tolist() == other.units.smaller.tolist()


def test_rows_do_not_depend_on_each_other() -> None:
    rng = np.random.default_rng(2)
    a, b = means(rng.normal(0.3, 1.0, (5, 40))), means(rng.normal(0.0, 1.0, (5, 40)))
    together = differences(a, b, SEED)
    for row in range(5):
        alone = differences(a.of(np.array([row])), b.of(np.array([row])), SEED)
        assert alone.interval.low[0] == together.interval.low[row]
        assert alone.flips.p_value[0] == together.flips.p_value[row]
        assert alone.units.t[0] == together.units.t[row]


# Slices: blocks outside them say nothing. ------------------------------------------------------


def test_blocks_outside_the_slice_are_no_units_and_those_inside_that_tie_are() -> None:
    shares = np.zeros((1, 10))
    other = shares.copy()
    shares[0, :4], other[0, :4] = [0.2, 0.1, 0.1, 0.0], [0.1, 0.1, 0.1, 0.2]
    rows = [
        Measurements(s.sum(axis=1), np.empty((1, 0)), s, np.array([6])) for s in (shares, other)
    ]
    found = differences(rows[0], rows[1], SEED).units
    assert (found.n[0], found.larger[0], found.equal[0], found.smaller[0]) == (6, 1, 4, 1)


def test_where_blocks_hold_many_clusters_there_are_as_many_units_as_blocks() -> None:
    rng = np.random.default_rng(3)
    a, b = (means(rng.normal(m, 1.0, (1, 600))) for m in (0.3, 0.0))
    found = differences(a, b, SEED)
    assert found.units.n[0] == 250
    assert found.difference[0] == pytest.approx(a.values[0] - b.values[0])


# Poor input. ----------------------------------------------------------------------------------


def test_equal_metrics_differ_by_nothing_with_certainty() -> None:
    values = np.random.default_rng(4).normal(0.0, 1.0, 20)
    found = compared(values, values)
    assert found.difference[0] == 0.0
    assert (found.interval.low[0], found.interval.high[0]) == (0.0, 0.0)
    assert found.flips.p_value[0] == found.units.t_p[0] == found.units.wilcoxon_p[0] == 1.0
    assert (found.effect[0], found.effect_low[0], found.effect_high[0]) == (0.0, 0.0, 0.0)
    assert (found.units.larger[0], found.units.equal[0], found.units.smaller[0]) == (0, 20, 0)


def test_a_difference_that_is_the_same_everywhere_has_no_finite_effect() -> None:
    values = np.random.default_rng(4).normal(0.0, 1.0, 20)
    found = compared(values + 0.5, values)
    assert found.units.t[0] == math.inf
    assert found.units.t_p[0] == 0.0
    assert found.effect[0] == math.inf
    assert math.isnan(found.effect_low[0])
    assert found.interval.low[0] == pytest.approx(0.5, abs=1e-6)
    assert found.flips.p_value[0] < 1e-4


def test_an_undefined_value_leaves_everything_undefined() -> None:
    a, b = (means(np.random.default_rng(n).normal(0.0, 1.0, (2, 20))) for n in (1, 2))
    a.values[0] = math.nan
    found = differences(a, b, SEED)
    assert math.isnan(found.difference[0])
    assert math.isnan(found.interval.low[0])
    assert math.isnan(found.percentile.high[0])
    assert undefined(found)
    assert not undefined(found, 1)


@pytest.mark.parametrize("blocks", [0, 20])
def test_without_contributions_there_is_an_interval_but_no_test(blocks: int) -> None:
    a, b = (
        Measurements(m.values, m.resamples, np.full((1, blocks), np.nan), m.n_clusters)
        for m in (means(np.random.default_rng(n).normal(0.0, 1.0, (1, 20))) for n in (1, 2))
    )
    found = differences(a, b, SEED)
    assert undefined(found)
    tail = stats.norm.cdf(math.sqrt(20 / 19) * stats.t.ppf(0.025, 19))
    drawn = a.resamples[0].astype(float) - b.resamples[0]
    expanded = np.quantile(drawn, [tail, 1.0 - tail])
    assert [found.interval.low[0], found.interval.high[0]] == pytest.approx(expanded)
    assert found.interval.low[0] < found.percentile.low[0]
    assert not found.interval.defined[0]


def test_without_resamples_there_are_tests_but_no_interval() -> None:
    a, b = (
        Measurements(m.values, np.empty((1, 0)), m.contributions, m.n_clusters)
        for m in (means(np.random.default_rng(n).normal(0.0, 1.0, (1, 20))) for n in (1, 2))
    )
    found = differences(a, b, SEED)
    assert math.isnan(found.interval.low[0])
    assert math.isnan(found.effect_low[0])
    assert found.effect[0] == pytest.approx(found.units.t[0] / math.sqrt(20))
    assert 0.0 < found.flips.p_value[0] <= 1.0


def test_one_cluster_is_too_few_for_a_test() -> None:
    assert undefined(compared(np.array([1.0]), np.array([0.0])))


def test_no_rows_give_no_rows() -> None:
    nothing = Measurements(np.empty(0), np.empty((0, 5)), np.empty((0, 4)), np.empty(0, int))
    assert differences(nothing, nothing, SEED).difference.size == 0


def test_measures_of_different_plans_are_refused() -> None:
    a, b = means(np.ones((1, 5))), means(np.ones((1, 6)))
    with pytest.raises(ValueError, match="different plans"):
        differences(a, b, SEED)
    with pytest.raises(ValueError, match="same rows"):
        Measurements(np.ones(2), np.ones((1, 3)), np.ones((2, 3)), np.ones(2, int))


def test_resamples_of_single_precision_are_not_parted_from_the_value_they_equal() -> None:
    """Tied in almost every resample: z0 must be that of equal values, not of rounding."""
    a = means(np.repeat([[0.1, 0.7]], 10, axis=0).reshape(1, -1))
    b = Measurements(a.values - 0.03, a.resamples - np.float32(0.03), a.contributions, a.n_clusters)
    found = differences(a, b, SEED)
    assert found.interval.low[0] == pytest.approx(0.03, abs=1e-7)
    assert found.interval.high[0] == pytest.approx(0.03, abs=1e-7)
