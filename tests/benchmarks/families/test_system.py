"""Systems: orders of models and rates, from another benchmark or a table, against plain computations."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.families import load_card, system
from benchmarks.families.system import (
    DRAWS_MODELS,
    MEASURES,
    NO_LARGER,
    SystemAnswers,
    SystemBenchmark,
)
from benchmarks.registry import load_registry
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics import systems
from tests.benchmarks.families.cards import (
    RATED,
    answers_as,
    benchmark_of,
    with_keys,
    write_card,
)
from tests.kit.refusals import refused

NAN = math.nan
# The example of Thompson et al. in the specification: three models on six prompts.
HUMAN = np.array([(5, 4, 4, 3, 5, 2), (4, 4, 3, 3, 4, 2), (1, 2, 2, 1, 3, 1)], float).T
METRIC = np.array(
    [(0.9, 0.8, 0.7, 0.6, 0.9, 0.4), (0.7, 0.9, 0.6, 0.7, 0.8, 0.5), (0.3, 0.4, 0.2, 0.3, 0.5, 0.1)]
).T
DATES = {f"m{k}": f"{2018 + k}-07-01" for k in range(8)}


def images(values: FloatArray) -> list[dict[str, Any]]:
    """An image of each model for each prompt, with a rating."""
    return [
        {"image": f"i{p}.{m}", "p": f"p{p}", "model": f"m{m}", "mean": float(values[p, m])}
        for p, m in itertools.product(*map(range, values.shape))
        if not math.isnan(values[p, m])
    ]


def rated(folder: Path, values: FloatArray, scale: Sequence[float] = (0, 5)) -> Path:
    """A card of ratings on two facets; `other` has them turned round."""
    columns = {
        "image": "image", "prompt": "p", "text": "p", "model": "model",
        "mean": {"from": "mean", "type": "float"}, "other": {"from": "other", "type": "float"},
    }  # fmt: skip
    card = with_keys(
        RATED,
        {
            "name": "rated",
            "tables": [{"name": "t", "path": "labels.json", "columns": columns}],
            "files": [{**RATED["files"][0], "path": "labels.json"}],
            "items": {"pair": "image", "model": "model"},
            "gold": {
                "mean": {"mean": "mean", "scale": list(scale)},
                "other": {"mean": "other", "scale": [-10, 10]},
            },
        },
    )
    rows = [row | {"other": -row["mean"]} for row in images(values)]
    return write_card(folder, card, labels_json=json.dumps(rows))


def of_source(folder: Path, values: FloatArray, **keys: Any) -> SystemBenchmark:
    """A card of models that takes the ratings of another card."""
    source = load_card(rated(folder / "rated", values, keys.pop("scale", (0, 5))))
    card = with_keys(
        RATED,
        with_keys(
            {
                "name": "models", "family": "system", "gold": None, "tables": None, "items": None,
                "files": None, "headline": {"measure": "spa", "facet": None},
                "system": {"from": "rated"},
            },
            keys,
        ),
    )  # fmt: skip
    found = benchmark_of(folder / "models", {k: v for k, v in card.items() if v is not None})
    assert isinstance(found, SystemBenchmark)
    if found.said.source == source.name:
        found.link({source.name: source})
    return found


answers_of = partial(answers_as, SystemAnswers)


def measured(
    one: SystemBenchmark, values: FloatArray, n_resamples: int = 10, falls: bool = False
) -> Measured:
    answers = answers_of(one)
    scores = {f"i{p}.{m}": values[p, m] for p, m in itertools.product(*map(range, values.shape))}
    table = pd.DataFrame({"m": [scores[pair] for pair in answers.pair_ids]}, list(answers.pair_ids))
    given = ScoreTable(table, directions={"m": -1} if falls else {})
    return one.measure(given, answers, one.plan(answers, n_resamples))


def values_of(one: SystemBenchmark, values: FloatArray, falls: bool = False) -> dict[str, Row]:
    return {row.measure: row for row in measured(one, values, falls=falls).rows}


def plain_p(found: FloatArray) -> float:
    """Share of all sign patterns with a sum of at least the observed one."""
    sums = [
        sum(s * d for s, d in zip(signs, found, strict=True))
        for signs in itertools.product((1, -1), repeat=len(found))
    ]
    return float(np.mean([one >= sum(found) - 1e-9 for one in sums]))


def test_soft_pairwise_accuracy_of_the_example() -> None:
    p_human, p_metric = (
        systems.flip_p_values(systems.differences(one), 1) for one in (HUMAN, METRIC)
    )
    assert p_human.tolist() == [0.125, 0.015625, 0.015625]
    assert p_metric.tolist() == [0.5, 0.015625, 0.015625]
    assert systems.soft_pairwise_accuracy(p_human, p_metric) == 0.875


@pytest.mark.parametrize("n", [1, 4, 9])
def test_p_values_look_at_every_pattern_of_few_prompts(n: int) -> None:
    found = np.random.default_rng(n).integers(-3, 4, (n, 4)).astype(float)
    expected = [plain_p(column) for column in found.T]
    assert systems.flip_p_values(found, 3) == pytest.approx(expected)


def test_p_values_of_many_prompts_are_drawn_and_near_the_normal_ones() -> None:
    values = np.random.default_rng(2).normal([0.0, 0.1, 0.2, 0.1, 0.0], 1.0, (200, 5))
    drawn = systems.flip_p_values(systems.differences(values), 3)
    normal = systems.Sums.of(values, np.ones((1, 200))).p_values[0]
    assert drawn == pytest.approx(normal, abs=0.03)
    assert systems.Sums.of(np.ones((4, 2)), np.ones((2, 4))).p_values.tolist() == [[1.0], [1.0]]


def test_sums_of_moved_models_are_those_of_moved_values() -> None:
    random = np.random.default_rng(6)
    values, by = random.normal(size=(30, 4)), random.normal(size=4)
    values[random.random(values.shape) < 0.2] = NAN
    counts = random.multinomial(30, np.full(30, 1 / 30), 5).astype(float)
    moved = systems.Sums.of(values, counts).moved(by)
    expected = systems.Sums.of(values + by, counts)
    assert moved.totals == pytest.approx(expected.totals)
    assert moved.squares == pytest.approx(expected.squares)
    assert moved.p_values == pytest.approx(expected.p_values)


@pytest.mark.parametrize("seed", range(4))
def test_orders_against_scipy(seed: int) -> None:
    random = np.random.default_rng(seed)
    human, metric = random.integers(0, 5, (2, 3, 7)).astype(float)
    times = human[0] + np.arange(7)
    weights = np.array([np.ones(7), [2, 0, 1, 1, 1, 0, 2], [0, 3, 0, 2, 1, 1, 0]])
    for row, times_drawn in enumerate(weights.astype(int)):
        drawn = np.repeat(np.arange(7), times_drawn)
        one, other = human[row][drawn], metric[row][drawn]
        alike = [
            1 - abs(np.sign(one[a] - one[b]) - np.sign(other[a] - other[b])) / 2
            for a, b in itertools.combinations(range(7), 2)
            if drawn[a] != drawn[b]
        ]
        expected = {
            systems.spearman: stats.spearmanr(one, other).statistic,
            systems.kendall: stats.kendalltau(one, other).statistic,
            systems.pairwise_accuracy: np.mean(alike),
        }
        for measure, value in expected.items():
            assert measure(human, metric, weights)[row] == pytest.approx(value), measure
        line = stats.linregress(times[drawn], other).slope
        assert systems.slope(metric, times, weights)[row] == pytest.approx(line)


def test_means_that_differ_by_rounding_are_tied() -> None:
    assert systems.orders(np.array([[0.1 + 0.2, 0.3, 1.0]])).tolist() == [[0.0, -1.0, -1.0]]


def test_another_benchmark_gives_the_values(tmp_path: Path) -> None:
    one = of_source(tmp_path, HUMAN)
    answers = answers_of(one)
    assert answers.models == ("m0", "m1", "m2")
    assert answers.human == pytest.approx(HUMAN.mean(axis=0))
    found = values_of(one, METRIC)
    assert found["spa"].value == 0.875
    assert (found["pa"].value, found["srcc"].value, found["krcc"].value) == (1.0, 1.0, 1.0)
    assert (found["spa"].n_items, found["spa"].n_clusters) == (3, 6)
    assert set(found) == set(MEASURES) - {"drift"}
    # The other facet has the order turned round.
    turned = of_source(tmp_path, HUMAN, system={"facet": "other"})
    assert values_of(turned, METRIC)["pa"].value == 0.0
    assert one.gold_of_pairs(answers).tolist() == [row["mean"] for row in images(HUMAN)]
    facts = one.facts(answers)["What people say of the models"]
    assert facts["model"].tolist() == ["m0", "m1", "m2"]
    assert one.prompts(None)["prompt_id"].tolist() == [f"p{k}" for k in range(6)]
    assert one.texts(None)["p0"] == "p0"
    assert not one.has_questions(None)
    with refused("images_missing"):
        one.questions(None)
    assert one.has_answers(None)


def test_resamples_are_of_prompts_and_move_around_the_value(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    human = random.integers(1, 6, (40, 7)) + np.arange(7) / 4
    metric = np.clip(human / 8 + random.normal(0, 0.1, human.shape), 0, 1)
    one = of_source(
        tmp_path, human, scale=[0, 7],
        system={"scale": [0, 7], "released": DATES},
    )  # fmt: skip
    answers = answers_of(one)
    dates = one.facts(answers)["What people say of the models"].set_index("model")["released"]
    assert dates.to_dict() == {f"m{k}": DATES[f"m{k}"] for k in range(7)}
    found = measured(one, metric, 30)
    by_measure = {row.measure: k for k, row in enumerate(found.rows)}
    counts = one.plan(answers, 30).counts
    errors = np.abs(100 * (counts @ metric - counts @ human / 7) / 40)
    for measure, drawn in {"mae": errors.mean(axis=1), "largest_error": errors.max(axis=1)}.items():
        row = found.rows[by_measure[measure]]
        moved = np.maximum(drawn + 5 / 6 * (row.value - drawn.mean()), 0)
        assert found.resamples[by_measure[measure]] == pytest.approx(moved), measure
    p = [systems.flip_p_values(systems.differences(x), one.plan(answers, 0).seed)
         for x in (human, metric)]  # fmt: skip
    spa = found.rows[by_measure["spa"]]
    assert spa.value == pytest.approx(1 - np.abs(p[0] - p[1]).mean())
    for measure in ("spa", "pa", "srcc", "krcc", "mae", "largest_error"):
        row, drawn = found.rows[by_measure[measure]], found.resamples[by_measure[measure]]
        assert abs(drawn.mean() - row.value) < drawn.std()
        assert row.ci_low <= row.value <= row.ci_high < row.ci_low + (0.5 if row.value < 1 else 10)


def test_a_slope_over_dates_has_the_interval_of_models_that_are_drawn(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    far = np.tile(random.uniform(0, 0.5, 7), (400, 1))  # of each model, whatever the prompt
    human = np.full((400, 7), 3.5) + random.normal(0, 0.01, (400, 7))
    one = of_source(
        tmp_path, human, scale=[0, 7],
        system={"scale": [0, 7], "released": DATES},
    )  # fmt: skip
    (row,) = (r for r in measured(one, 0.5 + far, 300).rows if r.measure == "drift")
    years = [pd.Timestamp(DATES[f"m{k}"]).toordinal() / 365.25 for k in range(7)]
    line = stats.linregress(years, 100 * far[0])
    assert row.value == pytest.approx(line.slope, abs=0.1)
    half = stats.t.ppf(0.975, 5) * line.stderr
    assert half < row.ci_high - row.ci_low < 8 * half
    assert (row.n_items, row.n_clusters) == (7, 7) and system.DRAWS_MODELS in row.note


def scattered(n_prompts: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Values of eight models by two judges with different noise, (P, M) each."""
    random = np.random.default_rng(seed)
    true = random.normal(size=8)
    of_prompts = random.normal(0, 3, (2, n_prompts, 1))
    human = true + of_prompts[0] + random.normal(0, 2, (n_prompts, 8))
    seen = 10 * true + random.normal(0, 10, 8)
    return human, seen + of_prompts[1] + random.normal(0, 30, (n_prompts, 8))


