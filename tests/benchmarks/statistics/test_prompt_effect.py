"""Effect of the prompt: variance components, match effect, areas with limits, verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.prompt_effect import (
    BLIND_BELOW,
    MIN_SIZE,
    Area,
    PromptEffect,
    prompt_effect,
)

NAN = math.nan


def drawn(
    rng: np.random.Generator,
    shape: tuple[int, int] = (20, 20),
    variances: tuple[float, float, float] = (1.0, 1.0, 1.0),
    match: float = 0.0,
) -> tuple[FloatArray, IntArray]:
    """Scores by the model and the own prompts: effects of prompts, images, both, and the match."""
    p, i, both = np.sqrt(variances)
    sizes = (shape[0], 1), (1, shape[1]), shape
    scores = sum(
        sd * rng.standard_normal(size) for sd, size in zip((p, i, both), sizes, strict=True)
    )
    own = np.arange(shape[1]) % shape[0]
    scores[own, np.arange(shape[1])] += match
    return scores, own


def many(n: int, seed: int, **options: Any) -> list[PromptEffect]:
    rng = np.random.default_rng(seed)
    return [prompt_effect(*drawn(rng, **options)) for _ in range(n)]


def shares(found: PromptEffect) -> tuple[float, float, float]:
    return found.prompt_share, found.image_share, found.both_share


# Against other ways to the same figures


def by_design_matrix(
    scores: FloatArray, own: IntArray
) -> tuple[FloatArray, tuple[float, float, float]]:
    """Residuals of all cells and components of variance by numpy's least squares, cell by cell."""
    n_p, n_j = scores.shape
    cells = [
        (p, j) for p in range(n_p) for j in range(n_j)
        if p != own[j] and not np.isnan(scores[p, j])
    ]  # fmt: skip
    design = np.zeros((len(cells), 1 + n_p + n_j))
    for row, (p, j) in enumerate(cells):
        design[row, [0, 1 + p, 1 + n_p + j]] = 1.0
    values = np.array([scores[cell] for cell in cells])
    beta, _, rank, _ = np.linalg.lstsq(design, values)
    a, b = beta[1 : 1 + n_p], beta[1 + n_p :]
    fitted = beta[0] + a[:, None] + b
    rest = sum((scores[cell] - fitted[cell]) ** 2 for cell in cells) / (len(cells) - rank)
    covariance = np.linalg.pinv(design.T @ design)

    def component(of: slice, effects: FloatArray) -> float:
        noise = np.trace(np.cov(np.eye(len(effects)), ddof=0) @ covariance[of, of])
        spread = float(((effects - effects.mean()) ** 2).sum())
        return float((spread - rest * noise * len(effects)) / (len(effects) - 1))

    parts = component(slice(1, 1 + n_p), a), component(slice(1 + n_p, None), b), float(rest)
    return scores - fitted, parts


def area_by_loops(values: FloatArray, own: IntArray) -> tuple[float, float]:
    """Share that is won, and its jackknife standard error over prompts."""

    def share(kept: set[int]) -> float:
        won = [
            0.5 * (float(values[p, j] < values[own[j], j]) + float(values[p, j] <= values[own[j], j]))
            for j in range(values.shape[1]) if own[j] in kept
            for p in sorted(kept - {int(own[j])})
            if not np.isnan(values[p, j] + values[own[j], j])
        ]  # fmt: skip
        return float(np.mean(won))

    everyone = set(range(len(values)))
    without = np.array([share(everyone - {p}) for p in everyone])
    n = len(everyone)
    return share(everyone), math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))


@pytest.mark.parametrize("shape", [(24, 24), (24, 48)])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_figures_are_those_of_least_squares_over_the_cells_and_of_loops_over_pairs(
    shape: tuple[int, int], missing: float
) -> None:
    rng = np.random.default_rng(3)
    scores, own = drawn(rng, shape, match=0.7)
    scores[rng.random(shape) < missing] = NAN
    rest, parts = by_design_matrix(scores, own)
    found = prompt_effect(scores, own)
    wanted = np.maximum(parts, 0.0)
    assert shares(found) == pytest.approx(tuple(wanted / wanted.sum()))
    matched = rest[own, np.arange(len(own))]
    there = ~np.isnan(matched)
    means = [
        np.mean(matched[there & (own == p)])
        for p in range(len(scores))
        if (there & (own == p)).any()
    ]
    assert found.match == pytest.approx(matched[there].mean())
    assert found.match_se == pytest.approx(np.std(means, ddof=1) / math.sqrt(len(means)))
    assert found.n_missing == np.isnan(scores).sum()
    assert (found.n_prompts, found.n_images) == (len(means), there.sum())
    value, error = area_by_loops(scores, own)
    assert found.raw.value == pytest.approx(value)
    assert (found.raw.high - found.raw.low) / 2 == pytest.approx(1.72 * error, rel=0.12)


