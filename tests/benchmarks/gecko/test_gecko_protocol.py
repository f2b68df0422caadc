"""The Gecko protocol against scipy on random data, and its rules for what is undefined."""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks.errors import SubmitterError
from benchmarks.gecko.load import GeckoAnswers, preferences, template_scores
from benchmarks.gecko.measures import FACETS, MEASURES, p_values
from benchmarks.gecko.protocol import measure
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

NAN = float("nan")
MODELS = ("muse", "sd15", "sdxl")
VALUES = {
    "Likert": ["1", "2", "3", "4", "5", "unsure"],
    "WL": ["aligned", "not_aligned", "unsure"],
    "DSGH": ["yes", "no", "invalid", "unsure"],
    "SxS": ["a", "b", "unsure"],
}
UNITS = {"Likert": 1, "WL": 4, "DSGH": 3, "SxS": 1}
SCIPY = {"srcc": stats.spearmanr, "pearson": stats.pearsonr}
B = 10


def make_answers(n_prompts: int = 18, seed: int = 0) -> GeckoAnswers:
    rng = np.random.default_rng(seed)
    ids = [f"p{i}" for i in range(n_prompts)]
    prompts = pd.DataFrame(
        {
            "prompt_id": ids,
            "prompt": "t",
            "skill": ["count" if i % 2 else "color" for i in range(n_prompts)],
            "sub_skill": [f"sub{i // 2 % 2}" for i in range(n_prompts)],
        }
    )
    pairs = pd.DataFrame(
        [(f"{p}/{m}", p, m) for p in ids for m in MODELS],
        columns=["pair_id", "prompt_id", "model"],
    )
    items = [(t, p, m, "") for t in ("WL", "Likert", "DSGH") for p in ids for m in MODELS]
    items += [("SxS", p, a, b) for p in ids for a, b in combinations(MODELS, 2)]
    rows = [
        (*item, f"r{r}", u, "", str(rng.choice(VALUES[item[0]])))
        for item in items
        for r in range(3)
        for u in range(UNITS[item[0]])
    ]
    ratings = pd.DataFrame(
        rows,
        columns=[
            "template", "prompt_id", "model", "model_b", "rater_id", "unit_index", "unit_text",
            "value",
        ],
    )  # fmt: skip
    return GeckoAnswers(tuple(pairs["pair_id"]), tuple(ids), prompts, pairs, ratings)


def make_scores(answers: GeckoAnswers, seed: int = 1) -> ScoreTable:
    rng = np.random.default_rng(seed)
    n = len(answers.pair_ids)
    frame = pd.DataFrame(
        {"fine": rng.normal(size=n), "coarse": rng.integers(0, 4, n).astype(float)},
        index=pd.Index(answers.pair_ids, name="pair_id"),
    )
    return ScoreTable(frame)


def run(scores: ScoreTable, answers: GeckoAnswers) -> Measured:
    return measure(scores, answers, ResamplingPlan(answers.clusters, 3, B), "gecko", "r")


def row_of(measured: Measured, **wanted: Any) -> Row:
    wanted = {"metric": "fine", "skill": None} | wanted
    found = [r for r in measured.rows if all(getattr(r, k) == v for k, v in wanted.items())]
    assert len(found) == 1, found
    return found[0]


def resamples_of(measured: Measured, row: Row) -> NDArray[np.float32]:
    found: NDArray[np.float32] = measured.resamples[measured.rows.index(row)]
    return found


def human_table(answers: GeckoAnswers, template: str, skill: str | None) -> pd.DataFrame:
    """Rated images of a slice with a finite human score, by pair id."""
    scores = template_scores(answers.ratings)
    table = answers.pairs.merge(scores[scores["template"] == template]).merge(answers.prompts)
    table = table[table["score"].notna()].set_index("pair_id")
    sub_skill = table["skill"] + ":" + table["sub_skill"]
    return table if skill is None else table[(table["skill"] == skill) | (sub_skill == skill)]


