"""Protocol of TIFA160 on small tables: its rows, and where there is no value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.rows import ONE_CLUSTER, Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.load import GOLDS, Tifa160Answers
from benchmarks.tifa160.protocol import CARD, MEASURES, measure
from tests.benchmarks.pool_rows import check_pools

NAN = math.nan
MODELS = ("a", "b", "c", "d", "e")


def made_up(n_prompts: int = 12, seed: int = 0) -> Tifa160Answers:
    """Answers with five images per prompt and random ratings; every third prompt is drawbench."""
    rng = np.random.default_rng(seed)
    prompts = [f"{'coco' if k % 3 else 'drawbench'}_{k}" for k in range(n_prompts)]
    rows = [(f"{p}_{model}", p, model, p.split("_")[0]) for p in prompts for model in MODELS]
    images = pd.DataFrame(rows, columns=["pair_id", "prompt_id", "model", "source"])
    ratings = {
        "dsg_likert": rng.integers(1, 6, (len(images), 5)).astype(float),
        "human_avg": rng.integers(1, 6, (len(images), 2)).astype(float),
    }
    sources = [p.split("_")[0] for p in prompts]
    table = pd.DataFrame({"prompt_id": prompts, "prompt": "text", "source": sources})
    return Tifa160Answers(
        pair_ids=tuple(images["pair_id"]),
        clusters=tuple(prompts),
        images=images.assign(**{gold: found.mean(axis=1) for gold, found in ratings.items()}),
        prompts=table,
        ratings=ratings,
    )


def evaluate(answers: Tifa160Answers, scores: object, **directions: Literal[1, -1]) -> Measured:
    table = pd.DataFrame({"m": scores}, index=pd.Index(answers.pair_ids, name="pair_id"))
    plan = ResamplingPlan.for_revision("tifa160", "test", answers.clusters, 200)
    return measure(ScoreTable(table, directions=directions), answers, plan, "tifa160", "test")


def by_key(measured: Measured) -> dict[tuple[str, str | None, str | None], Row]:
    found = {(r.measure, r.facet, r.skill): r for r in measured.rows}
    assert len(found) == len(measured.rows)
    return found


@pytest.fixture(scope="module")
def answers() -> Tifa160Answers:
    return made_up()


@pytest.fixture(scope="module")
def noisy(answers: Tifa160Answers) -> np.ndarray:
    signal = answers.images["dsg_likert"] + answers.images["human_avg"]
    return np.asarray(signal + np.random.default_rng(1).normal(0, 1, signal.size))


def test_every_measure_is_given_for_both_golds_and_srcc_by_source(
    answers: Tifa160Answers, noisy: np.ndarray
) -> None:
    rows = by_key(evaluate(answers, noisy))
    whole = {(name, gold, None) for name in MEASURES for gold in GOLDS}
    parts = {("srcc", gold, source) for gold in GOLDS for source in ("coco", "drawbench")}
    assert set(rows) == whole | parts
    assert {r.split for r in rows.values()} == {"all"}
    assert sum(CARD.headline.matches(r) and r.skill is None for r in rows.values()) == 1
    ours = {("plcc", "dsg_likert", None), ("pairwise_accuracy", "human_avg", None)}
    assert {key for key, row in rows.items() if row.variant == "assay"} == ours | parts
    turned = by_key(evaluate(answers, -noisy, m=-1))
    values = {key: row.value for key, row in rows.items()}
    assert {key: row.value for key, row in turned.items()} == pytest.approx(values)


@pytest.mark.parametrize("gold", GOLDS)
def test_correlations_are_scipys_of_all_images_of_a_source_and_of_repeated_prompts(
    answers: Tifa160Answers, noisy: np.ndarray, gold: str
) -> None:
    measured = evaluate(answers, noisy)
    rows, y = by_key(measured), answers.images[gold].to_numpy()
    for name, test in (
        ("srcc", stats.spearmanr),
        ("krcc", stats.kendalltau),
        ("pearson", stats.pearsonr),
    ):
        row = rows[name, gold, None]
        assert row.value == pytest.approx(test(noisy, y).statistic, abs=1e-12)
        assert row.ci_low < row.value < row.ci_high
        assert (row.n_items, row.n_clusters, row.n_missing, row.note) == (60, 12, 0, "")
    of_coco = (answers.images["source"] == "coco").to_numpy()
    row = rows["srcc", gold, "coco"]
    expected = stats.spearmanr(noisy[of_coco], y[of_coco]).statistic
    assert row.value == pytest.approx(expected, abs=1e-12)
    assert (row.n_items, row.n_clusters) == (40, 8)
    plan = ResamplingPlan.for_revision("tifa160", "test", answers.clusters, 200)
    times = plan.counts_of(list(answers.images["prompt_id"]))[7].astype(int)
    items = np.repeat(np.arange(60), times)
    drawn = measured.resamples[measured.rows.index(rows["srcc", gold, None]), 7]
    assert drawn == pytest.approx(stats.spearmanr(noisy[items], y[items]).statistic, abs=1e-6)


def test_images_without_a_score_are_left_out_and_counted(
    answers: Tifa160Answers, noisy: np.ndarray
) -> None:
    half = np.where(np.arange(60) % 2, noisy, NAN)
    measured = evaluate(answers, half)
    row, kept = by_key(measured)["srcc", "human_avg", None], np.isfinite(half)
    expected = stats.spearmanr(noisy[kept], answers.images["human_avg"][kept]).statistic
    assert row.value == pytest.approx(expected, abs=1e-12)
    assert (row.n_items, row.n_missing, row.n_clusters) == (30, 30, 12)
    assert row.note.endswith("score: 30")
    check_pools(measured)
    check_pools(evaluate(answers, np.ones(60)))


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (np.full(60, 0.5), "same score"),
        (np.full(60, NAN), "fewer than"),
        (np.r_[0.1, 0.2, np.full(58, NAN)], "fewer than"),
    ],
)
def test_without_a_value_a_row_says_why(
    answers: Tifa160Answers, scores: np.ndarray, reason: str
) -> None:
    for row in evaluate(answers, scores).rows:
        assert reason in row.note
        if row.measure != "pairwise_accuracy" or "fewer" in reason:
            assert np.isnan([row.value, row.ci_low]).all()


def test_pairwise_accuracy_of_a_constant_metric_is_the_share_of_tied_ratings(
    answers: Tifa160Answers,
) -> None:
    row = by_key(evaluate(answers, np.full(60, 0.5)))["pairwise_accuracy", "dsg_likert", None]
    gold = answers.images["dsg_likert"].to_numpy()
    tied = (gold[:, None] == gold)[np.triu_indices(60, 1)].mean()
    assert row.value == pytest.approx(tied, abs=1e-12)
    assert row.ci_low < row.ci_high


def test_pairwise_accuracy_tells_the_difference_up_to_which_scores_are_tied() -> None:
    answers = made_up(1)
    images = answers.images.assign(human_avg=[1.0, 1.0, 2.0, 3.0, 4.0])
    found = evaluate(replace(answers, images=images), [0.125, 0.25, 0.5, 1.0, 2.0])
    row = by_key(found)["pairwise_accuracy", "human_avg", None]
    assert (row.value, "0.125" in row.note) == (1.0, True)


def test_equal_ratings_one_prompt_and_ties_of_all_but_one_image(
    answers: Tifa160Answers, noisy: np.ndarray
) -> None:
    flat = replace(answers, images=answers.images.assign(human_avg=3.0))
    rows = by_key(evaluate(flat, noisy))
    assert "same rating" in rows["krcc", "human_avg", None].note
    assert math.isnan(rows["krcc", "human_avg", None].value)
    assert math.isfinite(rows["krcc", "dsg_likert", None].value)
    row = by_key(evaluate(made_up(1), np.arange(5.0)))["srcc", "dsg_likert", None]
    assert (math.isfinite(row.value), math.isnan(row.ci_low)) == (True, True)
    assert (row.n_items, row.n_clusters, row.note) == (5, 1, ONE_CLUSTER)
    one = np.r_[1.0, np.zeros(59)]
    expected = stats.kendalltau(one, answers.images["human_avg"]).statistic
    row = by_key(evaluate(answers, one))["krcc", "human_avg", None]
    assert row.value == pytest.approx(expected, abs=1e-12)