def test_components_of_a_full_table_are_those_of_the_mean_squares() -> None:
    """With an image that is nobody's beside each, the own cells weigh little; without any, nothing."""
    rng = np.random.default_rng(4)
    scores, own = drawn(rng, (20, 400), (2.0, 1.0, 0.5))
    found = prompt_effect(scores, own)
    residual = scores - scores.mean(0) - scores.mean(1)[:, None] + scores.mean()
    ms_both = (residual**2).sum() / (19 * 399)
    ms_p, ms_i = 400 * scores.mean(1).var(ddof=1), 20 * scores.mean(0).var(ddof=1)
    parts = np.array([(ms_p - ms_both) / 400, (ms_i - ms_both) / 20, ms_both])
    assert shares(found) == pytest.approx(tuple(parts / parts.sum()), abs=0.01)


def test_wrong_prompts_of_a_common_skill_alone_are_compared_within_skills() -> None:
    """Every second prompt is of another skill, and only those of another skill can be told."""
    rng = np.random.default_rng(5)
    scores, own = drawn(rng, match=0.0)
    skill = np.arange(20) % 2
    scores[skill[:, None] != skill] -= 50.0
    alike = skill[:, None] == skill
    found = prompt_effect(scores, own, alike)
    assert found.raw.value > 0.7 > found.within.high
    assert found.within.low < 0.5 < found.within.high
    assert math.isnan(prompt_effect(scores, own).within.value)


# Figures of the simulations that the method rests on


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "truncated"), [(20, (0.021, 0.078, 0.901)), (30, (0.02, 0.08, 0.90))]
)
def test_shares_are_unbiased_but_for_their_truncation(
    n: int, truncated: tuple[float, float, float]
) -> None:
    found = many(400, 1, shape=(n, n), variances=(0.02, 0.08, 0.90))
    assert np.mean([shares(one) for one in found], axis=0) == pytest.approx(truncated, abs=0.008)


@pytest.mark.slow
@pytest.mark.parametrize(("match", "power"), [(0.25, 0.25), (0.5, 0.67), (1.0, 0.995)])
def test_areas_are_those_of_two_normal_values_and_the_match_is_tested_with_its_power(
    match: float, power: float
) -> None:
    found = many(500, 2, match=match)
    centred, raw = (
        np.mean([getattr(one, name).value for one in found]) for name in ("centred", "raw")
    )
    assert centred == pytest.approx(ndtr(match / math.sqrt(2.0)), abs=0.01)
    assert raw == pytest.approx(ndtr(match / math.sqrt(2.0 * 2.0)), abs=0.01)
    assert np.mean([one.match for one in found]) == pytest.approx(match, abs=0.03)
    significant = np.mean([one.match / one.match_se > 1.729 for one in found])
    assert significant == pytest.approx(power, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "centred", "raw"),
    [((20, 20), 0.605, 0.576), ((50, 50), 0.563, 0.549), ((20, 80), 0.551, 0.539)],
)
def test_without_a_match_areas_stay_within_their_quantiles_and_limits_err_at_their_level(
    shape: tuple[int, int], centred: float, raw: float
) -> None:
    found = many(300, 6, shape=shape)
    for name, quantile in (("centred", centred), ("raw", raw)):
        areas: list[Area] = [getattr(one, name) for one in found]
        assert np.quantile([one.value for one in areas], 0.95) == pytest.approx(quantile, abs=0.015)
        assert np.mean([one.low > 0.5 for one in areas]) < 0.08
        assert np.mean([one.high < 0.5 for one in areas]) < 0.08


# Verdicts


@pytest.mark.parametrize("variances", [(0.1, 0.1, 1.0), (1.0, 20.0, 1.0), (20.0, 1.0, 1.0)])
def test_none_of_200_honest_metrics_is_called_blind(
    variances: tuple[float, float, float],
) -> None:
    """Whose match is as large as what else differs from cell to cell, whatever images explain."""
    verdicts = [one.verdict for one in many(200, 7, shape=(24, 24), variances=variances, match=1.0)]
    assert "blind" not in verdicts
    assert verdicts.count("uses_the_prompt") >= 190


