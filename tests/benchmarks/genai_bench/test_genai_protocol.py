"""Protocol of GenAI-Bench on small pools of images."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.genai_bench.load import GenAiAnswers
from benchmarks.genai_bench.protocol import measure
from benchmarks.rows import ONE_CLUSTER, Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.pairwise_accuracy import (
    accuracy_ignoring_ties,
    pairwise_accuracy,
    tie_calibrated,
)
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.checks import row_of
from tests.benchmarks.pool_rows import check_pools

FloatArray = NDArray[np.float64]
RNG = np.random.default_rng(5)


def made_up(n_prompts: int = 12, n_models: int = 3) -> GenAiAnswers:
    prompts = [f"{k:05d}" for k in range(n_prompts)]
    rows = [(f"{p}/m{m}", p, f"m{m}") for p in prompts for m in range(n_models)]
    return GenAiAnswers(
        pair_ids=tuple(row[0] for row in rows),
        clusters=tuple(prompts),
        images=pd.DataFrame(rows, columns=["pair_id", "prompt_id", "model"]),
        ratings=RNG.integers(1, 6, (len(rows), 3)).astype(np.float64),
        skills={"basic": frozenset(prompts[::2]), "advanced": frozenset(prompts[1:2])},
    )


def run(
    answers: GenAiAnswers, scores: FloatArray, n_resamples: int = 40, *, falling: bool = False
) -> Measured:
    frame = pd.DataFrame({"m": scores}, index=list(answers.pair_ids))
    table = ScoreTable(frame, directions={"m": -1} if falling else {})
    plan = ResamplingPlan.for_revision("genai", "test", answers.clusters, n_resamples)
    return measure(table, answers, plan, "genai", "test")


Estimate = Callable[[FloatArray, FloatArray, float], float]
ESTIMATES: dict[tuple[str, str], Estimate] = {
    ("pairwise_accuracy", "paper"): pairwise_accuracy,
    ("pairwise_accuracy", "no_calibration"): lambda x, y, _: pairwise_accuracy(x, y),
    ("pairwise_accuracy", "ignore_tie"): lambda x, y, _: accuracy_ignoring_ties(x, y),
    ("krcc", "paper"): lambda x, y, _: float(stats.kendalltau(x, y).statistic),
    ("pearson", "paper"): lambda x, y, _: float(stats.pearsonr(x, y).statistic),
    ("srcc", "paper"): lambda x, y, _: float(stats.spearmanr(x, y).statistic),
}
"""Measure and variant to its value, given scores, ratings and the threshold of ties."""


def noisy(answers: GenAiAnswers) -> FloatArray:
    noise: FloatArray = np.round(answers.labels + RNG.normal(size=len(answers.labels)), 1)
    return noise


def test_all_images_of_the_chosen_prompts_are_in_one_pool() -> None:
    answers = made_up()
    scores = noisy(answers)
    found = run(answers, scores)
    for skill in (None, "basic", "advanced"):
        prompts = answers.skills[skill] if skill else frozenset(answers.clusters)
        inside = answers.images["prompt_id"].isin(prompts).to_numpy()
        x, y = scores[inside], answers.labels[inside]
        threshold = tie_calibrated(x, y).threshold
        for (name, variant), estimate in ESTIMATES.items():
            row = row_of(found, measure=name, variant=variant, skill=skill)
            assert row.value == pytest.approx(estimate(x, y, threshold), abs=1e-12)
            assert (row.n_items, row.n_clusters, row.n_missing) == (x.size, len(prompts), 0)
        note = row_of(found, measure="pairwise_accuracy", skill=skill).note
        assert f"difference of {threshold:.6g}" in note
    assert {row.variant for row in found.rows} == {variant for _, variant in ESTIMATES}


def test_intervals_come_from_repeating_whole_prompts_at_the_samples_threshold() -> None:
    answers = made_up()
    scores = noisy(answers)
    found = run(answers, scores, n_resamples=5)
    plan = ResamplingPlan.for_revision("genai", "test", answers.clusters, 5)
    threshold = tie_calibrated(scores, answers.labels).threshold
    position = answers.images["prompt_id"].map(plan.index).to_numpy()
    for k in range(5):
        drawn = np.repeat(np.arange(scores.size), plan.counts[k][position].astype(int))
        x, y = scores[drawn], answers.labels[drawn]
        for row, values in zip(found.rows, found.resamples, strict=True):
            if row.skill is None:
                expected = ESTIMATES[row.measure, str(row.variant)](x, y, threshold)
                assert values[k] == pytest.approx(expected, abs=1e-6)


def test_a_lower_is_better_metric_is_turned_round() -> None:
    answers = made_up()
    found = run(answers, -answers.labels, 10, falling=True)
    assert row_of(found, measure="pairwise_accuracy").value == 1.0
    assert row_of(found, measure="krcc").value == pytest.approx(1.0)


def test_images_without_a_score_are_left_out_and_counted() -> None:
    answers = made_up()
    scores = noisy(answers)
    scores[::2] = math.nan
    found = run(answers, scores)
    row = row_of(found, measure="pairwise_accuracy")
    assert (row.n_items, row.n_missing) == (18, 18)
    assert "score: 18" in row.note
    assert row.value == tie_calibrated(scores[1::2], answers.labels[1::2]).accuracy
    assert math.isfinite(row.ci_low)
    check_pools(found)
    for row in run(answers, np.full(36, math.nan)).rows:
        assert math.isnan(row.value)
        assert "fewer than" in row.note


WITHOUT_TIES = [("pairwise_accuracy", "ignore_tie"), ("krcc", "paper")]
CORRELATIONS = [(name, "paper") for name in ("krcc", "pearson", "srcc")]


@pytest.mark.parametrize(
    ("level", "said", "undefined", "accuracies"),
    [  # Constant scores order nothing; of equal ratings one wide threshold ties everything.
        ("scores", "same score", CORRELATIONS, {"ignore_tie": 0.0}),
        ("ratings", "same rating", WITHOUT_TIES, {"paper": 1.0, "no_calibration": 0.0}),
    ],
)
def test_equal_scores_or_ratings_leave_ties_only(
    level: str, said: str, undefined: list[tuple[str, str]], accuracies: dict[str, float]
) -> None:
    answers, scores = made_up(), np.full(36, 2.0)
    if level == "ratings":
        answers, scores = replace(answers, ratings=np.full((36, 3), 4.0)), np.arange(36.0)
    found = run(answers, scores)
    check_pools(found)
    for name, variant in undefined:
        row = row_of(found, measure=name, variant=variant)
        assert math.isnan(row.value)
        assert said in row.note
    for variant, value in accuracies.items():
        assert row_of(found, measure="pairwise_accuracy", variant=variant).value == value
    calibrated = row_of(found, measure="pairwise_accuracy")
    assert calibrated.value == pairwise_accuracy(np.zeros(36), answers.labels)
    assert ("same score" in calibrated.note) == (level == "scores")


def test_one_prompt_has_values_and_no_interval() -> None:
    answers = made_up(n_prompts=1, n_models=6)
    row = row_of(
        run(answers, np.array([1.0, 2.0, 2.0, 4.0, 3.0, 0.0])), measure="pairwise_accuracy"
    )
    assert (row.n_items, row.n_clusters) == (6, 1)
    assert (math.isfinite(row.value), math.isnan(row.ci_low)) == (True, True)
    assert ONE_CLUSTER in row.note


def test_ratings_outside_the_scale_make_a_second_set_of_overall_rows() -> None:
    answers = made_up()
    answers.ratings[4, 1] = 41.0
    answers.ratings[7] = [0.0, 33.0, 9.0]
    scores = noisy(answers)
    found = run(answers, scores)
    kept = np.isfinite(answers.cleaned_labels)
    row = row_of(found, measure="pearson", variant="cleaned")
    expected = stats.pearsonr(scores[kept], answers.cleaned_labels[kept]).statistic
    assert row.value == pytest.approx(expected)
    assert (row.n_items, row.n_missing) == (35, 0)
    cleaned = {r.measure for r in found.rows if r.variant == "cleaned"}
    assert cleaned == {"pairwise_accuracy", "krcc", "pearson", "srcc"}
