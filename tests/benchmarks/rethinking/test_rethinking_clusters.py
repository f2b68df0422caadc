"""Several seeds: images of one prompt are no independent observations."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.rethinking.command import report
from benchmarks.rethinking.measures import (
    MetricScores,
    UnitCounts,
    comparisons,
    comparisons_over_seeds,
    image_scores,
    perturbations,
    perturbations_over_seeds,
    prompt_scores,
    spread,
    unit_counts,
)
from benchmarks.statistics.paired import dominance, paired_many, paired_t, wilcoxon
from benchmarks.statistics.resampling import ResamplingPlan

NAN = math.nan
N_SEEDS, N_PROMPTS, N_TRIALS = 4, 40, 1000


def table(scores: object, perturbed: object = None) -> MetricScores:
    values = np.asarray(scores, np.float64)
    n_seeds, n_models, n_prompts = values.shape
    return MetricScores(
        "vqascore",
        tuple("ABCDE"[:n_models]),
        tuple(f"s{i}" for i in range(n_seeds)),
        tuple(f"p{i}" for i in range(n_prompts)),
        values,
        np.full(values.shape, np.nan) if perturbed is None else np.asarray(perturbed, np.float64),
    )


def plan(scores: MetricScores, n_resamples: int = 300) -> ResamplingPlan:
    return ResamplingPlan(scores.prompts, seed=7, n_resamples=n_resamples)


def resamples(scores: MetricScores) -> UnitCounts:
    return unit_counts(scores, plan(scores))


def equal_models(trial: int, own_effects: float, common: float = 1.0) -> np.ndarray:
    """Scores (seeds, 2, prompts) of models of equal merit.

    Args:
        trial: seed.
        own_effects: spread of what a prompt is worth to one model alone.
        common: spread of what it is worth to both.
    """
    rng = np.random.default_rng((2506, trial))
    suits = own_effects * rng.normal(size=(1, 2, N_PROMPTS))
    hard = common * rng.normal(size=(1, 1, N_PROMPTS))
    return hard + suits + rng.normal(0, 1, (N_SEEDS, 2, N_PROMPTS))


@cache
def rejected(own_effects: float) -> dict[str, float]:
    """Share of the trials in which equal models differ at 5 %, by test and unit."""
    hits = dict.fromkeys(("t image", "t prompt", "wilcoxon image", "wilcoxon prompt"), 0)
    for trial in range(N_TRIALS):
        scores = table(equal_models(trial, own_effects))
        for unit, values in (("image", image_scores(scores)), ("prompt", prompt_scores(scores))):
            found = paired_many(values)
            hits[f"t {unit}"] += found.t_p[0, 1] < 0.05
            hits[f"wilcoxon {unit}"] += found.wilcoxon_p[0, 1] < 0.05
    return {name: n / N_TRIALS for name, n in hits.items()}


class TestWhichUnitToTrust:
    @pytest.mark.slow
    def test_where_prompts_suit_one_model_better_images_reject_far_too_often(self) -> None:
        found = rejected(own_effects=1.0)
        # By theory 0.21: the variance of a mean is (1 + 3 / 2) times what the images suggest.
        assert 0.17 < found["t image"] < 0.26
        assert 0.17 < found["wilcoxon image"] < 0.26

    @pytest.mark.slow
    def test_and_prompts_reject_as_often_as_they_should(self) -> None:
        found = rejected(own_effects=1.0)
        # Three standard errors of a share of 5 % in 1,000 trials are 0.021.
        assert 0.029 < found["t prompt"] < 0.071
        assert 0.029 < found["wilcoxon prompt"] < 0.071

    @pytest.mark.slow
    def test_where_only_the_seed_differs_both_are_right_however_hard_the_prompts(self) -> None:
        found = rejected(own_effects=0.0)
        assert all(0.029 < share < 0.071 for share in found.values())

    @pytest.mark.slow
    def test_intervals_by_image_are_too_narrow_and_by_prompt_hold_zero_as_often_as_they_say(
        self,
    ) -> None:
        covered = {"image": 0, "prompt": 0}
        for trial in range(300):
            scores = table(equal_models(trial, 1.0))
            for comparison in comparisons_over_seeds(scores, resamples(scores)):
                covered[comparison.unit] += comparison.ci_low < 0 < comparison.ci_high
        assert covered["image"] / 300 < 0.83
        assert 0.9 < covered["prompt"] / 300 < 0.98


class TestComparisonsOverSeeds:
    def test_both_units_stand_side_by_side_for_every_pair(self) -> None:
        scores = table(np.random.default_rng(0).normal(size=(3, 3, 8)))
        found = comparisons_over_seeds(scores, resamples(scores))
        assert [c.unit for c in found] == ["image", "prompt"] * 3
        assert {c.seed for c in found} == {None}
        assert all((i.model_a, i.model_b) == (p.model_a, p.model_b) for i, p in _pairs(found))
        assert all((i.n_units, p.n_units) == (24, 8) for i, p in _pairs(found))

    def test_they_are_the_tests_of_the_images_and_of_the_means_over_seeds(self) -> None:
        rng = np.random.default_rng(1)
        scores = table(rng.integers(0, 6, (3, 2, 30)).astype(float))
        image, prompt = comparisons_over_seeds(scores, resamples(scores))
        samples = {
            image: (scores.scores[:, 0].ravel(), scores.scores[:, 1].ravel()),
            prompt: (scores.scores[:, 0].mean(axis=0), scores.scores[:, 1].mean(axis=0)),
        }
        for found, (a, b) in samples.items():
            assert found.t == pytest.approx(paired_t(a, b).statistic)
            assert found.p_value == pytest.approx(paired_t(a, b).p_value)
            assert found.wilcoxon_w == wilcoxon(a, b).statistic
            assert found.wilcoxon_p == pytest.approx(wilcoxon(a, b).p_value)
            assert (found.r_ab, found.r_ba) == dominance(a, b)
            assert found.effect == pytest.approx((a - b).mean() / (a - b).std(ddof=1))
            assert found.ci_low < found.difference < found.ci_high
            assert found.effect_low < found.effect < found.effect_high
        assert image.difference == pytest.approx(prompt.difference)

    def test_a_prompt_that_lacks_a_score_with_some_seed_is_left_out_as_a_prompt_only(self) -> None:
        values = np.ones((2, 2, 4))
        values[:, 1] = 0.0
        values[1, 0, 2] = NAN
        image, prompt = comparisons_over_seeds(table(values), resamples(table(values)))
        assert (image.n_units, image.n_missing) == (7, 1)
        assert (prompt.n_units, prompt.n_missing) == (3, 1)

    def test_with_one_seed_there_is_nothing_to_add(self) -> None:
        scores = table(np.random.default_rng(2).normal(size=(1, 2, 9)))
        assert comparisons_over_seeds(scores, resamples(scores)) == ()
        assert [c.unit for c in comparisons(scores, plan(scores))] == ["prompt"]

    def test_the_same_seed_twice_changes_p_by_image_but_not_by_prompt(self) -> None:
        once = np.random.default_rng(3).normal(size=(1, 2, 25))
        twice = table(np.repeat(once, 2, axis=0))
        alone = comparisons(table(once), plan(table(once)))[0]
        image, prompt = comparisons_over_seeds(twice, resamples(twice))
        assert prompt.p_value == pytest.approx(alone.p_value)
        assert prompt.r_ab == alone.r_ab
        assert image.p_value < alone.p_value


class TestPerturbationOverSeeds:
    def test_by_image_and_by_prompt_by_hand(self) -> None:
        scores = np.array([[[0.0, 1.0, 2.0]], [[0.0, 1.0, 4.0]]])
        perturbed = scores + np.array([[[0.1, 0.2, -0.3]], [[0.3, -0.2, 0.5]]])
        found = table(scores, perturbed)
        image, prompt = perturbations_over_seeds(found, resamples(found))
        assert (image.unit, prompt.unit) == ("image", "prompt")
        assert (image.n_units, prompt.n_units) == (6, 3)
        assert image.mean == prompt.mean == pytest.approx(1.6 / 6)
        assert image.largest == pytest.approx(0.5)
        assert prompt.largest == pytest.approx(0.4)  # means 0.2, 0.2 and 0.4
        sd = np.array([0, 1, 2, 0, 1, 4]).std(ddof=1)
        for line in (image, prompt):
            assert line.spread == pytest.approx(sd)
            assert line.mean_of_spread == pytest.approx(line.mean / sd)
            assert line.largest_of_spread == pytest.approx(line.largest / sd)
            assert line.ci_low <= line.mean <= line.ci_high

    def test_seeds_without_perturbed_images_do_not_count(self) -> None:
        scores = np.random.default_rng(4).normal(size=(3, 2, 5))
        perturbed = np.full(scores.shape, NAN)
        perturbed[:2, 0] = scores[:2, 0] + 0.1
        perturbed[0, 1] = scores[0, 1]  # one seed only: nothing to put together
        perturbed[1, 0, 3] = NAN
        found = table(scores, perturbed)
        image, prompt = perturbations_over_seeds(found, resamples(found))
        assert (image.model, image.n_units, image.n_missing) == ("A", 9, 1)
        assert (prompt.n_units, prompt.n_missing) == (5, 0)
        assert len(perturbations(found, plan(found))) == 3

    def test_prompts_that_move_alike_with_every_seed_widen_the_interval_by_prompt(self) -> None:
        sizes = np.random.default_rng(5).exponential(size=(1, 1, 60)) * np.ones((5, 1, 60))
        scores = np.random.default_rng(6).normal(size=(5, 1, 60))
        found = table(scores, scores + sizes)
        image, prompt = perturbations_over_seeds(found, resamples(found))
        widths = [line.ci_high - line.ci_low for line in (image, prompt)]
        assert widths[1] > 1.7 * widths[0]  # five equal seeds: about the square root of five

    def test_scores_that_are_all_equal_have_no_spread_to_compare_with(self) -> None:
        found = table(np.full((2, 1, 3), 0.1), np.full((2, 1, 3), 0.2))
        for line in (
            *perturbations(found, plan(found)),
            *perturbations_over_seeds(found, resamples(found)),
        ):
            assert line.spread == 0.0
            assert line.mean == pytest.approx(0.1)
            assert math.isnan(line.mean_of_spread)
        assert math.isnan(spread(np.array([1.0])))


def test_images_are_in_the_order_of_their_resamples_and_drawn_one_by_one() -> None:
    scores = table(np.arange(12.0).reshape(2, 2, 3))
    counts = resamples(scores)
    assert (counts.prompts.shape, counts.images.shape) == ((300, 3), (300, 6))
    assert (counts.images.sum(axis=1) == 6).all()
    assert (counts.images[:, :3] != counts.images[:, 3:]).any()  # not prompt by prompt
    one_seed = table(np.ones((1, 2, 3)))
    np.testing.assert_array_equal(resamples(one_seed).images, resamples(one_seed).prompts)
    np.testing.assert_array_equal(image_scores(scores)[:, 0], [0, 1, 2, 6, 7, 8])
    np.testing.assert_array_equal(prompt_scores(scores)[:, 1], [6, 7, 8])


@pytest.mark.parametrize(
    ("shape", "note"),
    [
        ((2, 1, 3), "one model"),
        ((1, 2, 3), "one seed"),
        ((2, 2, 1), "one prompt"),
        ((2, 2, 3), "every score is the same"),
    ],
)
def test_the_report_says_what_it_cannot_say(shape: tuple[int, ...], note: str) -> None:
    found = report([table(np.full(shape, 0.5))], 20)
    assert any(note in line for line in found.notes)
    assert found.n_resamples == 20


def test_a_metric_without_any_score_is_reported_as_such() -> None:
    found = report([table(np.full((2, 2, 3), NAN))], 20)
    assert found.notes == ("vqascore: no score at all",)
    assert [c.n_units for c in found.comparisons_over_seeds] == [0, 0]


def _pairs(found: tuple) -> list[tuple]:
    return list(pairwise(found))[::2]