def test_models_are_drawn_in_by_what_the_choice_of_prompts_adds_to_their_scatter() -> None:
    human, metric = scattered(60)
    moved = systems.drawn_in(human, metric)
    sides = [(values, by) for values, by in zip((human, metric), moved, strict=True)]
    for values, by in sides:
        within = values - values.mean(axis=1, keepdims=True)
        chance = (within.var(axis=0, ddof=1) / 60).sum() / 7
        means = values.mean(axis=0)
        assert (means + by).var(ddof=1) == pytest.approx(means.var(ddof=1) - chance)
        assert by.sum() == pytest.approx(0, abs=1e-9)
    more = systems.drawn_in(*scattered(6000))
    assert np.abs(more[0]).max() < np.abs(moved[0]).max() / 10


def test_models_that_a_judge_does_not_tell_apart_stay_where_they_are() -> None:
    human, metric = scattered(20)
    for values in (np.ones_like(metric), np.where(np.arange(8) == 2, np.nan, metric)):
        assert not np.any(systems.drawn_in(human, values))


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["pa", "srcc", "krcc", "spa"])
def test_intervals_of_agreement_hold_what_studies_of_the_size_find(measure: str) -> None:
    n = 60
    draws = np.vstack([np.ones(n), np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), 200)])
    found = np.array([
        systems.Judge(human, draws, slice(1, 201), 0).agreement(
            systems.Judge(metric, draws, slice(1, 201), 0), measure
        )
        for human, metric in (scattered_again(n, trial) for trial in range(300))
    ])  # fmt: skip
    low, high = np.quantile(found[:, 1:], [0.025, 0.975], axis=1)
    true = found[:, 0].mean()
    assert 0.9 < ((low <= true) & (true <= high)).mean() <= 1.0


