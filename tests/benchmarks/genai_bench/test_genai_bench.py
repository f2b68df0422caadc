"""GenAI-Bench: the released files as its cards read them, and the protocol on small pools."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.families.items import items_of
from benchmarks.families.rating import RatingAnswers as Answers
from benchmarks.families.tables import JoinedTable
from benchmarks.genai_bench.protocol import GENAI_1600
from benchmarks.rows import ONE_CLUSTER, Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.pairwise_accuracy import (
    Pairs,
    pairwise_accuracy,
    tie_calibrated,
)
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.genai_bench.genai_tree import N_PROMPTS, SKILLS, pack, small, write
from tests.kit.checks import check_pools, row_of


@pytest.mark.parametrize("first", [0, 1])
def test_images_have_ratings_and_prompts_the_tags_of_their_number(
    tmp_path: Path, first: int
) -> None:
    answers = small().answers(write(tmp_path, first))
    ids = tuple(f"{first + k:05d}" for k in range(N_PROMPTS))
    assert answers.clusters == ids
    [rated] = answers.facets.values()
    assert (rated.ratings[0].tolist(), rated.means[0]) == ([1, 5, 1], 7 / 3)
    prompts = small().prompts(tmp_path)
    assert prompts["prompt_id"].tolist() == list(ids)
    assert prompts["skills"].tolist() == ["basic", ";".join(SKILLS), "", ""]


def test_images_are_read_from_the_archives_of_the_models_or_unpacked(tmp_path: Path) -> None:
    folder = write(tmp_path) / "genai_1600"
    pack(folder)
    packed = small().questions(tmp_path).images["00003/SDXL_Base"]()
    for path in folder.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        path.unlink()
    assert small().has_questions(tmp_path)
    unpacked = small().questions(tmp_path).images["00003/SDXL_Base"]()
    assert packed == unpacked == b"SDXL_Base/00003.jpeg"


FloatArray = NDArray[np.float64]
RNG = np.random.default_rng(5)
TAGGED = {"basic": slice(None, None, 2), "advanced": slice(1, 2)}
"""Tag to the prompts of made-up answers."""


def made_up(n_prompts: int = 12, n_models: int = 3, ratings: FloatArray | None = None) -> Answers:
    """Ratings of the images of each prompt, drawn where they are not given."""
    prompts = np.array([f"{k:05d}" for k in range(n_prompts)], object)
    tags = {p: [tag for tag, of in TAGGED.items() if p in prompts[of]] for p in prompts}
    rows = [(f"{p}/m{m}", p, "", f"m{m}", tags[p]) for p in prompts for m in range(n_models)]
    table = pd.DataFrame(rows, columns=["pair", "prompt", "text", "model", "tag"])
    drawn = RNG.integers(1, 6, (len(rows), 3)) if ratings is None else ratings
    joined = JoinedTable(table.assign(ratings=drawn.tolist()))
    folder = GENAI_1600.folder(None)
    return GENAI_1600.labelled(folder, items_of(folder, GENAI_1600.card, joined))


def means_of(answers: Answers) -> FloatArray:
    """Mean ratings."""
    return GENAI_1600.gold_of_pairs(answers)


def run(answers: Answers, scores: FloatArray, n_resamples: int = 40) -> Measured:
    table = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    plan = ResamplingPlan.for_revision("genai", "test", answers.clusters, n_resamples)
    return GENAI_1600.measure(table, answers, plan)


Estimate = Callable[[FloatArray, FloatArray, float], float]
ESTIMATES: dict[tuple[str, str], Estimate] = {
    ("pairwise_accuracy", "paper"): pairwise_accuracy,
    ("pairwise_accuracy", "no_calibration"): lambda x, y, _: pairwise_accuracy(x, y),
    ("pairwise_accuracy", "ignore_tie"): lambda x, y, _: Pairs.of(x, y).accuracy_ignoring_ties,
    ("krcc", "paper"): lambda x, y, _: float(stats.kendalltau(x, y).statistic),
    ("pearson", "paper"): lambda x, y, _: float(stats.pearsonr(x, y).statistic),
    ("srcc", "paper"): lambda x, y, _: float(stats.spearmanr(x, y).statistic),
}
"""Measure and variant to its value, given scores, ratings and the threshold of ties."""


def noisy(answers: Answers) -> FloatArray:
    means = means_of(answers)
    noise: FloatArray = np.round(means + RNG.normal(size=means.size), 1)
    return noise


def test_all_images_of_the_chosen_prompts_are_in_one_pool() -> None:
    answers = made_up()
    scores = noisy(answers)
    found = run(answers, scores)
    for skill in (None, "basic", "advanced"):
        prompts = np.array(answers.clusters)[TAGGED[skill] if skill else slice(None)]
        inside = answers.images["prompt_id"].isin(prompts).to_numpy()
        x, y = scores[inside], means_of(answers)[inside]
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
    threshold = tie_calibrated(scores, means_of(answers)).threshold
    position = answers.images["prompt_id"].map(plan.index).to_numpy()
    for k in range(5):
        drawn = np.repeat(np.arange(scores.size), plan.counts[k][position].astype(int))
        x, y = scores[drawn], means_of(answers)[drawn]
        for row, values in zip(found.rows, found.resamples, strict=True):
            if row.skill is None:
                expected = ESTIMATES[row.measure, str(row.variant)](x, y, threshold)
                assert values[k] == pytest.approx(expected, abs=1e-6)


def test_images_without_a_score_are_left_out_and_counted() -> None:
    answers = made_up()
    scores = noisy(answers)
    scores[::2] = math.nan
    found = run(answers, scores)
    row = row_of(found, measure="pairwise_accuracy")
    assert (row.n_items, row.n_missing) == (18, 18)
    assert "score: 18" in row.note
    assert row.value == tie_calibrated(scores[1::2], means_of(answers)[1::2]).accuracy
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
def test_equal_values_leave_ties(
    level: str, said: str, undefined: list[Any], accuracies: dict[str, float]
) -> None:
    answers, scores = made_up(), np.full(36, 2.0)
    if level == "ratings":
        answers, scores = made_up(ratings=np.full((36, 3), 4.0)), np.arange(36.0)
    found = run(answers, scores)
    check_pools(found)
    for name, variant in undefined:
        row = row_of(found, measure=name, variant=variant)
        assert math.isnan(row.value)
        assert said in row.note
    for variant, value in accuracies.items():
        assert row_of(found, measure="pairwise_accuracy", variant=variant).value == value
    calibrated = row_of(found, measure="pairwise_accuracy")
    assert calibrated.value == pairwise_accuracy(np.zeros(36), means_of(answers))
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
    ratings = RNG.integers(1, 6, (36, 3)).astype(np.float64)
    ratings[4, 1] = 41.0
    ratings[7] = [0.0, 33.0, 9.0]
    answers = made_up(ratings=ratings)
    assert means_of(answers)[4] == ratings[4].mean()
    scores = noisy(answers)
    found = run(answers, scores)
    cleaned = pd.DataFrame(ratings).where((ratings >= 1) & (ratings <= 5)).mean(axis=1)
    kept = cleaned.notna()  # of one image nothing is left
    for measure, test in (("pearson", stats.pearsonr), ("srcc", stats.spearmanr)):
        row = row_of(found, measure=measure, variant="cleaned")
        assert row.value == pytest.approx(test(scores[kept], cleaned[kept]).statistic)
        assert (row.n_items, row.n_missing, row.skill) == (35, 0, None)
    told = [r.measure for r in found.rows if r.variant == "cleaned"]
    assert sorted(told) == ["krcc", "pairwise_accuracy", "pearson", "srcc"]