def slow_mean_over_models(name: str, scores: pd.Series, human: pd.DataFrame) -> float:
    values = []
    for _, rows in human.groupby("model"):
        x, y = scores[rows.index].to_numpy(), rows["score"].to_numpy()
        scored = np.isfinite(x)
        x, y = x[scored], y[scored]
        if x.size >= 3 and np.ptp(x) > 0 and np.ptp(y) > 0:
            values.append(SCIPY[name](x, y)[0])
    return float(np.mean(values)) if values else NAN


@pytest.mark.parametrize("metric", ["fine", "coarse"])
@pytest.mark.parametrize("skill", [None, "count", "color:sub1"])
@pytest.mark.parametrize("template", ["WL", "Likert", "DSGH"])
@pytest.mark.parametrize("name", list(SCIPY))
def test_correlation_is_over_the_images_of_a_model_then_over_models(
    name: str, template: str, skill: str | None, metric: str
) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    row = row_of(
        run(scores, answers),
        measure=name, facet=template, skill=skill, metric=metric, variant="paper",
    )  # fmt: skip
    human = human_table(answers, template, skill)
    assert row.value == pytest.approx(slow_mean_over_models(name, scores.overall[metric], human))
    assert row.n_items == len(human)
    assert row.n_clusters == human["prompt_id"].nunique()


@pytest.mark.parametrize("name", list(SCIPY))
def test_resamples_repeat_the_drawn_prompts(name: str) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    row = row_of(measured, measure=name, facet="Likert", metric="coarse")
    human = human_table(answers, "Likert", None)
    plan = ResamplingPlan(answers.clusters, 3, B)
    weights = plan.counts_of(human["prompt_id"].tolist()).astype(int)
    for b, found in enumerate(resamples_of(measured, row)):
        drawn = human.loc[np.repeat(human.index, weights[b])]
        expected = slow_mean_over_models(name, scores.overall["coarse"], drawn)
        assert found == pytest.approx(expected, abs=1e-6)


def test_the_summary_is_the_mean_of_the_three_templates() -> None:
    answers = make_answers()
    measured = run(make_scores(answers), answers)
    for skill in (None, "count", "color"):
        parts = [
            row_of(measured, measure="srcc", facet=template, skill=skill)
            for template in ("WL", "Likert", "DSGH")
        ]
        summary = row_of(measured, measure="srcc", facet=None, skill=skill)
        assert summary.variant == "assay"
        assert summary.value == pytest.approx(np.mean([part.value for part in parts]))
        expected = np.mean([resamples_of(measured, part) for part in parts], axis=0)
        np.testing.assert_allclose(resamples_of(measured, summary), expected, atol=1e-6)


def test_the_summary_names_a_template_that_was_not_rated() -> None:
    full = make_answers()
    ratings = full.ratings[full.ratings["template"] != "WL"]
    answers = GeckoAnswers(full.pair_ids, full.clusters, full.prompts, full.pairs, ratings)
    row = row_of(run(make_scores(answers), answers), measure="srcc", facet=None)
    assert np.isfinite(row.value)
    assert row.note == "no ratings for WL"


def test_a_model_with_constant_scores_is_left_out_and_named() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    scores.overall.loc[scores.overall.index.str.endswith("/muse"), "fine"] = 1.0
    row = row_of(run(scores, answers), measure="srcc", facet="Likert")
    human = human_table(answers, "Likert", None)
    expected = slow_mean_over_models("srcc", scores.overall["fine"], human)
    assert row.value == pytest.approx(expected)
    assert row.note.startswith("models left out: muse (all scores or all ratings are equal)")
    assert row.n_items == (human["model"] != "muse").sum()


def test_where_every_model_is_left_out_the_value_is_nan_and_has_no_interval() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    scores.overall["fine"] = 0.0
    measured = run(scores, answers)
    for facet in ("WL", None):
        row = row_of(measured, measure="srcc", facet=facet)
        assert np.isnan(row.value)
        assert np.isnan(row.ci_low)
        assert row.note
    assert np.isfinite(row_of(measured, measure="srcc", facet="WL", metric="coarse").value)


