"""The EvalMuse protocol against scipy on random data, and its rules for what is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import curve_fit

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.measures import MEASURES, align_scores, human_ceiling
from benchmarks.evalmuse.protocol import EvalMuse, estimates
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics import logistic
from benchmarks.statistics.concordance import competition_ranks
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.thresholds import best_threshold, deal_folds
from tests.kit.checks import check_pools, row_of

FloatArray = NDArray[np.float64]
ACCURACY = "element_accuracy"
N_RESAMPLES = 8
SCIPY = {"srcc": stats.spearmanr, "krcc": stats.kendalltau, "pearson": stats.pearsonr}
SKILLS = ("counting", "color", "other")


def make_answers(n_prompts: int = 40, **images: Any) -> EvalMuseAnswers:
    """Three images per prompt with two elements each; p0, p3, ... are synthetic."""
    rng = np.random.default_rng(0)
    prompt = np.repeat(np.arange(n_prompts), 3)
    table = pd.DataFrame(
        {
            "pair_id": [f"m{k % 3}/{p:03d}" for k, p in enumerate(prompt)],
            "prompt_id": [f"p{p}" for p in prompt],
            "prompt": "t",
            "split": ["real" if p % 3 else "synth" for p in prompt],
            "label": rng.integers(3, 16, prompt.size) / 3.0,
        }
    )
    elements = pd.DataFrame(
        {
            "pair_id": np.repeat(table["pair_id"].to_numpy(object), 2),
            "element_id": ["e0", "e1"] * prompt.size,
            "skill": [SKILLS[(p + e) % 3] for p in prompt for e in range(2)],
            "label": rng.integers(0, 4, 2 * prompt.size) / 3.0,
        }
    )
    clusters = tuple(f"p{p}" for p in range(n_prompts))
    return EvalMuseAnswers(tuple(table["pair_id"]), clusters, table.assign(**images), elements)


COLORS_OF_REAL = {"skill": "color", "split": "real"}


@dataclass(frozen=True)
class World:
    """Answers, scores for them, and the rows that the protocol makes of both."""

    answers: EvalMuseAnswers
    scores: ScoreTable

    @property
    def labels(self) -> FloatArray:
        return self.answers.images["label"].to_numpy()

    @property
    def good(self) -> FloatArray:
        """Overall scores of the metric `good`."""
        return self.scores.overall["good"].to_numpy()

    @property
    def plan(self) -> ResamplingPlan:
        return ResamplingPlan(self.answers.clusters, 5, N_RESAMPLES)

    @cached_property
    def measured(self) -> Measured:
        return EvalMuse().measure(self.scores, self.answers, self.plan)

    def row(self, measure: str, variant: str = "paper", **wanted: Any) -> Row:
        fields = {"metric": "good", "split": "all", "measure": measure, "variant": variant}
        return row_of(self.measured, **(fields | wanted))

    def draws(self, row: Row) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self.measured.resamples[self.measured.rows.index(row)]
        return found

    def weights(self, prompts: pd.Series) -> NDArray[np.intp]:
        return self.plan.counts_of(prompts.tolist()).astype(np.intp)

    def members(self, split: str) -> NDArray[np.bool_]:
        return (self.answers.images["split"] == split).to_numpy() | (split == "all")

    def elements(self) -> pd.DataFrame:
        """Each labelled element with its score, image and whether people see it."""
        table = self.answers.elements.merge(
            self.scores.elements["good"], on=["pair_id", "element_id"]
        )
        images = self.answers.images[["pair_id", "prompt_id", "split"]]
        return table.merge(images, on="pair_id").assign(positive=lambda f: f["label"] >= 0.5)

    def rescored(self, elements: pd.DataFrame | None = None, **overall: Any) -> World:
        """The same with other scores of elements, or overall."""
        table = {"good": self.scores.elements["good"] if elements is None else elements}
        return World(self.answers, ScoreTable(self.scores.overall.assign(**overall), table))

    def element_scores(self, change: Any) -> pd.DataFrame:
        return self.scores.elements["good"].assign(score=change)


def world(answers: EvalMuseAnswers | None = None) -> World:
    """Metric `good` scores images and elements, `rough` has ties and scores images only."""
    answers = answers or make_answers()
    rng = np.random.default_rng(1)
    label = answers.images["label"].to_numpy()
    overall = pd.DataFrame(
        {
            "good": 40.0 + 9.0 * label + rng.normal(size=label.size) * 6.0,
            "rough": np.round(label + rng.normal(size=label.size)),
        },
        index=pd.Index(answers.images["pair_id"], name="pair_id"),
    )
    noisy = 0.2 + 0.3 * answers.elements["label"] + 0.3 * rng.random(len(answers.elements))
    elements = answers.elements[["pair_id", "element_id"]].assign(score=noisy)
    return World(answers, ScoreTable(overall, {"good": elements}))


@pytest.fixture(scope="module")
def whole() -> World:
    return world()


# Correlations with ratings.


@pytest.mark.parametrize("name", list(SCIPY))
@pytest.mark.parametrize("split", ["all", "real", "synth"])
@pytest.mark.parametrize("metric", ["good", "rough"])
def test_correlations_pool_all_images_of_a_split(
    whole: World, name: str, split: str, metric: str
) -> None:
    row = whole.row(name, split=split, metric=metric)
    chosen = whole.members(split)
    x, y = whole.scores.overall[metric].to_numpy()[chosen], whole.labels[chosen]
    assert row.value == pytest.approx(SCIPY[name](x, y)[0], abs=1e-12)
    assert (row.n_items, row.n_missing) == (chosen.sum(), 0)
    weights = whole.weights(whole.answers.images["prompt_id"])[:, chosen]
    expected = [SCIPY[name](np.repeat(x, w), np.repeat(y, w))[0] for w in weights]
    np.testing.assert_allclose(whole.draws(row), expected, atol=1e-6)


def test_skill_srcc_is_over_images_whose_prompt_has_an_element_of_the_skill(whole: World) -> None:
    row = whole.row("srcc", "assay", skill="counting")
    elements = whole.answers.elements
    members = elements.loc[elements["skill"] == "counting", "pair_id"].unique()
    labels = whole.answers.images.set_index("pair_id")["label"]
    expected = stats.spearmanr(whole.scores.overall["good"][members], labels[members])[0]
    assert row.value == pytest.approx(expected)
    assert row.n_items == len(members)


def fitted(x: FloatArray, y: FloatArray, width: float | None = None) -> FloatArray:
    """The four-parameter logistic curve of y on x."""

    def curve(x: FloatArray, b1: float, b2: float, b3: float, b4: float) -> FloatArray:
        found: FloatArray = b2 + (b1 - b2) / (1 + np.exp(-(x - b3) / np.abs(b4)))
        return found

    start = (y.max(), y.min(), x.mean(), x.std() if width is None else width)
    return curve(x, *curve_fit(curve, x, y, p0=start, maxfev=20_000)[0])


@pytest.mark.parametrize("split", ["all", "real", "synth"])
def test_plcc_and_rmse_are_those_of_the_curve_from_scores_to_ratings(
    whole: World, split: str
) -> None:
    chosen = whole.members(split)
    x, y = whole.good[chosen], whole.labels[chosen]
    plcc, rmse = whole.row("plcc", split=split), whole.row("rmse", split=split)
    assert plcc.value == logistic.plcc(x, y).value
    assert plcc.value == pytest.approx(stats.pearsonr(y, fitted(x, y))[0], abs=1e-5)
    assert plcc.value >= whole.row("pearson", split=split).value - 1e-9
    assert plcc.ci_low < plcc.value < plcc.ci_high
    assert rmse.value == pytest.approx(np.sqrt(np.mean((y - fitted(x, y)) ** 2)), abs=1e-5)
    assert rmse.ci_low < rmse.ci_high < y.std()


@pytest.mark.parametrize("split", ["all", "synth"])
def test_the_released_ntire_script_fits_from_ratings_to_scores(whole: World, split: str) -> None:
    chosen = whole.members(split)
    row = whole.row("plcc", "ntire_code", split=split)
    curve = fitted(whole.labels[chosen], whole.good[chosen])
    assert row.value == pytest.approx(stats.pearsonr(whole.good[chosen], curve)[0], abs=1e-6)
    assert np.isfinite(row.ci_low)


def test_the_competition_page_starts_the_fit_at_a_width_of_one_half(whole: World) -> None:
    small = whole.rescored(good=whole.good / 100.0)
    expected = stats.pearsonr(small.labels, fitted(small.good, small.labels, 0.5))[0]
    assert small.row("plcc", "ntire_page").value == pytest.approx(expected, abs=1e-5)


def test_a_fit_that_misses_the_best_curve_has_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "plcc", lambda *_, **__: logistic.Plcc(0.1, "", 1.0))
    found = world()
    assert found.row("plcc").value == 0.1
    for row in (found.row("plcc"), found.row("ntire_track1", "code")):
        assert np.isfinite(row.value)
        assert np.isnan(row.ci_low)
        assert "no interval" in row.note


def test_a_fit_that_fails_leaves_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "MAX_EVALUATIONS", 2)
    row = world().row("plcc")
    assert np.isnan(row.value)
    assert "not converge" in row.note


# Accuracy of element scores.


def test_one_threshold_serves_overall_splits_and_skills(whole: World) -> None:
    table = whole.elements()
    best = best_threshold(table["score"], table["positive"])
    right = (table["score"] >= best.value) == table["positive"]
    assert right.mean() == pytest.approx(best.accuracy)
    assert {row.skill for row in whole.measured.rows} == {None, "counting", "color", "other"}
    assert whole.row(ACCURACY).n_items == len(table)
    for wanted, members in (
        ({}, right.notna()),
        ({"split": "real"}, table["split"] == "real"),
        ({"split": "synth"}, table["split"] == "synth"),
        ({"skill": "color"}, table["skill"] == "color"),
        ({"skill": "other"}, table["skill"] == "other"),
        (COLORS_OF_REAL, (table["skill"] == "color") & (table["split"] == "real")),
    ):
        row = whole.row(ACCURACY, **wanted)
        assert row.value == pytest.approx(right[members].mean())
        assert row.note == f"threshold {best.value:.2f}"


def accuracy(table: pd.DataFrame, wanted: dict[str, str], fold_of: dict[str, int]) -> float:
    """At the cut that is best here, or for each fold the one that is best in the others."""
    folds = table["prompt_id"].map(fold_of).fillna(0)
    right = pd.Series(False, index=table.index)
    for fold in folds.unique():
        seen = table[folds != fold] if fold_of else table
        cut = best_threshold(seen["score"], seen["positive"]).value
        right |= ((table["score"] >= cut) == table["positive"]) & (folds == fold)
    for key, value in wanted.items():
        right = right[table[key] == value]
    return float(right.mean())


@pytest.mark.parametrize("wanted", [{}, {"split": "synth"}, {"skill": "color"}, COLORS_OF_REAL])
@pytest.mark.parametrize("variant", ["paper", "held_out"])
def test_cuts_are_searched_anew_in_each_resample(
    whole: World, variant: str, wanted: dict[str, str]
) -> None:
    """On all elements as in the paper, or held out: on the other fifths of the prompts."""
    prompts = whole.answers.clusters
    folds = dict(zip(prompts, deal_folds(prompts, 5), strict=True)) if variant != "paper" else {}
    row, table = whole.row(ACCURACY, variant, **wanted), whole.elements()
    assert row.value == pytest.approx(accuracy(table, wanted, folds))
    expected = [
        accuracy(table.loc[table.index.repeat(w)].reset_index(drop=True), wanted, folds)
        for w in whole.weights(table["prompt_id"])
    ]
    np.testing.assert_allclose(whole.draws(row), expected, atol=1e-6)
    assert row.value <= whole.row(ACCURACY, **wanted).value + 0.05


def test_ntire_cuts_element_scores_at_one_half_without_a_search(whole: World) -> None:
    table = whole.elements()
    right = (table["score"] >= 0.5) == table["positive"]
    assert whole.row(ACCURACY, "ntire").value == pytest.approx(right.mean())
    color = whole.row(ACCURACY, "ntire", skill="color")
    assert color.value == pytest.approx(right[table["skill"] == "color"].mean())
    np.testing.assert_allclose(
        whole.draws(whole.row(ACCURACY, "ntire", split="real")),
        [
            np.average(right, weights=w * (table["split"] == "real"))
            for w in whole.weights(table["prompt_id"])
        ],
        atol=1e-6,
    )


@pytest.mark.parametrize("split", ["all", "real", "synth"])
def test_the_final_score_of_track_1_is_half_elements_and_a_quarter_each_of_both_correlations(
    whole: World, split: str
) -> None:
    for variant, of_plcc in (("code", "ntire_code"), ("paper", "paper")):
        names = (("srcc", "paper"), ("plcc", of_plcc), (ACCURACY, "ntire"))
        parts = [whole.row(*name, split=split) for name in names]
        row = whole.row("ntire_track1", variant, split=split)
        weights = np.array([0.25, 0.25, 0.5])
        assert row.value == pytest.approx(weights @ [part.value for part in parts])
        expected = weights @ np.stack([whole.draws(part) for part in parts])
        np.testing.assert_allclose(whole.draws(row), expected, atol=1e-6)
        assert row.n_items == whole.members(split).sum()
        assert row.ci_low < row.value < row.ci_high


def test_a_lower_is_better_metric_is_turned_round_with_elements_and_the_fixed_cut(
    whole: World,
) -> None:
    falling = ScoreTable(
        -whole.scores.overall,
        {"good": whole.element_scores(lambda f: 1.0 - f["score"])},
        {"good": -1, "rough": -1},
    )
    back = World(whole.answers, falling)
    for name in ("srcc", "krcc", "plcc", "pearson"):
        assert back.row(name).value == pytest.approx(whole.row(name).value, abs=1e-9)
    for variant in ("ntire", "paper"):
        # A score of exactly one half calls the element present in either direction.
        found, expected = back.row(ACCURACY, variant), whole.row(ACCURACY, variant)
        assert found.value == pytest.approx(expected.value, abs=0.05)


# Whatever is missing, constant or out of range.


def test_every_measure_is_explained_and_every_correlation_has_its_pool(whole: World) -> None:
    assert {row.measure for row in whole.measured.rows} == set(MEASURES)
    some = whole.scores.overall["good"].where(np.arange(120) > 3)
    check_pools(whole.rescored(good=some, rough=1.0).measured)


@pytest.mark.parametrize(
    ("given", "splits"), [("real", {"all", "real"}), ("", {"all"})], ids=["real", "unknown"]
)
def test_only_splits_that_have_images_are_reported(given: str, splits: set[str]) -> None:
    assert {row.split for row in world(make_answers(split=given)).measured.rows} == splits


@pytest.mark.slow
def test_half_the_scores_missing_is_counted_in_every_row(whole: World) -> None:
    kept = np.arange(120) % 2 == 1
    table = whole.scores.elements["good"]
    half = whole.rescored(table.iloc[::2], good=whole.scores.overall["good"].where(kept))
    for name in ("srcc", "krcc", "plcc", "rmse", "pearson"):
        row = half.row(name)
        assert (row.n_items, row.n_missing) == (60, 60)
        assert "score: 60" in row.note
    for variant in ("paper", "held_out", "ntire"):
        row = half.row(ACCURACY, variant)
        assert (row.n_items, row.n_missing) == (240, 120)
        assert "absence: 120" in row.note
    expected = stats.spearmanr(whole.good[kept], whole.labels[kept])[0]
    assert half.row("srcc").value == pytest.approx(expected)
    # A missing element score predicts absence, as one below every threshold does.
    low = whole.rescored(table.assign(score=table["score"].where(table.index % 2 == 0, -1.0)))
    assert half.row(ACCURACY).value == low.row(ACCURACY).value


def test_no_score_at_all_leaves_reasons_and_counts(whole: World) -> None:
    nothing = whole.rescored(whole.element_scores(np.nan), good=np.nan)
    plcc, held_out = nothing.row("plcc"), nothing.row(ACCURACY, "held_out")
    assert "fewer than 3" in plcc.note
    assert (plcc.n_missing, held_out.n_missing) == (120, 240)
    assert held_out.value == pytest.approx((whole.answers.elements["label"] < 0.5).mean())


def test_without_element_scores_there_is_one_row_of_accuracy_and_no_final_score(
    whole: World,
) -> None:
    (row,) = (r for r in whole.measured.rows if (r.metric, r.measure) == ("rough", ACCURACY))
    assert (row.split, row.skill) == ("all", None)
    unlabelled = World(
        replace(whole.answers, elements=whole.answers.elements.iloc[:0]), whole.scores
    )
    (none,) = (r for r in unlabelled.measured.rows if (r.metric, r.measure) == ("good", ACCURACY))
    assert "no element" in row.note
    assert "labelled elements" in none.note
    for final in (
        whole.row("ntire_track1", "code", metric="rough"),
        unlabelled.row("ntire_track1"),
    ):
        assert np.isnan(final.value)
        assert f"no {ACCURACY}" in final.note


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_constant_scores_have_reasons_everywhere_and_accuracies_where_they_exist(
    whole: World, value: float
) -> None:
    constant = whole.rescored(whole.element_scores(value), good=value)
    for row in (row for row in constant.measured.rows if row.metric == "good"):
        assert np.isfinite(row.value) or row.note, row
        assert row.n_items > 0
    share = (whole.answers.elements["label"] >= 0.5).mean()
    expected = share if value else 1.0 - share
    assert constant.row(ACCURACY, "ntire").value == pytest.approx(expected)
    for name in ("srcc", "krcc", "plcc", "pearson", "ntire_track1"):
        assert np.isnan(constant.row(name).value)
        assert "same score" in constant.row(name).note


def test_constant_labels_leave_reasons(whole: World) -> None:
    answers = make_answers(label=3.0)
    flat = World(replace(answers, elements=answers.elements.assign(label=1.0)), whole.scores)
    for name, variant in (("srcc", "paper"), ("plcc", "ntire_code")):
        assert "same rating" in flat.row(name, variant).note
    assert flat.row(ACCURACY).value == 1.0


def test_one_prompt_only_has_values_but_nothing_to_hold_out() -> None:
    single = world(make_answers(1))
    held, plcc = single.row(ACCURACY, "held_out"), single.row("plcc")
    assert np.isnan([held.value, plcc.value]).all()
    assert "one prompt" in held.note
    assert "fewer than 4" in plcc.note
    assert (held.n_items, held.n_clusters) == (6, 1)
    assert np.isfinite([single.row(ACCURACY).value, single.row("srcc").value]).all()


def test_a_resample_of_one_fold_only_has_no_held_out_accuracy() -> None:
    pair = world(make_answers(2))
    alone = (pair.plan.counts == 0).any(axis=1)
    assert 0 < alone.sum() < N_RESAMPLES
    drawn = pair.draws(pair.row(ACCURACY, "held_out"))
    np.testing.assert_array_equal(np.isnan(drawn), alone)


def test_scores_of_elements_without_a_label_are_left_out_and_counted(whole: World) -> None:
    table = whole.scores.elements["good"]
    stray = table.iloc[:6:2].assign(element_id="z (shape)")
    extra = whole.rescored(pd.concat([table, stray], ignore_index=True))
    for variant in ("paper", "held_out", "ntire"):
        row = extra.row(ACCURACY, variant)
        assert row.value == whole.row(ACCURACY, variant).value
        assert "left out: 3" in row.note
    assert extra.row(ACCURACY, "ntire", skill="color").note == ""


def test_scores_too_wide_for_a_search_are_still_cut_at_one_half(whole: World) -> None:
    wide = whole.rescored(whole.element_scores(lambda f: f["score"] * 1000.0))
    for variant in ("paper", "held_out"):
        assert np.isnan(wide.row(ACCURACY, variant).value)
        assert "no threshold" in wide.row(ACCURACY, variant).note
    assert np.isfinite(wide.row(ACCURACY, "ntire").value)


def test_an_element_of_an_image_that_nobody_rated_is_refused(whole: World) -> None:
    pairs = whole.answers.elements["pair_id"]
    stray = whole.answers.elements.assign(pair_id=pairs.where(pairs.index != 5, "m9/999"))
    with pytest.raises(KeyError, match="m9/999"):
        _ = World(replace(whole.answers, elements=stray), whole.scores).measured


# Facts of the labels alone, and ranks of models.


def test_the_human_ceiling_is_srcc_of_mean_element_label_and_rating(whole: World) -> None:
    some = replace(whole.answers, elements=whole.answers.elements.iloc[:-8])  # 4 images without
    found = human_ceiling(some)
    means = some.elements.groupby("pair_id", sort=False)["label"].mean().to_numpy()
    images = some.images.iloc[:-4]
    assert list(found) == ["all", "real", "synth"]
    for split, value in found.items():
        chosen = (images["split"] == split).to_numpy() | (split == "all")
        expected = stats.spearmanr(means[chosen], images["label"][chosen])[0]
        assert value == pytest.approx(expected)
    assert np.isnan(human_ceiling(make_answers(label=2.0))["all"])


def test_align_scores_are_mean_labels_of_the_reported_skills(whole: World) -> None:
    labels = whole.answers.elements.groupby("skill")["label"].mean()
    expected = {"color": labels["color"], "counting": labels["counting"]}
    assert align_scores(whole.answers) == pytest.approx(expected)


def test_values_that_print_alike_share_a_rank() -> None:
    assert competition_ranks([2.934, 3.1, 2.926, 2.5], 2).tolist() == [2, 1, 2, 4]
    assert competition_ranks([2.934, 3.1, 2.926, 2.5], 3).tolist() == [2, 1, 3, 4]
    assert competition_ranks([], 2).tolist() == []
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite"):
            competition_ranks([1.0, value], 2)


# The protocol on the public TIFA160 ratings, human_avg of 800 images.

GOLDEN = {
    "clipscore_vitb32": (0.3198, 0.2314, 0.3502, 0.3335),
    "tifa_blip2-flant5xl": (0.5581, 0.4360, 0.5612, 0.5616),
    "tifa_mplug-large": (0.5922, 0.4717, 0.5984, 0.5968),
    "spice": (0.3073, 0.2318, 0.3294, 0.3296),
}
"""SRCC, KRCC, PLCC and PLCC in the order of the NTIRE script."""


@pytest.mark.paper
@pytest.mark.slow
def test_tifa160_in_the_manner_of_evalmuse(assay_data: Path) -> None:
    file = assay_data / "tifa160" / "human_annotations_with_scores.json"
    items = json.loads(file.read_text(encoding="utf-8"))
    ids = list(items)
    labels = [float(items[name]["human_avg"]) for name in ids]
    images = pd.DataFrame(
        {"pair_id": ids, "prompt_id": ids, "prompt": "", "split": "", "label": labels}
    )
    elements = pd.DataFrame(columns=["pair_id", "element_id", "skill", "label"])
    answers = EvalMuseAnswers(tuple(ids), tuple(ids), images, elements)
    scores = pd.DataFrame({m: [float(items[name][m]) for name in ids] for m in GOLDEN}, index=ids)
    plan = ResamplingPlan.for_revision("tifa160", "golden", ids)
    found = estimates(ScoreTable(scores), answers, plan, "tifa160", "golden")
    rows = {(e.row.metric, e.row.measure, e.row.variant): e.row for e in found}
    for metric, (srcc, krcc, plcc, ntire) in GOLDEN.items():
        assert rows[metric, "srcc", "paper"].value == pytest.approx(srcc, abs=5e-5)
        assert rows[metric, "krcc", "paper"].value == pytest.approx(krcc, abs=5e-5)
        for variant, value in (("paper", plcc), ("ntire_code", ntire), ("ntire_page", plcc)):
            row = rows[metric, "plcc", variant]
            assert row.value == pytest.approx(value, abs=2e-3)
            assert row.n_items == 800
