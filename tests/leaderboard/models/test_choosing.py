"""Choosing images by one metric: what it gains under the other qualified ones, and where it turns."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.arrays import FloatArray
from benchmarks.statistics.best_of_n import GainCurve
from leaderboard.models.choosing import ModelImagesGain, NoGain, Reason, model_images_gain
from leaderboard.models.reading import ModelReader
from tests.leaderboard.models.made_up_models import CLIP, DSG, VQA, World, world

N, SEEDS = 60, 6
GOOD, RANDOM, HARMFUL, SATURATED, HACKED, FLAT = (
    f"{name}/{name}" for name in ("good", "random", "harmful", "saturated", "hacked", "flat")
)
PLANTED = (GOOD, RANDOM, HARMFUL, SATURATED, HACKED, FLAT)


def scores_of_model(seed: int, n_seeds: int = SEEDS) -> dict[str, FloatArray]:
    """Images of a quality that two qualified metrics see with noise, shape (seeds, prompts).

    A metric that loves saturation ranks by what the others dislike; one that can be hacked
    follows quality, but ranks highest the one image of each prompt that hacks it.
    """
    rng = np.random.default_rng(seed)
    quality, saturation = rng.standard_normal((2, n_seeds, N))
    seen = quality - saturation
    hacks = np.arange(n_seeds)[:, None] == rng.integers(n_seeds, size=N)

    def noise() -> FloatArray:
        return 0.5 * rng.standard_normal((n_seeds, N))

    return {
        VQA: seen - 3.0 * hacks + noise(),
        CLIP: 100.0 * (seen - 3.0 * hacks + noise()),
        GOOD: seen - 3.0 * hacks + noise(),
        RANDOM: rng.standard_normal((n_seeds, N)),
        HARMFUL: -seen + noise(),
        SATURATED: saturation + noise(),
        HACKED: seen + 20.0 * hacks + noise(),
        FLAT: np.full((n_seeds, N), 0.5),
    }


@pytest.fixture(name="made", scope="module")
def _made() -> World:
    made = world(N, metrics=(VQA, CLIP, *PLANTED))
    for place, model in enumerate("ab"):
        made.add(model, scores_of_model(place))
    made.add("one-seed", scores_of_model(5, 1))
    made.add("few-seeds", scores_of_model(6, 2))
    return made


def gain_of(made: World, metric: str) -> ModelImagesGain:
    found = model_images_gain(made.reader, made.view, "drawn", [metric])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("metric", "sign"), [(GOOD, 1), (RANDOM, 0), (HARMFUL, -1), (SATURATED, -1)]
)
def test_a_planted_metric_gains_under_the_others_what_it_should(
    made: World, metric: str, sign: int
) -> None:
    found = gain_of(made, metric)
    assert isinstance(found.own, GainCurve) and found.mean is not None
    assert found.own.sizes == (1, 2, 3, 4, 5, 6)
    assert {one.judge.entry_id for one in found.others} == {VQA, CLIP}
    # It always gains under itself, and ever more.
    assert (np.diff(found.own.values) > 0).all() and found.own.falls_from is None
    low, high = found.mean.ends[:, 3]
    assert (int(low > 0) - int(high < 0)) == sign
    assert (found.mean.falls_from == 1) is (sign < 0)
    assert (found.n_models, found.n_few, found.own.n_prompts) == (2, 1, 2 * N)
    assert found.own.n_clusters == N


def test_a_metric_that_can_be_hacked_gains_at_first_and_falls(made: World) -> None:
    found = gain_of(made, HACKED)
    assert isinstance(found.own, GainCurve) and found.mean is not None
    assert found.own.falls_from is None
    assert found.mean.falls_from is not None
    assert found.mean.values[-1] < found.mean.values[found.mean.falls_from - 1]


def test_gains_are_in_units_of_each_metric_and_their_mean_counts_each_once(made: World) -> None:
    found = gain_of(made, GOOD)
    vqa, clip = (one.curve for one in found.others)
    assert isinstance(vqa, GainCurve) and isinstance(clip, GainCurve) and found.mean is not None
    assert found.mean.draws == pytest.approx((vqa.draws + clip.draws) / 2)
    assert clip.values[-1] == pytest.approx(vqa.values[-1], rel=0.2)


@pytest.mark.parametrize("unit", [1e-170, 1e160])
def test_gains_do_not_depend_on_the_unit_of_a_score(made: World, unit: float) -> None:
    other = world(N, metrics=(VQA, CLIP, *PLANTED))
    for place, model in enumerate("ab"):
        of = scores_of_model(place)
        other.add(model, {**of, GOOD: unit * of[GOOD]})
    found, plain = gain_of(other, GOOD).own, gain_of(made, GOOD).own
    assert isinstance(found, GainCurve) and isinstance(plain, GainCurve)
    assert found.values[:3] == pytest.approx(plain.values[:3], rel=1e-6)


def test_a_qualified_metric_does_not_value_itself_nor_under_another_name(made: World) -> None:
    assert [one.judge.entry_id for one in gain_of(made, VQA).others] == [CLIP]
    twins = world(N, metrics=(VQA, CLIP, DSG))
    scores = scores_of_model(0)
    twins.add("a", {VQA: scores[VQA], CLIP: scores[CLIP], DSG: scores[VQA]})
    assert [one.judge.entry_id for one in gain_of(twins, DSG).others] == [CLIP]
    outputs = world(N, VQA, "vqa/quality", metrics=(VQA, "vqa/quality"))
    outputs.add("a", {VQA: scores[VQA], "vqa/quality": scores[CLIP]})
    assert gain_of(outputs, VQA).others == ()


def test_what_scores_all_alike_chooses_nothing_and_values_nothing(made: World) -> None:
    flat = gain_of(made, FLAT)
    assert flat.own == NoGain(Reason.ALIKE, 0)
    assert flat.mean is not None and not flat.mean.values.any()
    trusted = world(N, VQA, FLAT, metrics=(VQA, FLAT))
    trusted.add("a", {one: scores_of_model(0)[one] for one in (VQA, FLAT)})
    trusted.add("b", {VQA: scores_of_model(1)[VQA], FLAT: np.full((SEEDS, N), 0.7)})
    found = gain_of(trusted, VQA)
    assert [one.curve for one in found.others] == [NoGain(Reason.ALIKE, 0)] and found.mean is None


def test_missing_scores_leave_their_choices_out_and_are_counted() -> None:
    made, scores = world(N, metrics=(VQA, CLIP)), scores_of_model(0)
    scores[CLIP][2, :5] = np.nan
    scores[VQA][0, 7] = np.nan
    made.add("a", {one: scores[one] for one in (VQA, CLIP)})
    made.add("b", {one: scores_of_model(1)[one] for one in (VQA, CLIP)})
    made.add("c", {VQA: scores_of_model(2)[VQA]})  # which the other has not scored
    found = gain_of(made, VQA)
    assert isinstance(found.own, GainCurve) and (found.own.n_prompts, found.own.n_missing) == (
        3 * N - 1,
        1,
    )
    (other,) = found.others
    assert isinstance(other.curve, GainCurve)
    assert (other.curve.n_prompts, other.curve.n_missing) == (2 * N - 6, N + 6)


def test_a_metric_of_other_models_or_prompts_has_no_common_scores_and_no_part_in_the_mean() -> None:
    scores = scores_of_model(0)
    apart = world(N, metrics=(VQA, CLIP, GOOD))
    apart.add("a", {VQA: scores[VQA], GOOD: scores[GOOD]})
    for place, name in enumerate(("one", "two")):
        apart.add(name, {CLIP: scores_of_model(5 + place, 1)[CLIP]})
    none = NoGain(Reason.NO_COMMON_SCORES, N)
    curves = {one.judge.entry_id: one.curve for one in gain_of(apart, GOOD).others}
    assert curves.pop(CLIP) == none

    halves = world(N, metrics=(VQA, CLIP, GOOD))
    scores[VQA][:, : N // 2] = np.nan
    scores[GOOD][:, N // 2 :] = np.nan
    halves.add("a", {one: scores[one] for one in (VQA, CLIP, GOOD)})
    found = gain_of(halves, GOOD)
    curves = {one.judge.entry_id: one.curve for one in found.others}
    clip = curves[CLIP]
    assert curves[VQA] == none and isinstance(clip, GainCurve) and found.mean is not None
    assert np.isfinite(found.mean.values).all()
    assert found.mean.draws == pytest.approx(clip.draws) and found.mean.n_prompts == N // 2

    lacking = world(N, metrics=(VQA, CLIP, GOOD))
    scores = scores_of_model(0)
    scores[GOOD][2] = np.nan  # one seed everywhere
    lacking.add("a", {one: scores[one] for one in (VQA, CLIP, GOOD)})
    assert gain_of(lacking, GOOD).own == none and gain_of(lacking, GOOD).mean is None


def test_there_is_nothing_without_models_of_two_seeds_or_without_the_prompts() -> None:
    made = world(N, metrics=(VQA, CLIP))
    made.add("one-seed", {VQA: scores_of_model(0, 1)[VQA]})
    assert model_images_gain(made.reader, made.view, "drawn", [VQA]) is None
    assert model_images_gain(made.reader, made.view, "drawn", [CLIP]) is None
    elsewhere = ModelReader(made.store, {}, None)
    assert model_images_gain(elsewhere, made.view, "drawn", [VQA]) is None


def test_it_is_worked_out_once_for_the_same_scores(made: World) -> None:
    view = made.view
    first = model_images_gain(made.reader, view, "drawn", [GOOD])
    assert model_images_gain(made.reader, view, "drawn", ["gone/gone", GOOD]) is first
