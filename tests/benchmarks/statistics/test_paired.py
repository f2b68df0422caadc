"""Paired tests of two models or of many at once, and the difference of two metrics."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.difference import Differences, Measurements, differences
from benchmarks.statistics.intervals import PerturbedPlan, acceleration, bca, contributions
from benchmarks.statistics.paired import (
    dominance,
    paired_many,
    paired_t,
    resampled_pairs,
    wilcoxon,
)
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean
from benchmarks.statistics.sign_flips import pair_tests

NAN = math.nan
PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=40)


# Two models on the same prompts
@pytest.mark.slow
@given(PAIRS)
@settings(deadline=None, max_examples=20)
def test_t_and_wilcoxon_are_scipys_and_zeros_are_left_out(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    t, differs = paired_t(a, b), a != b
    assert paired_t(b, a).p_value == t.p_value
    if np.ptp(a - b) > 0:
        expected = stats.ttest_rel(a, b)
        assert (t.statistic, t.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    if differs.any():
        # The number of pairs chooses the method, so it is compared where none is dropped by either.
        found, expected = wilcoxon(a, b), stats.wilcoxon(a, b, zero_method="wilcox")
        assert found.statistic == expected.statistic
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
        assert found.statistic == wilcoxon(a[differs], b[differs]).statistic


@pytest.mark.parametrize(
    ("differences", "statistic", "patterns"),
    [
        ([1, 2, 3, 4, 5], 0.0, 1), ([1, 2, -3, 4, 5], 3.0, 5), ([-1, -2, 3, -4, -5], 3.0, 5),
        ([1, 1, -1, 2, 0], 2.0, 4),
    ],
)  # fmt: skip
def test_few_differences_have_the_share_of_sign_patterns_that_are_as_extreme(
    differences: list[int], statistic: float, patterns: int
) -> None:
    """Of the 2^n patterns of n differences that are not zero; counted by hand."""
    found = wilcoxon(differences, np.zeros(len(differences)))
    n = np.count_nonzero(differences)
    assert (found.statistic, found.p_value) == (statistic, 2 * patterns / 2**n)


def test_what_differs_nowhere_or_always_alike_or_hardly_exists() -> None:
    same = [3.0, 4.0, 4.5]
    for test in (paired_t, wilcoxon):
        found = test(same, same)
        assert (found.statistic, found.p_value, found.significant(0.05)) == (0.0, 1.0, False)
    assert dominance(same, same) == (0.0, 0.0)
    gain = paired_t([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    assert (gain.statistic, gain.p_value) == (math.inf, 0.0)
    assert paired_t([1.0, 2.0], [2.0, 3.0]).statistic == -math.inf
    few = paired_t([1.0], [2.0])
    assert math.isnan(few.p_value) and not few.significant(0.05)
    assert np.isnan([wilcoxon([], []).p_value, *dominance([], [])]).all()
    for refusing in (paired_t, wilcoxon, dominance):
        with pytest.raises(ValueError, match="length"):
            refusing([1.0, 2.0], [1.0])


# Many models at once
def tables(elements: st.SearchStrategy[float], **more: Any) -> st.SearchStrategy[FloatArray]:
    shape = st.tuples(st.integers(0, 70), st.integers(1, 4))
    found: st.SearchStrategy[FloatArray] = arrays(np.float64, shape, elements=elements, **more)
    return found


COARSE = tables(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, NAN]), fill=st.sampled_from([0.5, NAN]))
# Squares below the smallest number have no digits, here and in scipy.
FINE = tables(st.floats(-1e6, 1e6).map(lambda value: value if abs(value) > 1e-60 else 0.0))


def counts(n: int, n_resamples: int = 40) -> FloatArray:
    return ResamplingPlan(tuple(map(str, range(n))), seed=3, n_resamples=n_resamples).counts


def check_against_the_loop(values: FloatArray) -> None:
    found = paired_many(values)
    for a, b in product(range(values.shape[1]), repeat=2):
        both = np.isfinite(values[:, a]) & np.isfinite(values[:, b])
        x, y = values[both, a], values[both, b]
        n = int(both.sum())
        t, w = paired_t(x, y), wilcoxon(x, y)
        difference = (x - y).mean() if n else NAN
        exact = [n, len(values) - n, (x > y).sum(), (x < y).sum(), (x == y).sum()]
        names = "n", "n_missing", "wins", "losses", "ties"
        assert [getattr(found, name)[a, b] for name in names] == exact
        figures = [t.statistic, t.p_value, w.p_value, difference]
        close(
            [getattr(found, name)[a, b] for name in ("t", "t_p", "wilcoxon_p", "difference")],
            figures,
        )
        assert dominance(x, y) == pytest.approx(
            (exact[2] / n, exact[3] / n) if n else (NAN, NAN), nan_ok=True
        )
        equal = [w.statistic, dominance(x, y)[0]]
        np.testing.assert_array_equal([found.wilcoxon_w[a, b], found.dominance[a, b]], equal)
        if n > 1 and (x - y).std() > 0:
            close([found.effect[a, b]], [difference / (x - y).std(ddof=1)])


def close(found: list[float], expected: list[float]) -> None:
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10, nan_ok=True)


@pytest.mark.slow
@given(COARSE)
@settings(deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore:Precision")
def test_with_ties_zeros_and_missing_values_it_is_the_loop(values: FloatArray) -> None:
    check_against_the_loop(values)


@pytest.mark.slow
@given(FINE)
@settings(deadline=None, max_examples=40)
@pytest.mark.filterwarnings("ignore:Precision")
def test_with_any_values_it_is_the_loop(values: FloatArray) -> None:
    check_against_the_loop(values)


@pytest.mark.first_quick
@pytest.mark.parametrize("n", [0, 1, 2, 13, 14, 50, 51, 200])
def test_every_number_of_prompts_at_which_the_method_changes_is_the_loop(n: int) -> None:
    for decimals in (0, 1, 12):
        rng = np.random.default_rng(n)
        values = rng.normal(size=(n, 1)) + rng.normal(size=(n, 4))
        check_against_the_loop(np.round(values, decimals))
        values[rng.random(values.shape) < 0.2] = NAN
        check_against_the_loop(np.round(values, decimals))


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6, -1e9])
def test_models_that_hardly_differ_or_differ_widely_in_size_lose_no_digits(offset: float) -> None:
    for noise in (1e-3, 1e-6, 1e-8):
        rng = np.random.default_rng(5)
        common = rng.normal(size=(400, 1)) + offset
        check_against_the_loop(common + noise * rng.normal(size=(400, 4)))
    sizes = 10.0 ** np.arange(-6, 9, 3)
    check_against_the_loop(np.random.default_rng(6).normal(size=(300, 5)) * sizes)


def test_intervals_are_antisymmetric_and_another_model_moves_none_of_the_others() -> None:
    values = np.random.default_rng(7).normal(size=(80, 5)).round(1)
    values[np.random.default_rng(8).random(values.shape) < 0.1] = NAN
    found, few = paired_many(values, counts(80)), paired_many(values[:, :3], counts(80))
    assert (np.diag(found.effect) == 0.0).all()
    for interval in (found.difference_interval, found.effect_interval):
        np.testing.assert_array_equal(interval.low, -interval.high.T)
        assert (np.diag(interval.low) == 0.0).all()
    for name in ("t", "t_p", "difference", "wilcoxon_w", "wilcoxon_p", "wins", "effect"):
        np.testing.assert_allclose(getattr(found, name)[:3, :3], getattr(few, name), rtol=1e-12)
    low = found.effect_interval.low[:3, :3]
    np.testing.assert_allclose(low, few.effect_interval.low, rtol=1e-12)


def test_a_constant_gain_has_an_infinite_effect_without_an_interval() -> None:
    found = paired_many(np.array([[2.0, 1.0], [3.0, 2.0], [4.0, 3.0]]), counts(3))
    assert (found.t[0, 1], found.t_p[0, 1], found.effect[0, 1]) == (math.inf, 0.0, math.inf)
    assert (found.difference_interval.low[0, 1], found.difference_interval.high[0, 1]) == (1, 1)
    assert math.isnan(found.effect_interval.low[0, 1])
    below_rounding = np.array([[1.0, 1e-40], [1.0, 0.0], [1.0, 3e-40]])
    assert paired_many(below_rounding).t[0, 1] == paired_t(*below_rounding.T).statistic == math.inf


def resampled_by_hand(d: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    drawn = np.repeat(d, weights.astype(int))
    drawn = drawn[np.isfinite(drawn)]
    if drawn.size == 0:
        return NAN, NAN
    mean = float(drawn.mean())
    if drawn.size < 2 or (np.ptp(drawn) == 0 and drawn[0] != 0):
        return mean, NAN
    return mean, mean / float(drawn.std(ddof=1)) if np.ptp(drawn) > 0 else 0.0


@given(st.lists(st.sampled_from([0.0, 0.1, -0.3, 2.0, NAN]), min_size=1, max_size=12))
@settings(deadline=None)
def test_each_resample_is_the_mean_and_d_z_of_the_repeated_prompts(values: list[float]) -> None:
    d = np.array(values)
    weights = counts(d.size)
    mean, effect = resampled_pairs(d[:, None], weights)
    for b, drawn in enumerate(weights):
        by_hand = resampled_by_hand(d, drawn)
        assert mean[b, 0] == pytest.approx(by_hand[0], nan_ok=True, abs=1e-12)
        assert effect[b, 0] == pytest.approx(by_hand[1], nan_ok=True, abs=1e-9)


def test_intervals_are_bca_with_the_acceleration_of_the_delete_one_values() -> None:
    values = np.random.default_rng(10).exponential((1.5, 0.5), (60, 2))
    weights = counts(60, 500)
    found = paired_many(values, weights, level=0.9)
    d = values[:, 0] - values[:, 1]
    resamples = np.array([resampled_by_hand(d, drawn) for drawn in weights]).T
    deleted = np.array([resampled_by_hand(d, drawn) for drawn in 1.0 - np.eye(60)]).T
    # Delete-one values and the delta method are equal for the mean, close for d_z.
    for drawn, left_out, interval, value, near in (
        (resamples[0], deleted[0], found.difference_interval, found.difference[0, 1], 1e-9),
        (resamples[1], deleted[1], found.effect_interval, found.effect[0, 1], 0.02),
    ):
        moved = left_out.mean() - left_out
        a = (moved**3).sum() / (6 * (moved**2).sum() ** 1.5)
        z0 = stats.norm.ppf((drawn < value).mean())
        z = z0 + np.sqrt(60 / 59) * stats.t.ppf([0.05, 0.95], 59)  # expanded
        ends = np.quantile(drawn, stats.norm.cdf(z0 + z / (1 - a * z)))
        assert (interval.low[0, 1], interval.high[0, 1]) == pytest.approx(tuple(ends), abs=near)


def test_where_nothing_can_be_compared_nothing_is_said() -> None:
    for values, weights in ((np.ones((5, 2)), None), (np.ones((1, 2)), np.ones((3, 1)))):
        bare = paired_many(values, weights)
        assert np.isnan([bare.difference_interval.low, bare.effect_interval.high]).all()
    assert paired_many(np.empty((4, 0)), counts(4)).t.shape == (0, 0)
    empty = paired_many(np.empty((0, 2)), counts(0))
    assert np.isnan([empty.t, empty.effect_interval.low, empty.dominance]).all()
    apart = np.random.default_rng(12).normal(size=(30, 3))
    apart[:15, 0], apart[15:, 1] = NAN, NAN
    found = paired_many(apart, counts(30))
    assert found.n.tolist() == [[15, 0, 15], [0, 15, 15], [15, 15, 30]]
    assert np.isnan([found.t_p[0, 1], found.effect_interval.low[0, 1]]).all()
    assert found.difference_interval.low[0, 2] < found.difference[0, 2]


@pytest.mark.parametrize(
    ("values", "weights", "reason"),
    [([1.0, 2.0], None, "shape"), ([[1.0, math.inf]], None, "shape"), (np.ones((4, 2)), 5, "of 4")],
)
def test_misfits_of_many_are_refused(values: object, weights: int | None, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        paired_many(np.asarray(values), weights and counts(weights))


# The difference of two metrics ----------------------------------------------------------------

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


def drawn_means(
    shape: tuple[int, int], shift: float = 0.0, seed: int = 1
) -> tuple[Measurements, Measurements]:
    """Two measurements of random cluster values; the first is larger by the shift."""
    rng = np.random.default_rng(seed)
    return means(rng.normal(shift, 1.0, shape)), means(rng.normal(0.0, 1.0, shape))


def untested(found: Differences, row: int = 0) -> bool:
    """Whether no test says anything of a row."""
    units = found.units
    tests = found.flips.p_value, units.t, units.t_p, units.wilcoxon_p, found.effect
    return all(math.isnan(n[row]) for n in (*tests, found.effect_low)) and units.n[row] == 0


@st.composite
def two_samples(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    n = draw(st.integers(3, 70))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    if draw(st.booleans()):  # heavy ties
        return rng.integers(0, 3, n) / 2.0, rng.integers(0, 3, n) / 2.0
    return rng.normal(0.2, 1.0, n), rng.normal(0.0, 1.0, n)


@given(two_samples())
@settings(max_examples=30, deadline=None)
def test_of_a_mean_all_tests_are_over_clusters(samples: tuple[FloatArray, FloatArray]) -> None:
    a, b = samples
    found = compared(a, b)
    units, t, w = found.units, paired_t(a, b), wilcoxon(a, b)
    assert (units.t[0], units.t_p[0]) == pytest.approx((t.statistic, t.p_value), rel=1e-8, abs=1e-9)
    assert (units.wilcoxon_w[0], units.wilcoxon_p[0]) == pytest.approx((w.statistic, w.p_value))
    counted = (units.n[0], units.larger[0], units.equal[0], units.smaller[0])
    assert counted == (a.size, (a > b).sum(), (a == b).sum(), (a < b).sum())
    of_difference = means((a - b)[None], np.float64)
    d, spread = (a - b) - (a - b).mean(), np.std(a - b, ddof=1)
    expected = bca(
        of_difference.values,
        of_difference.resamples,
        acceleration(d[None]),
        n_clusters=of_difference.n_clusters,
    )
    ends = found.interval.low[0], found.interval.high[0]
    assert ends == pytest.approx((expected.low[0], expected.high[0]), abs=1e-6)
    assert found.percentile.low[0] <= found.percentile.high[0]
    if spread > 0.0:  # the standardised mean difference, and its interval the same scaled
        scaled = [d * spread for d in (found.effect[0], found.effect_low[0], found.effect_high[0])]
        assert scaled == pytest.approx([(a - b).mean(), *ends], rel=1e-9, abs=1e-9)
    a, b = a[:10], b[:10]
    sums = [abs(np.dot(signs, a - b)) for signs in product((1, -1), repeat=a.size)]
    exact = np.mean(np.array(sums) >= abs((a - b).sum()) - 1e-9)
    flips = compared(a, b).flips
    assert (flips.exact[0], flips.p_value[0]) == (True, pytest.approx(exact))


def test_the_p_values_are_those_of_a_board_of_many_metrics_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    board = means(rng.normal(np.linspace(0.0, 1.0, 9)[:, None], 1.0, (9, 80)))
    a, b = np.triu_indices(9, 1)
    every = pair_tests(board.contributions, a, b, SEED)
    found = differences(board.of(a), board.of(b), SEED)
    assert found.flips.p_value.tolist() == every.p_value.tolist()
    assert found.flips.n_patterns.tolist() == every.n_patterns.tolist()
    assert found.difference == pytest.approx(board.values[a] - board.values[b], abs=1e-12)


def test_the_other_way_round_only_signs_change_and_rows_do_not_depend_on_each_other() -> None:
    a, b = drawn_means((5, 40), 0.3)
    one, other = differences(a, b, SEED), differences(b, a, SEED)
    assert one.flips.p_value.tolist() == other.flips.p_value.tolist()
    assert one.difference == pytest.approx(-other.difference)
    assert one.interval.low == pytest.approx(-other.interval.high, rel=1e-6)
    assert one.effect == pytest.approx(-other.effect)
    assert one.units.larger.tolist() == other.units.smaller.tolist()
    for row in range(5):
        only = np.array([row])
        alone = differences(a.of(only), b.of(only), SEED)
        numbers = ((f.interval.low, f.flips.p_value, f.units.t) for f in (alone, one))
        assert [n[0] for n in next(numbers)] == [n[row] for n in next(numbers)]


def test_blocks_outside_the_slice_are_no_units_and_those_inside_that_tie_are() -> None:
    shares = np.zeros((2, 10))
    shares[:, :4] = [[0.2, 0.1, 0.1, 0.0], [0.1, 0.1, 0.1, 0.2]]
    rows = [
        Measurements(s.sum(axis=1), np.empty((1, 0)), s, np.array([6])) for s in shares[:, None]
    ]
    found = differences(rows[0], rows[1], SEED).units
    assert (found.n[0], found.larger[0], found.equal[0], found.smaller[0]) == (6, 1, 4, 1)
    assert differences(*drawn_means((1, 600)), SEED).units.n[0] == 250  # as many as blocks


def test_no_difference_and_the_same_one_everywhere() -> None:
    values = np.random.default_rng(4).normal(0.0, 1.0, 20)
    equal, apart = compared(values, values), compared(values + 0.5, values)
    units = equal.units
    assert (equal.difference[0], equal.interval.low[0], equal.interval.high[0]) == (0.0,) * 3
    assert (equal.effect[0], equal.effect_low[0], equal.effect_high[0]) == (0.0,) * 3
    assert equal.flips.p_value[0] == units.t_p[0] == units.wilcoxon_p[0] == 1.0
    assert (units.larger[0], units.equal[0], units.smaller[0]) == (0, 20, 0)
    assert (apart.units.t[0], apart.units.t_p[0], apart.effect[0]) == (math.inf, 0.0, math.inf)
    assert math.isnan(apart.effect_low[0])
    assert apart.interval.low[0] == pytest.approx(0.5, abs=1e-6)
    assert apart.flips.p_value[0] < 1e-4


def test_an_undefined_value_leaves_its_row_undefined() -> None:
    a, b = drawn_means((2, 20))
    a.values[0] = math.nan
    found = differences(a, b, SEED)
    ends = found.difference[0], found.interval.low[0], found.percentile.high[0]
    assert np.isnan(ends).all()
    assert (untested(found), untested(found, 1)) == (True, False)
    assert untested(compared(np.array([1.0]), np.array([0.0])))  # of one cluster
    nothing = Measurements(np.empty(0), np.empty((0, 5)), np.empty((0, 4)), np.empty(0, int))
    assert differences(nothing, nothing, SEED).difference.size == 0


@pytest.mark.parametrize("blocks", [0, 20])
def test_without_contributions_there_is_an_interval_but_no_test(blocks: int) -> None:
    a, b = (
        Measurements(m.values, m.resamples, np.full((1, blocks), np.nan), m.n_clusters)
        for m in drawn_means((1, 20))
    )
    found = differences(a, b, SEED)
    assert untested(found)
    tail = stats.norm.cdf(math.sqrt(20 / 19) * stats.t.ppf(0.025, 19))
    expanded = np.quantile(a.resamples[0].astype(float) - b.resamples[0], [tail, 1.0 - tail])
    assert [found.interval.low[0], found.interval.high[0]] == pytest.approx(expanded)
    assert found.interval.low[0] < found.percentile.low[0]
    assert not found.interval.defined[0]


def test_without_resamples_there_are_tests_but_no_interval() -> None:
    a, b = (
        Measurements(m.values, np.empty((1, 0)), m.contributions, m.n_clusters)
        for m in drawn_means((1, 20))
    )
    found = differences(a, b, SEED)
    assert np.isnan([found.interval.low[0], found.effect_low[0]]).all()
    assert found.effect[0] == pytest.approx(found.units.t[0] / math.sqrt(20))
    assert 0.0 < found.flips.p_value[0] <= 1.0


def test_measures_of_different_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="plans"):
        differences(means(np.ones((1, 5))), means(np.ones((1, 6))), SEED)
    with pytest.raises(ValueError, match="rows"):
        Measurements(np.ones(2), np.ones((1, 3)), np.ones((2, 3)), np.ones(2, int))


def test_resamples_of_single_precision_are_not_parted_from_the_value_they_equal() -> None:
    """Tied in almost every resample: z0 must be that of equal values, not of rounding."""
    a = means(np.repeat([[0.1, 0.7]], 10, axis=0).reshape(1, -1))
    b = Measurements(a.values - 0.03, a.resamples - np.float32(0.03), a.contributions, a.n_clusters)
    found = differences(a, b, SEED)
    assert found.interval.low[0] == pytest.approx(0.03, abs=1e-7)
    assert found.interval.high[0] == pytest.approx(0.03, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("skewed", [False, True])
def test_intervals_of_paired_models_hold_the_truth_about_as_often_as_they_say(
    skewed: bool,
) -> None:
    held, trials = np.zeros(2), 600
    rng = np.random.default_rng(11)
    weights = counts(120, 1000)
    for _ in range(trials // 30):
        d = rng.exponential(1.0, (120, 30)) - 0.6 if skewed else rng.normal(0.4, 1.0, (120, 30))
        # One common opponent at zero: the pairs in the last column are independent.
        found = paired_many(np.column_stack([d, np.zeros(120)]), weights)
        for which, interval in enumerate((found.difference_interval, found.effect_interval)):
            low, high = interval.low[:-1, -1], interval.high[:-1, -1]
            held[which] += ((low < 0.4) & (high > 0.4)).sum()
    # Three standard errors of 95 % in 600 trials are 0.027.
    assert (np.abs(held / trials - 0.95) < 0.03).all(), held / trials