def test_fewer_than_a_tenth_of_metrics_without_a_match_are_said_to_use_the_prompt() -> None:
    verdicts = [one.verdict for one in many(200, 8, shape=(24, 24))]
    assert verdicts.count("uses_the_prompt") < 20
    assert verdicts.count("blind") > 60


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("constant", (NAN, NAN, NAN)), ("image alone", (0.0, 1.0, 0.0)),
        ("prompt alone", (1.0, 0.0, 0.0)), ("sum of both", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1e-3, 1e6), (1e-300, 0.0), (1e300, 0.0)])
def test_a_score_to_which_the_match_is_nothing_is_blind_by_exact_ties(
    of: str, expected: tuple[float, float, float] | None, scale: float, shift: float
) -> None:
    rng = np.random.default_rng(9)
    prompts, images = rng.standard_normal((24, 1)), rng.standard_normal((1, 24))
    if of in ("constant", "image alone"):
        prompts = np.full_like(prompts, 0.1)
    if of in ("constant", "prompt alone"):
        images = np.full_like(images, 0.2)
    found = prompt_effect(
        shift + scale * (prompts + images), np.arange(24), np.ones((24, 24), bool)
    )
    assert found.centred == found.within == Area(0.5, 0.5, 0.5)
    assert found.raw.value == 0.5
    assert found.verdict == "blind"
    assert found.match == pytest.approx(0.0, abs=1e-12 * max(scale, shift))
    if expected is not None:
        assert shares(found) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_differences_up_to_rounding_are_ties() -> None:
    rng = np.random.default_rng(10)
    scores = rng.standard_normal((1, 24)) + 1e-6 * rng.standard_normal((24, 24))
    assert prompt_effect(scores, np.arange(24)).centred.value != 0.5
    assert prompt_effect(scores, np.arange(24), rounding=1e-5).centred == Area(0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("area", "verdict"),
    [
        ((0.5, 0.41, 0.59), "blind"), ((0.5, 0.4, BLIND_BELOW), "undecided"),
        ((0.7, 0.5, 0.9), "undecided"), ((0.7, 0.51, 0.89), "uses_the_prompt"),
        ((0.55, 0.52, 0.58), "blind"), ((NAN, NAN, NAN), "undecided"),
    ],
)  # fmt: skip
def test_the_verdict_is_by_the_limits_of_the_centred_area(
    area: tuple[float, float, float], verdict: str
) -> None:
    one = Area(*area)
    assert PromptEffect(24, 24, 0, 0.1, 0.2, 0.7, 0.0, 1.0, one, one, one).verdict == verdict


# Missing scores and wrong input


def test_with_too_few_scores_there_are_counts_and_no_figures() -> None:
    rng = np.random.default_rng(11)
    scores, own = drawn(rng, (24, 24), match=1.0)
    scores[own[:5], np.arange(5)] = NAN
    few = prompt_effect(scores, own)
    assert (few.n_prompts, few.n_images, few.n_missing) == (19, 19, 5)
    assert few.verdict == "undecided"
    assert np.isnan([few.match, few.match_se, *shares(few), few.raw.value, few.centred.high]).all()
    none = prompt_effect(np.full((24, 24), NAN), own)
    assert (none.n_prompts, none.n_images, none.n_missing) == (0, 0, 576)


def test_two_halves_that_share_no_prompt_and_no_image_cannot_be_fitted() -> None:
    rng = np.random.default_rng(12)
    scores, own = drawn(rng, (2 * MIN_SIZE, 2 * MIN_SIZE))
    half = np.arange(2 * MIN_SIZE) < MIN_SIZE
    scores[half[:, None] != half] = NAN
    assert math.isnan(prompt_effect(scores, own).centred.value)


def test_a_prompt_that_is_nobodys_is_a_wrong_one_for_all() -> None:
    rng = np.random.default_rng(13)
    scores, own = drawn(rng, (25, 24), match=2.0)
    found = prompt_effect(scores, own)
    assert (found.n_prompts, found.n_images) == (24, 24)
    assert found.raw.value == pytest.approx(area_by_loops(scores, own)[0])


def test_every_image_needs_a_prompt() -> None:
    with pytest.raises(ValueError, match="one prompt for each image"):
        prompt_effect(np.zeros((20, 20)), np.arange(19))
