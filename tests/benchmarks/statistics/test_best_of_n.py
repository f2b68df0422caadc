"""Best of N: the closed form against all subsets, its intervals, and the luck of the same raters."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.statistics.best_of_n import (
    FEWEST,
    GainCurve,
    choice_weights,
    expected_gains,
    gain_curve,
    gains_between_raters,
    mean_curve,
)
from benchmarks.statistics.resampling import ResamplingPlan

NAN = math.nan


def by_all_subsets(scores: FloatArray, values: FloatArray, size: int) -> float:
    """Mean value of the best of each subset, ties counting equally, less that of all."""
    found = []
    for subset in itertools.combinations(range(len(scores)), size):
        of = list(subset)
        found.append(values[of][scores[of] == scores[of].max()].mean())
    return float(np.mean(found) - values.mean())


def curve(
    scores: FloatArray, values: FloatArray, sizes: list[int], resamples: int = 400
) -> GainCurve:
    """Each prompt a cluster of its own."""
    n = len(scores)
    plan = ResamplingPlan.for_revision("toy", "1", [f"p{k}" for k in range(n)], resamples)
    return gain_curve(expected_gains(scores, values, sizes), sizes, np.arange(n), plan)


@pytest.mark.parametrize("levels", [2, 4, 1000])
def test_gains_are_those_of_all_subsets_with_ties_shared(levels: int) -> None:
    rng, sizes = np.random.default_rng(levels), [1, 2, 3, 7]
    scores = rng.integers(levels, size=(20, 7)).astype(float)
    values = rng.standard_normal((20, 7))
    expected = [
        [by_all_subsets(*row, size) for size in sizes] for row in zip(scores, values, strict=True)
    ]
    assert expected_gains(scores, values, sizes) == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (9, 4), (500, 250), (5000, 8)])
def test_weights_are_chances_that_add_up_and_fall_on_no_image_below_the_subsets_best(
    shape: tuple[int, int],
) -> None:
    weights = choice_weights(*shape)
    assert weights.sum() == pytest.approx(1.0) and (np.diff(weights) >= -1e-12).all()
    assert (weights[: shape[1] - 1] == 0.0).all() and weights[-1] == pytest.approx(
        shape[1] / shape[0]
    )


def test_a_constant_score_gains_nothing_and_a_turned_one_loses_what_it_gained() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal((5, 6))
    assert (expected_gains(np.full((5, 6), 0.3), values, [1, 4, 6]) == 0.0).all()
    assert expected_gains(values, values, [6])[:, 0] == pytest.approx(
        values.max(axis=1) - values.mean(axis=1)
    )
    assert expected_gains(-values, values, [6])[:, 0] == pytest.approx(
        values.min(axis=1) - values.mean(axis=1)
    )


@pytest.mark.slow
def test_the_curve_is_that_of_normal_scores_and_its_intervals_hold_it() -> None:
    """G_n = rho sd e_n, with e_n the expected largest of n standard normal numbers."""
    rng, rho = np.random.default_rng(2), 0.6
    truth = {1: 0.0, 2: 0.5642, 4: 1.0294, 8: 1.4236}
    held = np.zeros(len(truth))
    for _ in range(200):
        values = rng.standard_normal((100, 16))
        scores = rho * values + math.sqrt(1 - rho**2) * rng.standard_normal((100, 16))
        found = curve(scores, values, list(truth))
        low, high = found.ends
        expected = rho * np.array(list(truth.values()))
        held += (low <= expected) & (expected <= high)
        assert found.falls_from is None
    assert held[0] == 200 and (held >= 180).all()


def test_missing_scores_and_values_leave_their_prompts_out_and_are_counted() -> None:
    rng = np.random.default_rng(3)
    scores, values = rng.standard_normal((24, 3)), rng.standard_normal((24, 3))
    scores[1, 0] = values[2, 1] = NAN
    gains = expected_gains(scores, values, [2])[:, 0]
    assert np.flatnonzero(np.isnan(gains)).tolist() == [1, 2]
    found = curve(scores, values, [2])
    assert (found.n_prompts, found.n_missing, found.n_clusters) == (22, 2, 22)
    assert found.values == pytest.approx([np.nanmean(gains)])
    assert found.ends[0] < found.values < found.ends[1]
    few = curve(scores[:FEWEST], values[:FEWEST], [2])
    assert few.n_prompts == FEWEST - 2 and few.values == pytest.approx([np.nanmean(gains[:FEWEST])])
    assert np.isnan(few.ends).all() and few.falls_from is None
    none = curve(scores[1:3], values[1:3], [1, 2])
    assert (none.n_prompts, none.n_missing) == (0, 2) and np.isnan(none.values).all()


def test_prompts_of_a_cluster_are_resampled_together() -> None:
    rng = np.random.default_rng(4)
    scores = rng.standard_normal((20, 5))
    values = scores * rng.standard_normal((20, 1))
    gains = expected_gains(scores, values, [2])
    plan = ResamplingPlan.for_revision("toy", "1", [f"p{k}" for k in range(20)])
    once = gain_curve(gains, [2], np.arange(20), plan)
    four = gain_curve(np.repeat(gains, 4, axis=0), [2], np.repeat(np.arange(20), 4), plan)
    assert (four.n_prompts, four.n_clusters) == (80, 20)
    assert four.draws == pytest.approx(once.draws)


@pytest.mark.parametrize("n_raters", [2, 3, 6])
def test_raters_who_choose_for_others_claim_no_more_than_there_is(n_raters: int) -> None:
    rng = np.random.default_rng(n_raters)
    quality = rng.standard_normal((2000, 12, 1))
    ratings = quality + rng.standard_normal((2000, 12, n_raters))
    split = gains_between_raters(ratings, [6]).mean()
    half = ratings[:, :, : n_raters // 2].mean(axis=2)
    means = ratings.mean(axis=2)
    assert split == pytest.approx(expected_gains(half, quality[:, :, 0], [6]).mean(), abs=0.05)
    assert expected_gains(means, means, [6]).mean() > split + 0.1


def test_raters_of_each_image_are_halved_by_its_own_and_one_rater_gives_no_halves() -> None:
    ratings = np.array([
        [[1.0, 2.0, NAN, NAN], [4.0, 1.0, 3.0, 5.0]],  # two raters of one, four of the other
        [[1.0, NAN, NAN, NAN], [2.0, 3.0, NAN, NAN]],  # one rater: none to value
    ])  # fmt: skip
    # Choosing and valuing: of the first image one and one rater, of the second two and two.
    turns = [((1, 2), (2.5, 4)), ((2, 1), (2, 4.5)), ((1, 2), (4, 2.5)), ((2, 1), (4.5, 2))]
    gains = [np.sign(b[0] - a[0]) * (b[1] - a[1]) / 2 for a, b in turns]
    expected = np.mean(gains)
    found = gains_between_raters(ratings, [2])
    assert found[0, 0] == pytest.approx(expected) and np.isnan(found[1, 0])


def test_one_image_with_two_raters_does_not_take_the_choice_from_twenty_of_the_others() -> None:
    rng = np.random.default_rng(7)
    ratings = rng.standard_normal((400, 6, 1)) + 2 * rng.standard_normal((400, 6, 20))
    all_rate = gains_between_raters(ratings, [4]).mean()
    one_has_two = ratings.copy()
    one_has_two[:, 0, 2:] = NAN
    one_of_two = gains_between_raters(ratings[:, :, :2], [4]).mean()
    assert gains_between_raters(one_has_two, [4]).mean() > (all_rate + one_of_two) / 2


def test_intervals_of_the_fewest_clusters_hold_the_truth() -> None:
    rng, held = np.random.default_rng(8), 0
    for _ in range(200):
        scores, values = rng.standard_normal((2, FEWEST, 8))
        low, high = curve(scores, values, [4]).ends[:, 0]
        held += low <= 0.0 <= high
    assert held >= 180


def test_a_share_is_of_the_same_resamples_and_of_nothing_that_may_be_nothing() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal((300, 6))
    noisy = values + rng.standard_normal((300, 6))
    whole, part = curve(values, values, [2, 4]), curve(noisy, values, [2, 4])
    share = part.share_of(whole)
    assert share[0] == pytest.approx(part.values / whole.values)
    assert (share[1] < share[0]).all() and (share[0] < share[2]).all()
    assert share[0] == pytest.approx([0.707] * 2, abs=0.06)
    random = curve(rng.standard_normal((300, 6)), values, [2, 4])
    assert np.isnan(part.share_of(random)).all()


def test_a_gain_that_turns_is_named_where_it_is_highest_and_one_that_rises_is_not() -> None:
    """What a score ranks highest is bad, and what it ranks next is good."""
    rng = np.random.default_rng(6)
    scores = rng.permuted(np.tile(np.arange(6.0), (200, 1)), axis=1)
    turned = np.where(scores == 5, 1.0, scores) + rng.standard_normal((200, 6))
    found = curve(scores, turned, [1, 2, 3, 4, 5, 6])
    assert found.falls_from == 1 + int(np.argmax(found.values)) and found.falls_from in {2, 3}
    assert curve(scores, scores, [1, 2, 3, 4, 5, 6]).falls_from is None
    assert curve(scores, -scores, [1, 2, 6]).falls_from == 1
    assert curve(scores, turned, [6]).falls_from is None
    both = mean_curve([found, curve(scores, scores, [1, 2, 3, 4, 5, 6])])
    assert both.values == pytest.approx((found.values + expected_gains(
        scores, scores, [1, 2, 3, 4, 5, 6]).mean(axis=0)) / 2)  # fmt: skip
    assert (both.n_prompts, both.n_missing, both.n_clusters) == (200, 0, 200)


@pytest.mark.parametrize(
    ("scores", "values", "size"), [((3,), (3,), 1), ((2, 3), (3, 2), 1), ((2, 3), (2, 3), 4),
                                   ((2, 3), (2, 3), 0)]
)  # fmt: skip
def test_tables_that_do_not_fit_and_subsets_that_are_none_are_refused(
    scores: tuple[int, ...], values: tuple[int, ...], size: int
) -> None:
    with pytest.raises(ValueError, match=r"tables|subsets"):
        expected_gains(np.zeros(scores), np.zeros(values), [size])


def test_ratings_without_raters_are_refused() -> None:
    with pytest.raises(ValueError, match="not those of images"):
        gains_between_raters(np.zeros((2, 3)), [1])
