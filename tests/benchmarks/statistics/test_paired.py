"""Paired tests: of two models on the same prompts, and of each two of many at once."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.genai_bench.protocol import CARD_1600, GenAiBench
from benchmarks.statistics.paired import (
    PairedMany,
    dominance,
    paired_many,
    paired_t,
    resampled_pairs,
    wilcoxon,
)
from benchmarks.statistics.resampling import ResamplingPlan

LEVELS = st.integers(0, 4)
PAIRS = st.lists(st.tuples(LEVELS, LEVELS), min_size=3, max_size=40)


@given(PAIRS)
@settings(deadline=None)
def test_the_t_test_is_scipys(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    found = paired_t(a, b)
    if np.ptp(a - b) > 0:
        expected = stats.ttest_rel(a, b)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p_value == pytest.approx(expected.pvalue)
    assert paired_t(b, a).p_value == found.p_value


@pytest.mark.slow
@given(PAIRS)
@settings(deadline=None)
def test_wilcoxon_leaves_zeros_out(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    differs = a != b
    if not differs.any():
        return
    # The number of pairs chooses the method, so it is compared where none is dropped by either.
    found, expected = wilcoxon(a, b), stats.wilcoxon(a, b, zero_method="wilcox")
    assert found.statistic == expected.statistic
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.statistic == wilcoxon(a[differs], b[differs]).statistic


@given(PAIRS)
def test_dominance_counts_strict_wins_only(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, float).T
    wins, losses = dominance(a, b)
    assert wins == sum(x > y for x, y in pairs) / len(pairs)
    assert losses == sum(x < y for x, y in pairs) / len(pairs)
    assert wins + losses <= 1.0


def test_models_that_are_equal_everywhere_differ_in_nothing() -> None:
    same = [3.0, 4.0, 4.5]
    for test in (paired_t, wilcoxon):
        found = test(same, same)
        assert (found.statistic, found.p_value) == (0.0, 1.0)
        assert not found.significant(0.05)
    assert dominance(same, same) == (0.0, 0.0)


def test_a_constant_gain_is_as_significant_as_can_be() -> None:
    found = paired_t([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    assert (found.statistic, found.p_value) == (math.inf, 0.0)
    assert paired_t([1.0, 2.0], [2.0, 3.0]).statistic == -math.inf


def test_too_few_prompts_make_no_test() -> None:
    assert math.isnan(paired_t([1.0], [2.0]).p_value)
    assert not paired_t([1.0], [2.0]).significant(0.05)
    assert math.isnan(wilcoxon([], []).p_value)
    assert all(map(math.isnan, dominance([], [])))


def test_samples_of_different_length_are_refused() -> None:
    for test in (paired_t, wilcoxon, dominance):
        with pytest.raises(ValueError, match="one length"):
            test([1.0, 2.0], [1.0])


NAN = math.nan
coarse = arrays(
    np.float64,
    st.tuples(st.integers(0, 70), st.integers(1, 4)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, NAN]),
    fill=st.sampled_from([0.5, NAN]),
)
fine = arrays(
    np.float64,
    st.tuples(st.integers(0, 70), st.integers(1, 4)),
    # Squares below the smallest number have no digits, here and in scipy.
    elements=st.floats(-1e6, 1e6).map(lambda value: value if abs(value) > 1e-60 else 0.0),
)


def counts(n: int, n_resamples: int = 40) -> np.ndarray:
    return ResamplingPlan(tuple(map(str, range(n))), seed=3, n_resamples=n_resamples).counts


def check_against_the_loop(values: np.ndarray) -> None:
    found = paired_many(values)
    for a in range(values.shape[1]):
        for b in range(values.shape[1]):
            both = np.isfinite(values[:, a]) & np.isfinite(values[:, b])
            x, y = values[both, a], values[both, b]
            n = int(both.sum())
            assert (found.n[a, b], found.n_missing[a, b]) == (n, len(values) - n)
            t, w = paired_t(x, y), wilcoxon(x, y)
            close(found.t[a, b], t.statistic)
            close(found.t_p[a, b], t.p_value)
            assert same(found.wilcoxon_w[a, b], w.statistic)
            close(found.wilcoxon_p[a, b], w.p_value)
            assert found.wins[a, b] == (x > y).sum()
            assert found.losses[a, b] == (x < y).sum()
            assert found.ties[a, b] == (x == y).sum()
            assert same(found.dominance[a, b], dominance(x, y)[0])
            close(found.difference[a, b], (x - y).mean() if n else NAN)
            if n > 1 and (x - y).std() > 0:
                close(found.effect[a, b], (x - y).mean() / (x - y).std(ddof=1))


def same(x: float, y: float) -> bool:
    return bool(x == y) or (math.isnan(x) and math.isnan(y))


def close(x: float, y: float) -> None:
    assert x == pytest.approx(y, rel=1e-10, abs=1e-10, nan_ok=True)


@pytest.mark.slow
@given(coarse)
@settings(deadline=None, max_examples=150)
@pytest.mark.filterwarnings("ignore:Precision loss")
def test_with_ties_zeros_and_missing_values_it_is_the_loop(values: np.ndarray) -> None:
    check_against_the_loop(values)


@given(fine)
@settings(deadline=None, max_examples=100)
@pytest.mark.filterwarnings("ignore:Precision loss")
def test_with_any_values_it_is_the_loop(values: np.ndarray) -> None:
    check_against_the_loop(values)


@pytest.mark.parametrize("n", [0, 1, 2, 13, 14, 50, 51, 200])
@pytest.mark.parametrize("decimals", [0, 1, 12])
def test_every_number_of_prompts_at_which_the_method_changes_is_the_loop(
    n: int, decimals: int
) -> None:
    rng = np.random.default_rng(n)
    values = rng.normal(size=(n, 1)) + rng.normal(size=(n, 4))
    check_against_the_loop(np.round(values, decimals))
    values[rng.random(values.shape) < 0.2] = NAN
    check_against_the_loop(np.round(values, decimals))


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6, -1e9])
@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-8])
def test_models_that_hardly_differ_lose_no_digits(offset: float, noise: float) -> None:
    rng = np.random.default_rng(5)
    common = rng.normal(size=(400, 1)) + offset
    check_against_the_loop(common + noise * rng.normal(size=(400, 4)))


def test_what_varies_below_the_rounding_of_the_difference_is_constant() -> None:
    values = np.array([[1.0, 1e-40], [1.0, 0.0], [1.0, 3e-40]])
    assert paired_many(values).t[0, 1] == paired_t(*values.T).statistic == math.inf


def test_values_of_very_different_size_lose_no_digits() -> None:
    rng = np.random.default_rng(6)
    check_against_the_loop(rng.normal(size=(300, 5)) * 10.0 ** np.arange(-6, 9, 3))


def test_matrices_are_antisymmetric_or_symmetric() -> None:
    rng = np.random.default_rng(7)
    values = rng.normal(size=(80, 5)).round(1)
    values[rng.random(values.shape) < 0.1] = NAN
    found = paired_many(values, counts(80))
    for name in ("difference", "t", "effect"):
        matrix = getattr(found, name)
        np.testing.assert_array_equal(matrix, -matrix.T, err_msg=name)
    for name in ("n", "n_missing", "t_p", "wilcoxon_w", "wilcoxon_p", "ties"):
        matrix = getattr(found, name)
        np.testing.assert_array_equal(matrix, matrix.T, err_msg=name)
    for interval in (found.difference_interval, found.effect_interval):
        np.testing.assert_array_equal(interval.low, -interval.high.T)
    np.testing.assert_array_equal(found.wins + found.losses + found.ties, found.n)


def test_a_model_against_itself_differs_in_nothing() -> None:
    found = paired_many(np.random.default_rng(8).normal(size=(60, 2)), counts(60))
    of_first = [found.difference, found.t, found.t_p, found.wilcoxon_p, found.effect]
    assert [matrix[0, 0] for matrix in of_first] == [0.0, 0.0, 1.0, 1.0, 0.0]
    assert (found.wins[0, 0], found.ties[0, 0]) == (0, 60)
    assert (found.difference_interval.low[0, 0], found.effect_interval.high[0, 0]) == (0.0, 0.0)


def test_another_model_moves_none_of_the_others() -> None:
    values = np.random.default_rng(9).normal(size=(100, 4)).round(2)
    few, many = paired_many(values[:, :3], counts(100)), paired_many(values, counts(100))
    for name in ("t", "t_p", "difference", "wilcoxon_w", "wilcoxon_p", "wins", "effect"):
        np.testing.assert_allclose(
            getattr(many, name)[:3, :3], getattr(few, name), rtol=1e-12, err_msg=name
        )
    np.testing.assert_allclose(
        many.effect_interval.low[:3, :3], few.effect_interval.low, rtol=1e-12
    )


def test_a_constant_gain_has_an_infinite_effect_without_an_interval() -> None:
    found = paired_many(np.array([[2.0, 1.0], [3.0, 2.0], [4.0, 3.0]]), counts(3))
    assert (found.t[0, 1], found.t_p[0, 1], found.effect[0, 1]) == (math.inf, 0.0, math.inf)
    assert (found.difference_interval.low[0, 1], found.difference_interval.high[0, 1]) == (1, 1)
    assert math.isnan(found.effect_interval.low[0, 1])


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
    intervals = (found.difference_interval, found.effect_interval)
    for which, (interval, value) in enumerate(
        zip(intervals, (found.difference[0, 1], found.effect[0, 1]), strict=True)
    ):
        moved = deleted[which].mean() - deleted[which]
        a = (moved**3).sum() / (6 * (moved**2).sum() ** 1.5)
        z0 = stats.norm.ppf((resamples[which] < value).mean())
        z = z0 + np.sqrt(60 / 59) * stats.t.ppf([0.05, 0.95], 59)  # expanded
        ends = np.quantile(resamples[which], stats.norm.cdf(z0 + z / (1 - a * z)))
        # Delete-one values and the delta method are equal for the mean, close for d_z.
        near = 1e-9 if which == 0 else 0.02
        assert interval.low[0, 1] == pytest.approx(ends[0], abs=near)
        assert interval.high[0, 1] == pytest.approx(ends[1], abs=near)


@pytest.mark.parametrize("skewed", [False, True])
def test_intervals_hold_the_truth_about_as_often_as_they_say(skewed: bool) -> None:
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


def test_without_counts_there_are_no_intervals_and_with_one_prompt_neither() -> None:
    def ends(found: PairedMany) -> np.ndarray:
        return np.stack([found.difference_interval.low, found.effect_interval.high])

    assert np.isnan(ends(paired_many(np.ones((5, 2))))).all()
    assert np.isnan(ends(paired_many(np.ones((1, 2)), np.ones((3, 1))))).all()


@pytest.mark.paper
def test_the_tests_of_genai_bench_s_models_are_the_published_ratings_own(assay_data: Path) -> None:
    """Mean ratings of 1,600 prompts; t, p, W, p and shares of wins, recomputed with scipy."""
    answers = GenAiBench(CARD_1600).answers(assay_data)
    means = answers.images.assign(label=answers.labels).pivot_table(
        index="prompt_id", columns="model", values="label"
    )
    found = paired_many(means.to_numpy(np.float64))
    for first, second, t, t_p, w, w_p, wins, losses in (
        ("SDXL_Turbo", "SDXL_Base", -2.9473, 3.252e-3, 244045.5, 1.648e-3, 0.2963, 0.3588),
        ("SDXL_Base", "DeepFloyd_I_XL_v1", -3.7913, 1.554e-4, 302476.0, 8.712e-4, 0.3519, 0.3775),
        ("Midjourney_6", "DALLE_3", -6.5978, 5.659e-11, 243906.0, 6.364e-13, 0.2825, 0.4281),
    ):
        a, b = means.columns.get_loc(first), means.columns.get_loc(second)
        assert found.t[a, b] == pytest.approx(t, abs=5e-5)
        assert found.t_p[a, b] == pytest.approx(t_p, rel=5e-4)
        assert found.wilcoxon_w[a, b] == w
        assert found.wilcoxon_p[a, b] == pytest.approx(w_p, rel=5e-4)
        assert found.dominance[a, b] == pytest.approx(wins, abs=5.1e-5)
        assert found.dominance[b, a] == pytest.approx(losses, abs=5.1e-5)
    check_against_the_loop(means.to_numpy(np.float64))


def test_no_models_make_no_pairs_and_no_prompts_no_figures() -> None:
    assert paired_many(np.empty((4, 0)), counts(4)).t.shape == (0, 0)
    found = paired_many(np.empty((0, 2)), counts(0))
    assert np.isnan(found.t).all()
    assert np.isnan(found.effect_interval.low).all()
    assert np.isnan(found.dominance).all()
    assert (found.n == 0).all()


def test_a_pair_without_common_prompts_leaves_the_others_alone() -> None:
    values = np.random.default_rng(12).normal(size=(30, 3))
    values[:15, 0], values[15:, 1] = NAN, NAN
    found = paired_many(values, counts(30))
    assert found.n.tolist() == [[15, 0, 15], [0, 15, 15], [15, 15, 30]]
    assert math.isnan(found.t_p[0, 1])
    assert math.isnan(found.effect_interval.low[0, 1])
    assert found.difference_interval.low[0, 2] < found.difference[0, 2]


@pytest.mark.parametrize("values", [[1.0, 2.0], [[1.0, math.inf]]])
def test_anything_but_a_table_of_numbers_is_refused(values: object) -> None:
    with pytest.raises(ValueError, match="values of shape"):
        paired_many(np.asarray(values))


def test_counts_of_other_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="counts of 4 prompts"):
        paired_many(np.ones((4, 2)), counts(5))
