"""Family of ratings: measures, pools, slices and missing scores, against plain computations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from benchmarks.arrays import FloatArray
from benchmarks.families.controls import control_scores
from benchmarks.families.rating import MEASURES, TIE_VARIANTS, RatingAnswers, RatingBenchmark
from benchmarks.registry import load_registry
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics import logistic
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
from tests.benchmarks.families.cards import answers_as, board_of_rows
from tests.kit.checks import check_pools
from tests.kit.refusals import refused

NAN = math.nan
ALL_TIES = ["calibrated", "equal", "ignore"]
COLUMNS = {
    "image": "i", "prompt": "p", "text": "p", "model": "m", "skill": "s", "split": "h",
    "r": {"from": "r", "type": "list_float"}, "q": {"from": "q", "type": "float"},
}  # fmt: skip


def table(n_prompts: int = 8, n_models: int = 6, seed: int = 1) -> list[dict[str, Any]]:
    """Images of each prompt and model, with three ratings of one facet and a mean of another.

    Skill `one` is that of every second image, so that it cuts through prompts; `v` and `w` are
    halves of the prompts.
    """
    random = np.random.default_rng(seed)
    rows = []
    for k, m in itertools.product(range(n_prompts), range(n_models)):
        ratings = np.clip(random.integers(1, 4, 3) + (k + m) % 3, 1, 5)
        rows.append(
            {
                "i": f"i{k}-{m}", "p": f"prompt {k}", "m": f"m{m}", "h": "vw"[k % 2],
                "s": "one" if (k + m) % 2 else "two", "r": ratings.tolist(),
                "q": float(random.integers(10, 50)) / 10,
            }
        )  # fmt: skip
    return rows


def benchmark(folder: Path, rows: list[dict[str, Any]], **more: Any) -> RatingBenchmark:
    gold = {"mean": {"mean": None, "ratings": "r"}, "other": {"mean": "q", "scale": [1, 5]}}
    keys = {"items": {"model": "model"}, "gold": gold, **more}
    return board_of_rows(folder, RatingBenchmark, rows, COLUMNS, keys)


answers_of = partial(answers_as, RatingAnswers)


def measured(
    one: RatingBenchmark, scores: FloatArray, n_resamples: int = 20
) -> tuple[RatingAnswers, Measured]:
    answers = answers_of(one)
    scored = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    return answers, one.measure(scored, answers, one.plan(answers, n_resamples))


def rows_by(found: Measured, facet: str = "mean") -> dict[tuple[Any, ...], Row]:
    """Measure, variant, split and skill to the row."""
    return {
        (row.measure, row.variant, row.split, row.skill): row
        for row in found.rows
        if row.facet == facet
    }


def noisy(answers_or_rows: list[dict[str, Any]], seed: int = 2) -> FloatArray:
    means = np.array([np.mean(row["r"]) for row in answers_or_rows])
    return np.round(means + np.random.default_rng(seed).normal(size=means.size), 1)


def pairwise(x: FloatArray, y: FloatArray, threshold: float, ties: str) -> float:
    """Pair by pair."""
    right, pairs = 0, 0
    for a, b in itertools.combinations(range(x.size), 2):
        tied, same = abs(x[a] - x[b]) <= threshold, y[a] == y[b]
        if ties == "ignore" and same:
            continue
        pairs += 1
        alike = not tied and not same and (x[a] < x[b]) == (y[a] < y[b])
        right += alike or (tied and same and ties != "ignore")
    return right / pairs if pairs else NAN


def after_fit(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """PLCC and RMSE by another solver."""

    def curve(s: FloatArray, b1: float, b2: float, b3: float, b4: float) -> FloatArray:
        with np.errstate(over="ignore"):
            found: FloatArray = b2 + (b1 - b2) / (1 + np.exp(-(s - b3) / abs(b4)))
        return found

    start = (y.max(), y.min(), x.mean(), x.std())
    fitted = curve(x, *optimize.curve_fit(curve, x, y, start, maxfev=20_000)[0])
    return float(stats.pearsonr(y, fitted).statistic), float(np.sqrt(((y - fitted) ** 2).mean()))


Plain = Callable[[FloatArray, FloatArray], float]
PLAIN: Mapping[str, Plain] = {
    "srcc": lambda x, y: float(stats.spearmanr(x, y).statistic),
    "krcc": lambda x, y: float(stats.kendalltau(x, y).statistic),
    "pearson": lambda x, y: float(stats.pearsonr(x, y).statistic),
    "plcc": lambda x, y: after_fit(x, y)[0],
    "rmse": lambda x, y: after_fit(x, y)[1],
}
VARIANTS = {"assay": "calibrated", **{variant: ties for ties, variant in TIE_VARIANTS.items()}}


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("split", "skill"),
    [("v", "one"), (None, None), (None, "one"), ("v", None)],
)
def test_all_images_of_a_slice_are_one_pool(
    tmp_path: Path, split: str | None, skill: str | None
) -> None:
    rows = table()
    one = benchmark(
        tmp_path, rows, evaluation={"ties": ALL_TIES, "pooled": False} if split else
        {"ties": ALL_TIES}, items={"model": "model", "skills": "skill"} |
        ({"split": "split"} if split else {}),
    )  # fmt: skip
    x, y = noisy(rows), np.array([np.mean(row["r"]) for row in rows])
    _, found = measured(one, x)
    check_pools(found)
    inside = np.array(
        [(split or row["h"], skill or row["s"]) == (row["h"], row["s"]) for row in rows]
    )
    x, y = x[inside], y[inside]
    by = rows_by(found)
    for measure, plain in PLAIN.items():
        row = by[measure, "assay", split, skill]
        assert row.value == pytest.approx(plain(x, y), abs=2e-6), measure
        assert (row.n_items, row.n_missing) == (inside.sum(), 0)
        assert row.n_clusters == (4 if split else 8)
        assert row.ci_low < row.ci_high
    threshold = tie_calibrated(x, y).threshold
    for variant, ties in VARIANTS.items():
        row = by["pairwise_accuracy", variant, split, skill]
        limit = threshold if ties == "calibrated" else 0.0
        assert row.value == pytest.approx(pairwise(x, y, limit, ties)), variant
        assert (f"difference of {threshold:.6g}" in row.note) is (ties == "calibrated")
    assert {row.facet for row in found.rows} == {"mean", "other"}


def test_within_prompts_the_mean_is_over_prompts_where_it_is_defined(tmp_path: Path) -> None:
    rows = table()
    for given in rows[:6]:
        given["r"] = [3, 3, 3]  # Nothing can be correlated with equal ratings.
    one = benchmark(tmp_path, rows, evaluation={"pool": "prompt", "ties": ALL_TIES})
    assert set(one.card.measures) == {"srcc", "krcc", "pearson", "pairwise_accuracy"}
    assert "within each prompt" in one.card.measures["srcc"].meaning
    x, y = noisy(rows), np.array([np.mean(given["r"]) for given in rows])
    answers, found = measured(one, x)
    by = rows_by(found)
    groups = [np.arange(6 * k, 6 * k + 6) for k in range(8)]
    counts = one.plan(answers, 20).counts
    assert not found.pools
    cells: list[tuple[Row, list[float]]] = [
        (by[measure, "assay", None, None], [NAN, *(PLAIN[measure](x[g], y[g]) for g in groups[1:])])
        for measure in ("srcc", "krcc", "pearson")
    ]
    limits = sorted({0.0, *(abs(a - b) for g in groups for a in x[g] for b in x[g])})
    calibrated = {e: np.mean([pairwise(x[g], y[g], e, "equal") for g in groups]) for e in limits}
    best = next(e for e in limits if calibrated[e] >= max(calibrated.values()) - 1e-12)
    for variant, ties in VARIANTS.items():
        limit = best if ties == "calibrated" else 0.0
        values = [pairwise(x[g], y[g], limit, ties) for g in groups]
        cells.append((by["pairwise_accuracy", variant, None, None], values))
    for row, values in cells:
        of_prompts = np.array(values)
        defined = np.isfinite(of_prompts)
        assert row.value == pytest.approx(of_prompts[defined].mean()), row.measure
        assert (row.n_items, row.n_clusters) == (48, defined.sum())
        assert ("left out, where it is undefined: 1" in row.note) is not defined.all()
        drawn = counts[:, defined] @ of_prompts[defined] / counts[:, defined].sum(axis=1)
        np.testing.assert_allclose(found.resamples[found.rows.index(row)], drawn)
    srcc = found.clusters[found.clusters["row"] == found.rows.index(cells[0][0])]
    assert srcc["cluster"].tolist() == [f"prompt {k}" for k in range(1, 8)]


@pytest.mark.filterwarnings("ignore:Covariance of the parameters")  # of the other solver
def test_within_models_each_model_is_a_pool_of_its_own(tmp_path: Path) -> None:
    rows = table(n_prompts=12, n_models=3)
    for given in rows[::3]:
        given["r"] = [2, 2, 2]
    one = benchmark(tmp_path, rows, evaluation={"pool": "model", "ties": ALL_TIES})
    x, y = noisy(rows), np.array([np.mean(given["r"]) for given in rows])
    answers, found = measured(one, x, n_resamples=4)
    by = rows_by(found)
    models = [np.arange(m, 36, 3) for m in range(3)]
    for measure, plain in PLAIN.items():
        row = by[measure, "assay", None, None]
        assert row.value == pytest.approx(
            np.mean([plain(x[g], y[g]) for g in models[1:]]), abs=2e-6
        )
        assert "models left out, where it is undefined: 1" in row.note
    for variant, ties in VARIANTS.items():
        row = by["pairwise_accuracy", variant, None, None]
        limits = [
            tie_calibrated(x[g], y[g]).threshold if ties == "calibrated" else 0.0 for g in models
        ]
        values = [pairwise(x[g], y[g], e, ties) for g, e in zip(models, limits, strict=True)]
        assert row.value == pytest.approx(np.nanmean(values)), variant
    counts = one.plan(answers, 4).counts.astype(int)
    for draw, weights in enumerate(counts):
        drawn = [np.repeat(g, weights) for g in models[1:]]
        expected = np.mean([PLAIN["srcc"](x[g], y[g]) for g in drawn])
        at = found.rows.index(by["srcc", "assay", None, None])
        assert found.resamples[at, draw] == pytest.approx(expected)


def test_a_resample_is_a_pool_with_its_prompts_repeated(tmp_path: Path) -> None:
    rows = table()
    one = benchmark(
        tmp_path, rows, evaluation={"ties": ALL_TIES}, items={"model": "model", "skills": "skill"}
    )
    x, y = noisy(rows), np.array([np.mean(row["r"]) for row in rows])
    answers, found = measured(one, x, n_resamples=3)
    for skill in (None, "one"):
        inside = np.array([skill in (None, row["s"]) for row in rows])
        threshold = tie_calibrated(x[inside], y[inside]).threshold
        for draw, weights in enumerate(one.plan(answers, 3).counts.astype(int)):
            drawn = np.repeat(np.arange(48), np.repeat(weights, 6) * inside)
            for row in found.rows:
                if (row.facet, row.skill) != ("mean", skill) or row.measure in ("plcc", "rmse"):
                    continue
                if row.measure == "pairwise_accuracy":
                    ties = VARIANTS[str(row.variant)]
                    limit = threshold if ties == "calibrated" else 0.0
                    expected = pairwise(x[drawn], y[drawn], limit, ties)
                else:
                    expected = PLAIN[row.measure](x[drawn], y[drawn])
                value = found.resamples[found.rows.index(row), draw]
                assert value == pytest.approx(expected), (row.measure, row.variant)


@pytest.mark.first_quick
@pytest.mark.parametrize("pool", ["prompt", "all", "model"])
def test_images_without_a_score_are_left_out_or_withhold_the_value(
    tmp_path: Path, pool: str
) -> None:
    rows = table()
    x = noisy(rows)
    x[::5] = NAN
    for missing in ("drop", "fail"):
        one = benchmark(tmp_path / missing, rows, evaluation={"pool": pool, "missing": missing})
        for row in measured(one, x)[1].rows:
            assert row.n_missing == 10
            assert row.note.endswith(": 10")
            assert math.isnan(row.value) is (missing == "fail")
    row = rows_by(measured(benchmark(tmp_path / "again", rows), x)[1])["srcc", "assay", None, None]
    kept = np.isfinite(x)
    y = np.array([np.mean(row["r"]) for row in rows])
    assert row.value == pytest.approx(PLAIN["srcc"](x[kept], y[kept]))


@pytest.mark.parametrize("pool", ["all", "prompt", "model"])
@pytest.mark.parametrize(("level", "says"), [("none", "fewer"), ("equal", "same score")])
def test_no_scores_and_equal_scores_have_rows_that_say_why(
    tmp_path: Path, pool: str, level: str, says: str
) -> None:
    one = benchmark(tmp_path, table(), evaluation={"pool": pool, "ties": ALL_TIES})
    found = measured(one, np.full(48, NAN if level == "none" else 2.0))[1]
    for row in found.rows:
        if row.measure == "pairwise_accuracy" and level == "equal":
            assert (row.value == 0.0) is (row.variant == "ignore_tie")
        else:
            assert math.isnan(row.value)
            assert (says if pool == "all" else "defined nowhere") in row.note


def test_equal_ratings_leave_no_pair_where_ties_are_ignored(tmp_path: Path) -> None:
    rows = [{**row, "r": [3, 3]} for row in table()]
    one = benchmark(tmp_path, rows, evaluation={"ties": ALL_TIES})
    by = rows_by(measured(one, noisy(rows) + np.arange(48))[1])
    assert by["pairwise_accuracy", "assay", None, None].value == 1.0
    row = by["pairwise_accuracy", "ignore_tie", None, None]
    assert (math.isnan(row.value), row.note) == (True, "every image has the same rating")


def test_a_fit_that_is_not_the_best_curve_has_no_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table()
    for pool in ("all", "model"):
        one = benchmark(
            tmp_path / pool, rows, evaluation={"pool": pool, "measures": ["srcc", "plcc"]}
        )
        monkeypatch.setattr(logistic, "plcc", lambda *_: logistic.Plcc(0.01, "", 1.0))
        row = rows_by(measured(one, noisy(rows))[1])["plcc", "assay", None, None]
        assert row.value == pytest.approx(0.01)
        assert "no interval" in row.note
        assert math.isnan(row.ci_low)


# What the ratings alone say.


CHANCES = [
    ("all", "pairwise_accuracy", "assay", 0),
    ("all", "pairwise_accuracy", "no_calibration", 0),
    ("all", "pairwise_accuracy", "ignore_tie", 0),
    ("all", "pairwise_accuracy", "assay", 1),  # more than a third of the pairs is tied
    ("all", "srcc", "assay", 0),
    ("all", "rmse", "assay", 0),
    ("prompt", "pairwise_accuracy", "assay", 1),
    ("prompt", "pairwise_accuracy", "no_calibration", 0),
    ("prompt", "krcc", "assay", 0),
    ("model", "pairwise_accuracy", "no_calibration", 0),
    ("model", "pairwise_accuracy", "assay", 1),
    ("model", "rmse", "assay", 0),
]


@pytest.mark.first_quick
@pytest.mark.parametrize(("pool", "measure", "variant", "coarse"), CHANCES)
def test_chance_is_what_random_scores_reach(
    tmp_path: Path, pool: str, measure: str, variant: str, coarse: int
) -> None:
    rows = table(n_prompts=30, n_models=6)
    if coarse:
        rows = [{**row, "r": [2 + (k % 5 > 3)]} for k, row in enumerate(rows)]
    headline = {"measure": measure, "variant": variant}
    one = benchmark(
        tmp_path, rows, headline=headline,
        evaluation={"pool": pool, "ties": ALL_TIES, "measures": [measure]},
    )  # fmt: skip
    answers = answers_of(one)
    random = np.random.default_rng(4)
    names = [f"m{k}" for k in range(60)]
    scores = pd.DataFrame(random.random((180, 60)), list(answers.pair_ids), names)
    found = one.measure(ScoreTable(scores), answers, one.plan(answers, 0)).rows
    values = [row.value for row in found if (row.facet, row.variant) == ("mean", variant)]
    # The threshold and the curve are the best on these images, so they find a little in anything.
    found_there = {"pairwise_accuracy": 0.04, "rmse": 0.07} if variant == "assay" else {}
    slack = found_there.get(measure) or 4 * float(np.std(values)) / math.sqrt(len(values))
    assert np.mean(values) == pytest.approx(one.chance(answers), abs=slack)


def test_chance_of_a_fitted_curve_is_not_known(tmp_path: Path) -> None:
    one = benchmark(tmp_path, table(), headline={"measure": "plcc"})
    assert math.isnan(one.chance(answers_of(one)))


def test_chance_without_two_ratings_is_not_known(tmp_path: Path) -> None:
    one = benchmark(tmp_path, table(1, 1), headline={"measure": "pairwise_accuracy"})
    assert math.isnan(one.chance(answers_of(one)))


@pytest.mark.parametrize("pool", ["all", "prompt", "model"])
@pytest.mark.parametrize("split", [None, "v"])
def test_the_ceiling_is_one_rater_against_the_mean_of_the_others(
    tmp_path: Path, pool: str, split: str | None
) -> None:
    rows = table()
    del rows[3]["r"][2]
    one = benchmark(
        tmp_path, rows, evaluation={"pool": pool},
        **({"items": {"model": "model", "split": "split"}, "headline": {"split": split}} if split else {}),
    )  # fmt: skip
    found = []
    key = {"all": lambda row: 0, "prompt": lambda row: row["p"], "model": lambda row: row["m"]}[
        pool
    ]
    for rater in range(3):
        pools: dict[Any, list[tuple[float, float]]] = {}
        for row in rows:
            if len(row["r"]) > rater and split in (None, row["h"]):
                others = np.mean([one for k, one in enumerate(row["r"]) if k != rater])
                pools.setdefault(key(row), []).append((row["r"][rater], float(others)))
        values = [
            PLAIN["srcc"](*np.array(of).T) for of in pools.values() if np.ptp(of, axis=0).all()
        ]
        found.append(np.mean(values))
    ceiling = one.ceiling(answers_of(one))
    assert ceiling is not None
    assert ceiling.value == pytest.approx(np.mean(found))
    assert "one rater" in ceiling.meaning


def test_means_alone_have_a_ceiling_where_their_deviations_are_known(tmp_path: Path) -> None:
    rows = [{**row, "r": [3.0 + 0.1 * k]} for k, row in enumerate(table(3, 3))]
    means: dict[str, Any] = {"mean": "q", "ratings": None}
    one = benchmark(tmp_path / "0", rows, gold={"mean": means, "other": None})
    assert one.ceiling(answers_of(one)) is None
    assert one.labels(answers_of(one)) == {}
    column = {**COLUMNS, "sd": {"const": 0.5}}
    tables = [
        {
            "name": "t",
            "path": "labels.json",
            "columns": {**column, "sd": {"const": 0.5, "type": "float"}},
        }
    ]
    gold = {"mean": {**means, "sd": "sd", "n": 9}, "other": None}
    one = benchmark(tmp_path / "1", rows, gold=gold, tables=tables)
    ceiling = one.ceiling(answers_of(one))
    variance = np.var([row["q"] for row in rows], ddof=1)
    truth = variance - 0.25 / 9
    assert ceiling is not None
    assert ceiling.value == pytest.approx(truth / math.sqrt((truth + 0.25) * (truth + 0.25 / 8)))
    krcc = benchmark(tmp_path / "2", rows, gold=gold, tables=tables, headline={"measure": "krcc"})
    assert krcc.ceiling(answers_of(krcc)) is None


def test_facts_and_labels(tmp_path: Path) -> None:
    rows = table()
    one = benchmark(tmp_path, rows)
    answers = answers_of(one)
    labels = one.labels(answers)
    assert sum(labels.values()) == 144
    assert labels["3"] == sum(row["r"].count(3) for row in rows)
    facts = one.facts(answers)
    guesses = facts["What needs no look at an image"]
    assert guesses["measure"].tolist() == [MEASURES[name].title for name in MEASURES] * 2
    assert guesses["facet"].tolist() == ["mean"] * 6 + ["other"] * 6
    assert facts["How far people agree"]["facet"].tolist() == ["mean"]
    assert facts["Krippendorff's alpha of the ratings"].columns.tolist() == [
        "facet", "nominal", "ordinal", "interval",
    ]  # fmt: skip
    by_model = facts["Mean rating by model"].set_index("model")
    assert by_model.loc["m1", "mean"] == pytest.approx(
        np.mean([np.mean(row["r"]) for row in rows if row["m"] == "m1"])
    )
    between = facts["Correlation between the facets"].iloc[0]
    y = np.array([np.mean(row["r"]) for row in rows])
    assert between["srcc"] == pytest.approx(PLAIN["srcc"](y, np.array([row["q"] for row in rows])))
    assert answers.counts()["mean: ratings"] == 144


def test_fine_ratings_of_one_facet_without_models_have_few_facts(tmp_path: Path) -> None:
    rows = [{**row, "r": [1 + k / 50, 2 + k / 99]} for k, row in enumerate(table(10, 6))]
    one = benchmark(tmp_path, rows, gold={"mean": {"mean": None, "ratings": "r"}, "other": None},
                    items={"model": ""})  # fmt: skip
    answers = answers_of(one)
    assert set(one.facts(answers)) == {"What needs no look at an image", "How far people agree"}
    assert one.labels(answers) == {}


def test_cases_are_the_images_of_each_prompt(tmp_path: Path) -> None:
    rows = table()
    rows[0]["r"] = []
    one = benchmark(tmp_path, rows, items={"model": "model", "skills": "skill", "split": "split"})
    cases = one.cases(answers_of(one), None)
    assert cases is not None
    first, second = cases.iloc[0], cases.iloc[1]
    assert (first["said"], math.isnan(first["expected"])) == ("not rated", True)
    assert second["said"] == f"{np.mean(rows[1]['r']):.1f} of 5"
    assert (second["case_id"], second["split"], second["skills"]) == ("prompt 0", "v", "one")
    without = benchmark(tmp_path / "again", rows, items={"model": "model", "text": ""})
    assert without.cases(answers_of(without), None) is None


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"evaluation": {"pool": "prompt", "measures": ["srcc", "plcc"]}}, "measure plcc"),
        ({"evaluation": {"pool": "prompt"}, "headline": {"measure": "rmse"}}, "measure rmse"),
        ({"evaluation": {"missing": "wrong"}}, "missing = wrong"),
        ({"evaluation": {"pool": "model"}, "items": {"model": ""}}, "items.model"),
        ({"headline": {"facet": "moon"}}, "'moon'"),
    ],
)
def test_what_the_pools_do_not_allow_is_refused(
    tmp_path: Path, keys: dict[str, Any], says: str
) -> None:
    with refused("invalid_benchmark", says):
        benchmark(tmp_path, table(2, 2), **keys)


def test_a_headline_without_a_facet_is_that_of_the_first(tmp_path: Path) -> None:
    one = benchmark(tmp_path, table(), headline={"facet": None})
    answers = answers_of(one)
    np.testing.assert_array_equal(one.gold_of_pairs(answers), answers.means["mean"])


# AGIQA-3K, whose labels ship with Assay.


@pytest.mark.slow
def test_agiqa_3k_has_its_figures() -> None:
    one = load_registry()["agiqa3k"]
    assert isinstance(one, RatingBenchmark)
    answers = answers_of(one)
    quality = pd.DataFrame({"quality": answers.means["quality"]}, list(answers.pair_ids))
    rows = one.measure(ScoreTable(quality), answers, one.plan(answers, 0)).rows
    found = {row.measure: row.value for row in rows if row.facet == "align"}
    expected = {"srcc": 0.741871, "krcc": 0.554676, "pearson": 0.814107}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=5e-7)
    ceiling = one.ceiling(answers)
    assert ceiling is not None
    assert ceiling.value == pytest.approx(0.768, abs=5e-4)
    people = one.facts(answers)["How far people agree"].set_index("facet")["Spearman ρ"]
    assert people["quality"].iloc[0] == pytest.approx(0.832, abs=5e-4)
    controls = one.measure(control_scores(one, answers), answers, one.plan(answers, 0)).rows
    values = {(row.metric, row.measure, row.facet): row.value for row in controls}
    for label, golden in one.card.golden.items():
        value = values[golden.metric, golden.measure, golden.facet]
        assert value == pytest.approx(golden.value, abs=golden.tol), label