def scattered_again(n_prompts: int, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Other prompts for the same eight models."""
    random = np.random.default_rng([4, trial])
    true = np.linspace(-1.5, 1.5, 8)
    human = true + random.normal(0, 2, (n_prompts, 8))
    return human, true + 0.3 * (-1) ** np.arange(8) + random.normal(0, 3, (n_prompts, 8))


def test_rates_need_scores_from_0_to_1_and_drift_needs_dates(tmp_path: Path) -> None:
    one = of_source(tmp_path, HUMAN, system={"scale": [0, 5]})
    found = values_of(one, METRIC)
    errors = 100 * np.abs(METRIC.mean(axis=0) - HUMAN.mean(axis=0) / 5)
    assert found["mae"].value == pytest.approx(errors.mean())
    assert found["largest_error"].value == pytest.approx(errors.max())
    for wrong, falls in ((10 * METRIC, False), (1 - METRIC, True)):
        row = values_of(one, wrong, falls)["mae"]
        assert math.isnan(row.value)
        assert "no rate" in row.note
    assert values_of(one, 1 - METRIC, True)["spa"].value == 0.875
    with pytest.raises(SubmitterError, match="drift needs"):
        of_source(tmp_path, HUMAN, headline={"measure": "drift"})


@pytest.mark.parametrize("missing", [None, "fail"])
def test_missing_scores_are_left_out_and_shown(tmp_path: Path, missing: str | None) -> None:
    evaluation = {"evaluation": {"missing": missing}} if missing else {}
    one = of_source(tmp_path, HUMAN, **evaluation)
    metric = METRIC.copy()
    metric[2, 1] = NAN
    row = values_of(one, metric)["mae"]
    assert row.n_missing == 1
    assert "1" in row.note
    rates = np.nanmean(metric, axis=0)
    expected = NAN if missing else 100 * np.abs(rates - HUMAN.mean(axis=0)).mean()
    assert row.value == pytest.approx(expected, nan_ok=True)
    metric[:, 1] = NAN
    silent = values_of(one, metric)["spa"]
    assert math.isnan(silent.value)
    if not missing:
        assert "m1" in silent.note


@pytest.mark.parametrize("models", [2, 3])
def test_two_models_have_no_order_and_the_same_score_tells_none(
    tmp_path: Path, models: int
) -> None:
    one = of_source(tmp_path, HUMAN[:, :models])
    found = values_of(one, np.full((6, models), 0.5))
    assert math.isnan(found["srcc"].value)
    assert ("fewer than 3" in found["srcc"].note) is (models == 2)
    if models == 3:
        assert found["pa"].value == 0.5


@pytest.mark.slow
def test_chance_is_what_random_scores_reach(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    human = random.normal(3, 0.5, (30, 5)).clip(0, 5) + np.array([0, 0.05, 0.1, 0.5, 0.6])
    one = of_source(tmp_path, human.clip(0, 5))
    answers = answers_of(one)
    table = pd.DataFrame(random.normal(size=(len(answers.pair_ids), 200)), list(answers.pair_ids))
    table.columns = table.columns.astype(str)
    rows = one.measure(ScoreTable(table), answers, one.plan(answers, 0)).rows
    for measure, expected in (("spa", one.chance(answers)), ("pa", 0.5), ("srcc", 0.0)):
        of = [row.value for row in rows if row.measure == measure]
        spread = np.std(of) / math.sqrt(len(of))
        assert np.mean(of) == pytest.approx(expected, abs=float(4 * spread)), measure
    other = of_source(tmp_path, human.clip(0, 5), headline={"measure": "pa"})
    assert other.chance(answers_of(other)) == 0.5


VALUES: list[Mapping[str, Any]] = [{"name": f"m{k}", "elo": 5.0 - k} for k in range(3)]


def of_table(
    folder: Path,
    values: Sequence[Mapping[str, Any]] = VALUES,
    rows: Sequence[Mapping[str, Any]] = (),
    **keys: Any,
) -> SystemBenchmark:
    """A card of models with a table of values; `rows`: of the images, else those of `HUMAN`."""
    columns = {"image": "image", "prompt": "p", "text": "p", "model": "model"}
    named = {"model": "name", "value": {"from": "elo", "type": "float"}}
    card = with_keys(
        RATED,
        with_keys(
            {
                "family": "system", "gold": None, "headline": {"measure": "pa", "facet": None},
                "tables": [
                    {"name": "t", "path": "images.json", "columns": columns},
                    {"name": "elo", "path": "elo.json", "columns": named},
                ],
                "files": [
                    {**RATED["files"][0], "path": path} for path in ("images.json", "elo.json")
                ],
                "items": {"pair": "image", "model": "model"}, "system": {"human": "elo"},
            },
            keys,
        ),
    )  # fmt: skip
    found = benchmark_of(
        folder,
        card,
        images_json=json.dumps(list(rows) or images(HUMAN)),
        elo_json=json.dumps(list(values)),
    )
    assert isinstance(found, SystemBenchmark)
    return found


def test_a_table_gives_the_values(tmp_path: Path) -> None:
    one = of_table(tmp_path, VALUES[:3])
    found = values_of(one, METRIC)
    assert found["pa"].value == 1.0
    assert "spa" not in found
    answers = answers_of(one)
    assert one.gold_of_pairs(answers).tolist()[:3] == [5.0, 4.0, 3.0]
    assert one.prompts(None)["prompt_id"].tolist() == [f"p{k}" for k in range(6)]
    assert one.texts(None)["p0"] == "p0"
    assert not one.has_questions(None)
    with refused("images_missing"):
        one.questions(None)
    # Images of models that have no value are asked for, and not compared.
    some = of_table(tmp_path / "some", VALUES[:2])
    assert np.isnan(some.gold_of_pairs(answers_of(some))).sum() == 6


def test_a_row_for_each_model_has_resamples_of_models(tmp_path: Path) -> None:
    values = [{"name": f"m{k}", "elo": k / 12.0} for k in range(12)]
    rows = [{"image": f"i0.{k}", "p": f"p{k % 11}", "model": f"m{k}"} for k in range(12)]
    released = {f"m{k}": f"2024-{k + 1:02d}-01" for k in range(12)}
    shared = of_table(tmp_path / "shared", values, rows, system={"released": released})
    rows[11]["p"] = "p11"
    one = of_table(tmp_path, values, rows, system={"released": released})
    scores = np.clip(np.arange(12.0) / 12 + np.random.default_rng(2).normal(0, 0.2, 12), 0, 1)
    # Where two models share a prompt, prompts are drawn, and a model may have none.
    assert "of models" not in values_of(shared, scores[None])["pa"].note
    found = measured(one, scores[None], 30)
    human, errors = np.arange(12) / 12, np.abs(100 * (scores - np.arange(12) / 12))
    by_measure = {row.measure: k for k, row in enumerate(found.rows)}
    years = np.array([pd.Timestamp(day).toordinal() / 365.25 for day in released.values()])
    for draw, weights in enumerate(one.plan(answers_of(one), 30).counts):
        drawn = np.repeat(np.arange(12), weights.astype(int))
        expected = {
            "srcc": stats.spearmanr(human[drawn], scores[drawn]).statistic,
            "krcc": stats.kendalltau(human[drawn], scores[drawn]).statistic,
            "mae": errors[drawn].mean(),
            "drift": stats.linregress(years[drawn], errors[drawn]).slope,
        }
        for measure, value in expected.items():
            assert found.resamples[by_measure[measure]][draw] == pytest.approx(value), measure
    told = values_of(one, scores[None])
    for measure in ("pa", "srcc", "krcc", "mae", "drift"):
        assert told[measure].ci_low < told[measure].value, measure
        assert DRAWS_MODELS in told[measure].note
    largest = told["largest_error"]
    assert largest.value == pytest.approx(errors.max())
    assert math.isnan(largest.ci_low) and NO_LARGER in largest.note


@pytest.mark.parametrize(
    ("values", "word"),
    [([*VALUES, VALUES[0]], "twice"), ([*VALUES, {"name": "m9", "elo": 1.0}], "m9")],
)
def test_values_that_fit_no_model_are_refused(tmp_path: Path, values: Any, word: str) -> None:
    with refused("data_malformed", word):
        of_table(tmp_path, values).answers(None)


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"headline": {"measure": "spa"}}, "by prompt"),
        ({"system": {"human": "nothing"}}, "nothing"),
        ({"items": {"model": ""}}, "items.model"),
        ({"evaluation": {"missing": "wrong"}}, "no wrong score"),
        ({"system": {"from": "x"}}, "exactly one"),
        ({"system": {"facet": "x"}}, "facet"),
        ({"system": {"scale": [1, 0]}}, "scale"),
    ],
)
def test_a_card_that_cannot_be_measured_is_refused(tmp_path: Path, keys: Any, word: str) -> None:
    with refused("invalid_benchmark", word):
        of_table(tmp_path, **keys)


def test_a_source_that_says_nothing_of_models_is_refused(tmp_path: Path) -> None:
    with refused("invalid_benchmark", "'looks'"):
        of_source(tmp_path, HUMAN, system={"facet": "looks"}).answers(None)
    unknown = of_source(tmp_path, HUMAN, system={"from": "nobody"})
    with pytest.raises(PlatformError, match="was not looked up"):
        unknown.answers(None)
    with refused("invalid_benchmark", "'nobody'"):
        unknown.link(load_registry())
    circle = of_source(tmp_path, HUMAN, system={"from": "genai_systems"})
    with refused("invalid_benchmark", "'genai_systems'"):
        circle.link(load_registry())
    of_table(tmp_path / "table").link({})
    ts2 = load_registry()["ts2"]
    with pytest.raises(SubmitterError, match="no ratings of models"):
        system._rated_items(ts2.answers(None), ts2, "")


@pytest.mark.parametrize(("dated", "defined"), [(6, True), (5, False)])
def test_models_may_have_the_dates_that_are_known_of_them(
    tmp_path: Path, dated: int, defined: bool
) -> None:
    known = ["sd_v2-1", "SDXL", "DALLE3", "LWM", "Kolors", "NOVA"]
    names = [name if k < dated else f"nobody {k}" for k, name in enumerate(known)]
    people = [{"name": name, "elo": k / 8} for k, name in enumerate(names)]
    rows = [
        {"image": f"i{p}.{k}", "p": f"p{p}", "model": name}
        for p in range(2)
        for k, name in enumerate(names)
    ]
    one = of_table(tmp_path, people, rows, system={"known_dates": True})
    found = values_of(one, np.tile(np.arange(6) / 8, (2, 1)))["drift"]
    assert math.isfinite(found.value) is defined
    assert (found.note == system.DRAWS_MODELS) is defined
    facts = one.facts(answers_of(one))["What people say of the models"]
    assert (facts["released"] != "").sum() == dated
