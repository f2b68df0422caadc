"""What the EvalMuse protocol adds to the paper's own figures: RMSE, NTIRE's rules, held-out cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.optimize import curve_fit
from scipy.stats import pearsonr, spearmanr

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.protocol import measure
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics import logistic
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.thresholds import best_threshold, deal_folds

N_RESAMPLES = 8
FloatArray = NDArray[np.float64]


def make_answers(n_prompts: int = 40, seed: int = 0) -> EvalMuseAnswers:
    """Three images per prompt with two elements each; p0, p3, ... are synthetic."""
    rng = np.random.default_rng(seed)
    prompt = np.repeat(np.arange(n_prompts), 3)
    pairs = [f"m{k % 3}/{p}" for k, p in enumerate(prompt)]
    images = pd.DataFrame(
        {
            "pair_id": pairs,
            "prompt_id": [f"p{p}" for p in prompt],
            "prompt": "t",
            "split": ["real" if p % 3 else "synth" for p in prompt],
            "label": rng.integers(3, 16, prompt.size) / 3.0,
        }
    )
    elements = pd.DataFrame(
        {
            "pair_id": np.repeat(np.array(pairs, object), 2),
            "element_id": ["a (color)", "b (other)"] * prompt.size,
            "skill": ["color", "other"] * prompt.size,
            "label": rng.integers(0, 4, 2 * prompt.size) / 3.0,
        }
    )
    clusters = tuple(f"p{p}" for p in range(n_prompts))
    return EvalMuseAnswers(tuple(pairs), clusters, images, elements)


def make_scores(answers: EvalMuseAnswers, seed: int = 1) -> ScoreTable:
    rng = np.random.default_rng(seed)
    label = answers.images["label"].to_numpy()
    overall = pd.DataFrame(
        {"m": 40.0 + 9.0 * label + rng.normal(size=label.size) * 6.0}, index=list(answers.pair_ids)
    )
    of_element = answers.elements["label"].to_numpy()
    noisy = 0.2 + 0.3 * of_element + 0.3 * rng.random(of_element.size)
    table = answers.elements[["pair_id", "element_id"]].assign(score=noisy)
    return ScoreTable(overall, {"m": table})


def plan_of(answers: EvalMuseAnswers) -> ResamplingPlan:
    return ResamplingPlan(answers.clusters, 5, N_RESAMPLES)


def run(scores: ScoreTable, answers: EvalMuseAnswers) -> Measured:
    return measure(scores, answers, plan_of(answers), "evalmuse", "r")


def row_of(measured: Measured, measure: str, variant: str, **wanted: Any) -> Row:
    wanted = {"measure": measure, "variant": variant, "split": "all", "skill": None} | wanted
    (row,) = (r for r in measured.rows if all(getattr(r, k) == v for k, v in wanted.items()))
    return row


def draws_of(measured: Measured, row: Row) -> NDArray[np.float32]:
    found: NDArray[np.float32] = measured.resamples[measured.rows.index(row)]
    return found


def curve(x: FloatArray, b1: float, b2: float, b3: float, b4: float) -> FloatArray:
    found: FloatArray = b2 + (b1 - b2) / (1 + np.exp(-(x - b3) / np.abs(b4)))
    return found


def fitted(x: FloatArray, y: FloatArray, width: float | None = None) -> FloatArray:
    start = (y.max(), y.min(), x.mean(), x.std() if width is None else width)
    return curve(x, *curve_fit(curve, x, y, p0=start, maxfev=20_000)[0])


def test_rmse_is_the_residual_of_the_fit_in_points_of_the_rating() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    for split in ("all", "real", "synth"):
        row = row_of(measured, "rmse", "paper", split=split)
        chosen = (answers.images["split"] == split).to_numpy() | (split == "all")
        x, y = scores.overall["m"].to_numpy()[chosen], answers.images["label"].to_numpy()[chosen]
        expected = float(np.sqrt(np.mean((y - fitted(x, y)) ** 2)))
        assert row.value == pytest.approx(expected, abs=1e-5)
        assert row.value < y.std()
    row = row_of(measured, "rmse", "paper")
    assert row.ci_low < row.ci_high < answers.images["label"].std()


def test_the_released_ntire_script_fits_from_ratings_to_scores() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    row = row_of(run(scores, answers), "plcc", "ntire_code")
    x, y = answers.images["label"].to_numpy(), scores.overall["m"].to_numpy()
    assert row.value == pytest.approx(pearsonr(y, fitted(x, y))[0], abs=1e-6)
    assert np.isfinite(row.ci_low)


def test_the_competition_page_starts_the_fit_at_a_width_of_one_half() -> None:
    answers = make_answers()
    table = make_scores(answers)
    small = ScoreTable(table.overall / 100.0, table.elements)
    row = row_of(run(small, answers), "plcc", "ntire_page")
    x, y = small.overall["m"].to_numpy(), answers.images["label"].to_numpy()
    assert row.value == pytest.approx(pearsonr(y, fitted(x, y, 0.5))[0], abs=1e-5)


def elements_of(scores: ScoreTable, answers: EvalMuseAnswers) -> pd.DataFrame:
    table = answers.elements.merge(scores.elements["m"], on=["pair_id", "element_id"])
    return table.merge(answers.images[["pair_id", "prompt_id", "split"]], on="pair_id").assign(
        positive=lambda f: f["label"] >= 0.5
    )


def test_ntire_cuts_element_scores_at_one_half_without_a_search() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    table = elements_of(scores, answers)
    right = (table["score"] >= 0.5) == table["positive"]
    assert row_of(measured, "element_accuracy", "ntire").value == pytest.approx(right.mean())
    row = row_of(measured, "element_accuracy", "ntire", skill="color")
    assert row.value == pytest.approx(right[table["skill"] == "color"].mean())
    weights = plan_of(answers).counts_of(table["prompt_id"].tolist())
    np.testing.assert_allclose(
        draws_of(measured, row_of(measured, "element_accuracy", "ntire", split="real")),
        [np.average(right, weights=w * (table["split"] == "real")) for w in weights],
        atol=1e-6,
    )


def held_out_accuracy(table: pd.DataFrame, folds: pd.Series, members: pd.Series) -> float:
    cuts = {
        fold: best_threshold(
            table.loc[folds != fold, "score"], table.loc[folds != fold, "positive"]
        )
        for fold in folds.unique()
    }
    right = (table["score"] >= folds.map({f: cut.value for f, cut in cuts.items()})) == table[
        "positive"
    ]
    return float(right[members].mean())


@pytest.mark.parametrize("wanted", [{}, {"split": "synth"}, {"skill": "color"}])
def test_held_out_cuts_come_from_the_other_fifths_of_the_prompts(wanted: dict[str, str]) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    measured = run(scores, answers)
    row = row_of(measured, "element_accuracy", "held_out", **wanted)
    table = elements_of(scores, answers)
    fold_of = dict(zip(answers.clusters, deal_folds(answers.clusters, 5), strict=True))

    def expected(drawn: pd.DataFrame) -> float:
        members = pd.Series(True, index=drawn.index)
        for key, value in wanted.items():
            members &= drawn[key] == value
        return held_out_accuracy(drawn, drawn["prompt_id"].map(fold_of), members)

    assert row.value == pytest.approx(expected(table))
    weights = plan_of(answers).counts_of(table["prompt_id"].tolist()).astype(int)
    repeated = [table.loc[table.index.repeat(w)].reset_index(drop=True) for w in weights]
    np.testing.assert_allclose(
        draws_of(measured, row), [expected(drawn) for drawn in repeated], atol=1e-6
    )
    assert row.value <= row_of(measured, "element_accuracy", "paper", **wanted).value + 0.05


def test_labels_of_a_prompt_do_not_move_the_cut_it_is_judged_by() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    fold_of = dict(zip(answers.clusters, deal_folds(answers.clusters, 5), strict=True))
    pairs = answers.images.set_index("pair_id")["prompt_id"]
    own = answers.elements["pair_id"].map(pairs).map(fold_of) == 0
    turned = answers.elements.assign(
        label=answers.elements["label"].where(~own, 1.0 - answers.elements["label"]),
        skill=np.where(own, "color", "shape"),
    )
    before = EvalMuseAnswers(
        answers.pair_ids,
        answers.clusters,
        answers.images,
        turned.assign(label=answers.elements["label"]),
    )
    after = EvalMuseAnswers(answers.pair_ids, answers.clusters, answers.images, turned)
    rows = [
        row_of(run(scores, a), "element_accuracy", "held_out", skill="color")
        for a in (before, after)
    ]
    # Every label is turned round and every prediction stays, so right and wrong change places.
    assert rows[0].value == pytest.approx(1.0 - rows[1].value)


def test_the_final_score_of_track_1_is_half_elements_and_a_quarter_each_of_both_correlations() -> (
    None
):
    answers = make_answers()
    measured = run(make_scores(answers), answers)
    for variant, of_plcc in (("code", "ntire_code"), ("paper", "paper")):
        parts = [
            row_of(measured, "srcc", "paper"),
            row_of(measured, "plcc", of_plcc),
            row_of(measured, "element_accuracy", "ntire"),
        ]
        row = row_of(measured, "ntire_track1", variant)
        weights = np.array([0.25, 0.25, 0.5])
        assert row.value == pytest.approx(weights @ [part.value for part in parts])
        expected = weights @ np.stack([draws_of(measured, part) for part in parts])
        np.testing.assert_allclose(draws_of(measured, row), expected, atol=1e-6)
        assert row.n_items == 120
        assert row.ci_low < row.value < row.ci_high


def test_without_element_scores_there_is_no_final_score_and_the_row_says_why() -> None:
    answers = make_answers()
    measured = run(ScoreTable(make_scores(answers).overall), answers)
    row = row_of(measured, "ntire_track1", "code")
    assert np.isnan(row.value)
    assert "no element_accuracy" in row.note


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_scores_have_reasons_everywhere_and_accuracies_where_they_exist(
    value: float,
) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    constant = ScoreTable(
        scores.overall * 0.0 + value, {"m": scores.elements["m"].assign(score=value)}
    )
    measured = run(constant, answers)
    for row in measured.rows:
        assert np.isfinite(row.value) or row.note, row
        assert row.n_items > 0
    share = (answers.elements["label"] >= 0.5).mean()
    row = row_of(measured, "element_accuracy", "ntire")
    assert row.value == pytest.approx(share if value else 1.0 - share)
    assert "same score" in row_of(measured, "ntire_track1", "code").note


def test_constant_labels_leave_reasons() -> None:
    answers = make_answers()
    flat = EvalMuseAnswers(
        answers.pair_ids,
        answers.clusters,
        answers.images.assign(label=3.0),
        answers.elements.assign(label=1.0),
    )
    measured = run(make_scores(answers), flat)
    assert row_of(measured, "srcc", "paper").note == "every image has the same rating"
    assert row_of(measured, "plcc", "ntire_code").note == "every image has the same rating"
    assert row_of(measured, "element_accuracy", "paper").value == 1.0


def test_one_prompt_only_has_values_but_nothing_to_hold_out() -> None:
    answers = make_answers(1)
    measured = run(make_scores(answers), answers)
    held = row_of(measured, "element_accuracy", "held_out")
    assert np.isnan(held.value)
    assert "one prompt only" in held.note
    assert (held.n_items, held.n_clusters) == (6, 1)
    assert np.isfinite(row_of(measured, "element_accuracy", "paper").value)
    assert np.isfinite(row_of(measured, "srcc", "paper").value)
    plcc = row_of(measured, "plcc", "paper")
    assert np.isnan(plcc.value)
    assert "fewer than 4" in plcc.note


def test_a_resample_of_one_fold_only_has_no_held_out_accuracy() -> None:
    answers = make_answers(2)
    measured = run(make_scores(answers), answers)
    row = row_of(measured, "element_accuracy", "held_out")
    alone = (plan_of(answers).counts == 0).any(axis=1)
    assert 0 < alone.sum() < N_RESAMPLES
    np.testing.assert_array_equal(np.isnan(draws_of(measured, row)), alone)


def test_half_the_scores_missing_is_counted_in_every_row() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    scores.overall.iloc[::2, 0] = np.nan
    half = scores.elements["m"].iloc[::2]
    measured = run(ScoreTable(scores.overall, {"m": half}), answers)
    for name in ("srcc", "krcc", "plcc", "rmse", "pearson"):
        row = row_of(measured, name, "paper")
        assert (row.n_items, row.n_missing) == (60, 60)
        assert "left out for want of a score: 60" in row.note
    for variant in ("paper", "held_out", "ntire"):
        row = row_of(measured, "element_accuracy", variant)
        assert (row.n_items, row.n_missing) == (240, 120)
        assert "predict absence: 120" in row.note
    kept = scores.overall["m"].notna().to_numpy()
    expected = spearmanr(scores.overall["m"][kept], answers.images["label"][kept])[0]
    assert row_of(measured, "srcc", "paper").value == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["overall", "elements"])
def test_no_scores_at_all_leave_reasons_or_counts(kind: str) -> None:
    answers = make_answers()
    scores = make_scores(answers)
    if kind == "overall":
        scores.overall["m"] = np.nan
        row = row_of(run(scores, answers), "plcc", "paper")
        assert row.note.startswith("fewer than 3 images with a score")
        assert row.n_missing == 120
        return
    nothing = scores.elements["m"].assign(score=np.nan)
    measured = run(ScoreTable(scores.overall, {"m": nothing}), answers)
    row = row_of(measured, "element_accuracy", "held_out")
    assert row.value == pytest.approx((answers.elements["label"] < 0.5).mean())
    assert row.n_missing == 240


def test_a_benchmark_without_elements_says_so() -> None:
    answers = make_answers()
    none = EvalMuseAnswers(
        answers.pair_ids, answers.clusters, answers.images, answers.elements.iloc[:0]
    )
    measured = run(make_scores(answers), none)
    rows = [row for row in measured.rows if row.measure == "element_accuracy"]
    assert [row.note for row in rows] == ["the benchmark has no labelled elements"]
    assert "no element_accuracy" in row_of(measured, "ntire_track1", "code").note


def test_scores_of_elements_without_a_label_are_left_out_and_counted() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    table = scores.elements["m"]
    more = pd.concat([table, table.iloc[:6:2].assign(element_id="z (shape)")], ignore_index=True)
    plain, extra = run(scores, answers), run(ScoreTable(scores.overall, {"m": more}), answers)
    for variant in ("paper", "held_out", "ntire"):
        row = row_of(extra, "element_accuracy", variant)
        assert row.value == row_of(plain, "element_accuracy", variant).value
        assert "without a label, which are left out: 3" in row.note
    assert row_of(extra, "element_accuracy", "ntire", skill="color").note == ""


def test_the_order_of_element_scores_does_not_matter() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    shuffled = ScoreTable(
        scores.overall, {"m": scores.elements["m"].sample(frac=1.0, random_state=0)}
    )
    assert run(shuffled, answers).rows == run(scores, answers).rows


def test_scores_too_wide_for_a_search_are_still_cut_at_one_half() -> None:
    answers = make_answers()
    scores = make_scores(answers)
    wide = scores.elements["m"].assign(score=lambda f: f["score"] * 1000.0)
    measured = run(ScoreTable(scores.overall, {"m": wide}), answers)
    for variant in ("paper", "held_out"):
        assert "no threshold" in row_of(measured, "element_accuracy", variant).note
    assert np.isfinite(row_of(measured, "element_accuracy", "ntire").value)


def test_images_without_a_split_are_reported_as_all_only() -> None:
    answers = make_answers()
    unsplit = EvalMuseAnswers(
        answers.pair_ids, answers.clusters, answers.images.assign(split=""), answers.elements
    )
    assert {row.split for row in run(make_scores(answers), unsplit).rows} == {"all"}


def test_a_challenge_plcc_whose_fit_misses_the_best_curve_leaves_the_final_without_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logistic, "plcc", lambda *_, **__: logistic.Plcc(0.1, "", 1.0))
    answers = make_answers()
    row = row_of(run(make_scores(answers), answers), "ntire_track1", "code")
    assert np.isfinite(row.value)
    assert np.isnan(row.ci_low)
    assert "no interval" in row.note
