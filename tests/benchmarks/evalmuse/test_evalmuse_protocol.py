"""The EvalMuse protocol against scipy on random data, and its rules for what is missing."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.measures import MEASURES
from benchmarks.evalmuse.protocol import measure
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics import logistic
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.thresholds import best_threshold
from tests.benchmarks.pool_rows import check_pools

NAN = float("nan")
SKILLS = ("counting", "color", "other")


def make_answers(n_prompts: int = 24, seed: int = 0) -> EvalMuseAnswers:
    rng = np.random.default_rng(seed)
    images = pd.DataFrame(
        [
            (f"m{k}/{p:03d}", f"p{p}", "t", "real" if p % 3 else "synth")
            for p in range(n_prompts)
            for k in range(3)
        ],
        columns=["pair_id", "prompt_id", "prompt", "split"],
    ).assign(label=lambda f: rng.integers(3, 16, len(f)) / 3.0)
    elements = pd.DataFrame(
        [
            (row.pair_id, f"e{e}", SKILLS[(int(str(row.prompt_id)[1:]) + e) % 3])
            for row in images.itertuples()
            for e in range(2)
        ],
        columns=["pair_id", "element_id", "skill"],
    ).assign(label=lambda f: rng.integers(0, 4, len(f)) / 3.0)
    clusters = tuple(f"p{p}" for p in range(n_prompts))
    return EvalMuseAnswers(tuple(images["pair_id"]), clusters, images, elements)


def make_scores(answers: EvalMuseAnswers, seed: int = 1) -> ScoreTable:
    rng = np.random.default_rng(seed)
    label = answers.images["label"].to_numpy()
    frame = pd.DataFrame(
        {
            "good": label + rng.normal(size=label.size) * 0.7,
            "rough": np.round(label + rng.normal(size=label.size), 0),
        },
        index=pd.Index(answers.images["pair_id"], name="pair_id"),
    )
    noisy = answers.elements["label"] * 0.5 + rng.random(len(answers.elements)) * 0.5
    elements = answers.elements[["pair_id", "element_id"]].assign(score=noisy)
    return ScoreTable(frame, {"good": elements})


def run(scores: ScoreTable, answers: EvalMuseAnswers, n_resamples: int = 12) -> Measured:
    plan = ResamplingPlan(answers.clusters, 11, n_resamples)
    return measure(scores, answers, plan, "evalmuse", "r")


def row_of(measured: Measured, **wanted: Any) -> Row:
    ours = wanted.get("measure") == "srcc" and "skill" in wanted
    variant = "assay" if ours else "paper"
    wanted = {"metric": "good", "split": "all", "skill": None, "variant": variant} | wanted
    found = [r for r in measured.rows if all(getattr(r, k) == v for k, v in wanted.items())]
    assert len(found) == 1, found
    return found[0]


def resamples_of(measured: Measured, row: Row) -> NDArray[np.float32]:
    found: NDArray[np.float32] = measured.resamples[measured.rows.index(row)]
    return found


SCIPY = {"srcc": stats.spearmanr, "krcc": stats.kendalltau, "pearson": stats.pearsonr}


@pytest.mark.parametrize("name", list(SCIPY))
@pytest.mark.parametrize("split", ["all", "real", "synth"])
@pytest.mark.parametrize("metric", ["good", "rough"])
def test_correlations_pool_all_images_of_a_split(name: str, split: str, metric: str) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    row = row_of(measured, measure=name, split=split, metric=metric)
    images = answers.images
    chosen = (images["split"] == split).to_numpy() if split != "all" else np.ones(len(images), bool)
    x, y = scores.overall[metric].to_numpy()[chosen], images["label"].to_numpy()[chosen]
    assert row.value == pytest.approx(SCIPY[name](x, y)[0], abs=1e-12)
    assert (row.variant, row.n_items, row.n_missing) == ("paper", chosen.sum(), 0)
    plan = ResamplingPlan(answers.clusters, 11, 12)
    weights = plan.counts_of(images["prompt_id"].tolist())[:, chosen].astype(int)
    expected = [SCIPY[name](np.repeat(x, w), np.repeat(y, w))[0] for w in weights]
    np.testing.assert_allclose(resamples_of(measured, row), expected, atol=1e-6)


def test_plcc_is_pearson_after_the_logistic_fit() -> None:
    answers = make_answers(60)
    scores = make_scores(answers)
    measured = run(scores, answers, 200)
    row = row_of(measured, measure="plcc")
    fitted = logistic.plcc(scores.overall["good"], answers.images["label"])
    assert row.value == fitted.value
    assert row.value >= row_of(measured, measure="pearson").value - 1e-9
    assert row.ci_low < row.value < row.ci_high


def test_plcc_has_no_interval_where_the_fit_missed_the_best_curve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logistic, "plcc", lambda *_, **__: logistic.Plcc(0.1))
    answers = make_answers()
    row = row_of(run(make_scores(answers), answers), measure="plcc")
    assert row.value == 0.1
    assert np.isnan(row.ci_low)
    assert "no interval" in row.note


def test_plcc_whose_fit_fails_is_nan_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "MAX_EVALUATIONS", 2)
    answers = make_answers()
    row = row_of(run(make_scores(answers), answers), measure="plcc")
    assert np.isnan(row.value)
    assert row.note == "the logistic fit did not converge"


def test_only_splits_that_have_images_are_reported() -> None:
    answers = make_answers()
    images = answers.images.assign(split="real")
    only_real = EvalMuseAnswers(answers.pair_ids, answers.clusters, images, answers.elements)
    assert {row.split for row in run(make_scores(answers), only_real).rows} == {"all", "real"}


def test_images_without_a_score_leave_the_correlations_and_are_counted() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    scores.overall.iloc[[0, 7, 20], 0] = NAN
    row = row_of(run(scores, answers), measure="srcc")
    kept = scores.overall["good"].notna().to_numpy()
    expected = stats.spearmanr(scores.overall["good"][kept], answers.images["label"][kept])[0]
    assert row.value == pytest.approx(expected)
    assert (row.n_items, row.n_missing) == (69, 3)
    assert row.note == "images left out for want of a score: 3"


@pytest.mark.parametrize("name", ["srcc", "krcc", "plcc", "pearson"])
def test_a_constant_metric_has_no_correlation(name: str) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    scores.overall["good"] = 0.5
    row = row_of(run(scores, answers), measure=name)
    assert np.isnan(row.value)
    assert row.note == "the metric gives every image the same score"


def test_a_lower_is_better_metric_is_turned_round_with_its_elements() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    elements = {name: of.assign(score=-of["score"]) for name, of in scores.elements.items()}
    turned = ScoreTable(-scores.overall, elements, {"good": -1, "rough": -1})
    straight, back = run(scores, answers), run(turned, answers)
    for name in ("srcc", "krcc", "plcc", "pearson", "element_accuracy"):
        assert row_of(back, measure=name).value == pytest.approx(
            row_of(straight, measure=name).value, abs=1e-9
        )


def test_the_fixed_threshold_is_turned_round_too() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    absent = {name: of.assign(score=1.0 - of["score"]) for name, of in scores.elements.items()}
    falling = ScoreTable(-scores.overall, absent, {"good": -1, "rough": -1})
    straight, back = run(scores, answers), run(falling, answers)
    for variant in ("ntire", "paper"):
        found = row_of(back, measure="element_accuracy", variant=variant)
        expected = row_of(straight, measure="element_accuracy", variant=variant)
        # A score of exactly one half calls the element present in either direction.
        assert found.value == pytest.approx(expected.value, abs=0.05)


def test_skill_srcc_is_over_images_whose_prompt_has_an_element_of_the_skill() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    row = row_of(run(scores, answers), measure="srcc", skill="counting")
    members = answers.elements.loc[answers.elements["skill"] == "counting", "pair_id"].unique()
    labels = answers.images.set_index("pair_id")["label"]
    expected = stats.spearmanr(scores.overall["good"][members], labels[members])[0]
    assert row.value == pytest.approx(expected)
    assert (row.variant, row.n_items) == ("assay", len(members))


def test_elements_of_other_types_count_overall_but_are_no_skill() -> None:
    answers = make_answers()
    measured = run(make_scores(answers), answers)
    assert {row.skill for row in measured.rows} == {None, "counting", "color"}
    assert row_of(measured, measure="element_accuracy").n_items == len(answers.elements)


def element_table(scores: ScoreTable, answers: EvalMuseAnswers) -> pd.DataFrame:
    table = answers.elements.merge(scores.elements["good"], on=["pair_id", "element_id"])
    return table.merge(answers.images[["pair_id", "prompt_id", "split"]], on="pair_id")


def test_one_threshold_serves_overall_splits_and_skills() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    table = element_table(scores, answers)
    positive = table["label"] >= 0.5
    best = best_threshold(table["score"], positive)
    right = (table["score"] >= best.value) == positive
    overall = row_of(measured, measure="element_accuracy")
    assert overall.value == pytest.approx(right.mean()) == pytest.approx(best.accuracy)
    for split in ("real", "synth"):
        row = row_of(measured, measure="element_accuracy", split=split)
        assert row.value == pytest.approx(right[table["split"] == split].mean())
        assert row.note == f"threshold {best.value:.2f}"
    row = row_of(measured, measure="element_accuracy", skill="color")
    assert row.value == pytest.approx(right[table["skill"] == "color"].mean())


@pytest.mark.parametrize("wanted", [{}, {"split": "synth"}, {"skill": "counting"}])
def test_each_resample_searches_its_own_threshold(wanted: dict[str, str]) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    row = row_of(measured, measure="element_accuracy", **wanted)
    table = element_table(scores, answers)
    plan = ResamplingPlan(answers.clusters, 11, 12)
    weights = plan.counts_of(table["prompt_id"].tolist()).astype(int)
    for b, found in enumerate(resamples_of(measured, row)):
        drawn = table.loc[np.repeat(table.index, weights[b])]
        best = best_threshold(drawn["score"], drawn["label"] >= 0.5)
        for key, value in wanted.items():
            drawn = drawn[drawn[key] == value]
        right = (drawn["score"] >= best.value) == (drawn["label"] >= 0.5)
        assert found == pytest.approx(right.mean(), abs=1e-6)


def test_a_missing_element_score_predicts_absence_and_is_counted() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    complete = scores.elements["good"]
    some = complete.iloc[5:].assign(score=lambda f: f["score"].mask(f.index == 9))
    zero = complete.assign(
        score=complete["score"].mask(complete.index.isin([0, 1, 2, 3, 4, 9]), -1.0)
    )
    missing = row_of(
        run(ScoreTable(scores.overall, {"good": some}), answers), measure="element_accuracy"
    )
    below = row_of(
        run(ScoreTable(scores.overall, {"good": zero}), answers), measure="element_accuracy"
    )
    assert missing.n_missing == 6
    assert missing.value == below.value
    assert "missing element scores, which predict absence: 6" in missing.note


def test_a_metric_without_element_scores_says_so_once() -> None:
    answers = make_answers()
    measured = run(make_scores(answers), answers)
    rows = [r for r in measured.rows if r.metric == "rough" and r.measure == "element_accuracy"]
    assert len(rows) == 1
    assert (rows[0].split, rows[0].skill, rows[0].note) == ("all", None, "gives no element scores")
    assert np.isnan(rows[0].value)


def test_element_scores_far_outside_0_1_give_no_threshold_and_a_reason() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    wide = scores.elements["good"].assign(score=lambda f: f["score"] * 1000.0)
    row = row_of(
        run(ScoreTable(scores.overall, {"good": wide}), answers), measure="element_accuracy"
    )
    assert np.isnan(row.value)
    assert "no threshold" in row.note


def test_every_measure_is_explained() -> None:
    answers = make_answers()
    assert {row.measure for row in run(make_scores(answers), answers).rows} == set(MEASURES)


def test_rows_of_correlations_have_the_pools_behind_them() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    scores.overall.iloc[:4, 0] = NAN
    scores.overall["rough"] = 1.0
    check_pools(run(scores, answers))


def test_an_element_of_an_image_that_nobody_rated_is_refused() -> None:
    answers = make_answers(4)
    stray = answers.elements.assign(
        pair_id=answers.elements["pair_id"].where(answers.elements.index != 5, "m9/999")
    )
    wrong = dataclasses.replace(answers, elements=stray)
    with pytest.raises(KeyError, match="no image 'm9/999' has a rating"):
        run(make_scores(answers), wrong)