def test_fewer_than_three_images_of_a_model_make_no_correlation() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    of_model = scores.overall.index[scores.overall.index.str.endswith("/sd15")]
    scores.overall.loc[of_model[2:], "fine"] = NAN
    row = row_of(run(scores, answers), measure="pearson", facet="WL")
    assert "sd15 (fewer than 3 images)" in row.note


def test_images_without_a_score_are_left_out_of_correlations_and_counted() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    human = human_table(answers, "Likert", None)
    scores.overall.loc[human.index[[0, 5, 9]], "fine"] = NAN
    row = row_of(run(scores, answers), measure="srcc", facet="Likert")
    expected = slow_mean_over_models("srcc", scores.overall["fine"], human)
    assert row.value == pytest.approx(expected)
    assert (row.n_items, row.n_missing) == (len(human) - 3, 3)
    assert row.note.startswith("images left out for want of a score: 3")


@pytest.mark.parametrize("name", list(SCIPY))
@pytest.mark.parametrize("metric", ["fine", "good"])
def test_models_whose_correlation_is_not_significant_are_named(name: str, metric: str) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    human = human_table(answers, "Likert", None)
    noise = np.random.default_rng(5).normal(size=len(human))
    scores.overall["good"] = 0.0
    scores.overall.loc[human.index, "good"] = human["score"].to_numpy() + noise * 0.3
    row = row_of(run(scores, answers), measure=name, facet="Likert", metric=metric)
    weak = [
        str(model)
        for model, rows in human.groupby("model")
        if SCIPY[name](scores.overall.loc[rows.index, metric], rows["score"]).pvalue > 0.05
    ]
    assert row.note == (f"p > 0.05 for {', '.join(weak)}" if weak else "")


@given(st.floats(-0.99, 0.99), st.integers(3, 40))
def test_the_p_value_is_scipys(r: float, n: int) -> None:
    x = np.arange(n, dtype=float)
    noise = np.random.default_rng(n).normal(size=n)
    y = r * stats.zscore(x) + np.sqrt(1 - r * r) * noise
    for test in (stats.pearsonr, stats.spearmanr):
        found = test(x, y)
        assert p_values(np.array(found[0]), np.array(n)) == pytest.approx(found[1], abs=1e-6)


def slow_pairwise(scores: pd.Series, answers: GeckoAnswers, prompts: list[str]) -> list[bool]:
    voted = preferences(answers.ratings)
    right = []
    for prompt in prompts:
        for row in voted[voted["prompt_id"] == prompt].itertuples():
            a, b = scores[f"{prompt}/{row.model}"], scores[f"{prompt}/{row.model_b}"]
            if row.preference != 0:
                right.append(bool(a > b) if row.preference == 1 else bool(b > a))
    return right


@pytest.mark.parametrize("skill", [None, "color", "count:sub0"])
@pytest.mark.parametrize("metric", ["fine", "coarse"])
def test_pairwise_accuracy_counts_ties_as_wrong_and_drops_unsure_humans(
    metric: str, skill: str | None
) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    row = row_of(measured, measure="pairwise_accuracy", facet="SxS", metric=metric, skill=skill)
    table = answers.prompts
    key = table["skill"] + ":" + table["sub_skill"]
    chosen = table if skill is None else table[(table["skill"] == skill) | (key == skill)]
    prompts = chosen["prompt_id"].tolist()
    right = slow_pairwise(scores.overall[metric], answers, prompts)
    assert row.value == pytest.approx(np.mean(right))
    assert row.n_items == len(right)
    plan = ResamplingPlan(answers.clusters, 3, B)
    for b, found in enumerate(resamples_of(measured, row)):
        drawn = [p for p in prompts for _ in range(int(plan.counts[b, plan.index[p]]))]
        expected = np.mean(slow_pairwise(scores.overall[metric], answers, drawn))
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_comparison_with_a_missing_score_is_wrong() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    voted = preferences(answers.ratings)
    decided = voted[voted["preference"] != 0].iloc[0]
    scores.overall.loc[f"{decided['prompt_id']}/{decided['model']}", "fine"] = NAN
    row = row_of(run(scores, answers), measure="pairwise_accuracy")
    right = slow_pairwise(scores.overall["fine"], answers, list(answers.clusters))
    assert row.value == pytest.approx(np.mean(right))
    assert row.n_missing == 1
    assert "whose comparisons are wrong: 1" in row.note


def test_a_lower_is_better_metric_is_turned_round() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    turned = ScoreTable(-scores.overall, directions={"fine": -1, "coarse": -1})
    for straight, back in zip(run(scores, answers).rows, run(turned, answers).rows, strict=True):
        assert back.value == pytest.approx(straight.value, nan_ok=True)


def test_skills_and_sub_skills_have_rows_and_only_skills_a_summary() -> None:
    answers = make_answers()
    measured = run(make_scores(answers), answers)
    skills = {row.skill for row in measured.rows}
    sub_skills = {f"{s}:sub{i}" for s in ("count", "color") for i in (0, 1)}
    assert skills == {None, "count", "color"} | sub_skills
    summarised = {row.skill for row in measured.rows if row.variant == "assay"}
    assert summarised == {None, "count", "color"}


def test_a_rated_image_that_is_not_in_the_benchmark_is_refused() -> None:
    full = make_answers()
    ratings = full.ratings.replace({"model": {"muse": "unknown"}})
    answers = GeckoAnswers(full.pair_ids, full.clusters, full.prompts, full.pairs, ratings)
    with pytest.raises(SubmitterError, match="unknown"):
        run(make_scores(full), answers)


def test_a_comparison_with_an_image_that_is_not_in_the_benchmark_is_refused() -> None:
    full = make_answers()
    ratings = full.ratings.copy()
    ratings.loc[ratings.index[ratings["template"] == "SxS"][0], "model_b"] = "unknown"
    answers = GeckoAnswers(full.pair_ids, full.clusters, full.prompts, full.pairs, ratings)
    with pytest.raises(SubmitterError, match="'unknown'") as caught:
        run(make_scores(full), answers)
    assert caught.value.code == "rating_without_image"


def test_every_row_is_explained() -> None:
    answers = make_answers()
    for row in run(make_scores(answers), answers).rows:
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in FACETS
        assert row.split is None


def test_a_skill_without_any_preference_has_no_accuracy_and_says_why() -> None:
    answers = make_answers()
    colour = answers.prompts.loc[answers.prompts["skill"] == "color", "prompt_id"]
    nobody = (answers.ratings["template"] == "SxS") & answers.ratings["prompt_id"].isin(colour)
    unsure = answers.ratings["value"].mask(nobody, "unsure")
    answers = dataclasses.replace(answers, ratings=answers.ratings.assign(value=unsure))
    rows = [r for r in run(make_scores(answers), answers).rows if r.measure == "pairwise_accuracy"]
    lacking = [row for row in rows if (row.skill or "").startswith("color")]
    assert {(row.metric, row.skill) for row in lacking} >= {("fine", "color"), ("coarse", "color")}
    for row in lacking:
        assert math.isnan(row.value)
        assert row.note == "no comparison with a preference"
        assert (row.n_items, row.n_clusters) == (0, 0)
    whole, count = (
        next(row for row in rows if (row.metric, row.skill) == ("fine", skill))
        for skill in (None, "count")
    )
    assert (whole.value, whole.n_items) == (count.value, count.n_items)


def test_without_any_preference_at_all_there_are_no_rows_of_comparisons() -> None:
    answers = make_answers()
    unsure = answers.ratings["value"].mask(answers.ratings["template"] == "SxS", "unsure")
    answers = dataclasses.replace(answers, ratings=answers.ratings.assign(value=unsure))
    rows = run(make_scores(answers), answers).rows
    assert rows
    assert not [row for row in rows if row.measure == "pairwise_accuracy"]
