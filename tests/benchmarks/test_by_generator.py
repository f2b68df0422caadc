"""Validity by generator: the headline on the images of each, against plain computations."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.demo.load import evalmuse_answers, gecko_answers
from benchmarks.registry import load_registry
from benchmarks.rows import Row
from benchmarks.schema import BY_GENERATOR, Benchmark, ScoreTable
from tests.benchmarks.families import test_preference, test_rating

LISTS = [
    {"p": f"p{k}", "x": f"{k}x", "y": f"{k}y", "mx": mx, "my": my, "label": "x" if k % 3 else "y"}
    for k, (mx, my) in enumerate([("A", "B"), ("A", "C"), ("B", "A"), ("C", ""), ("C", "B")] * 4)
]
NAMES = {name: {"from": name, "optional": True} for name in ("mx", "my")}
MODELS: dict[str, Any] = {"columns": {"label": "label", **NAMES}, "items": {"model": ["mx", "my"]}}


def by_generator(one: Benchmark, answers: Any, scores: pd.Series) -> dict[str | None, Row]:
    table = ScoreTable(pd.DataFrame({"m": scores}))
    rows = one.evaluate(table, answers, 50).rows
    return {row.facet: row for row in rows if row.measure == BY_GENERATOR}


def random_scores(pairs: Any, seed: int = 0) -> pd.Series:
    return pd.Series(np.random.default_rng(seed).normal(size=len(pairs)), list(pairs))


@pytest.mark.parametrize("pool", ["all", "prompt", "model"])
def test_ratings_of_a_model_are_one_pool_whatever_that_of_the_card(
    tmp_path: Path, pool: str
) -> None:
    one = test_rating.benchmark(
        tmp_path, test_rating.table(n_prompts=12, n_models=3), evaluation={"pool": pool}
    )
    answers = one.answers(None)
    scores = random_scores(answers.pair_ids)
    scores.iloc[0] = math.nan
    found = by_generator(one, answers, scores)
    assert list(found) == ["m0", "m1", "m2"]
    images = answers.images.assign(score=scores.to_numpy()).dropna()
    for model, row in found.items():
        of_one = images[images["model"] == model]
        plain = stats.spearmanr(of_one["score"], of_one["mean"]).statistic
        assert row.value == pytest.approx(plain)
        assert row.ci_low < row.value < row.ci_high
        assert (row.n_items, row.split, row.skill) == (len(of_one), None, None)
    assert [row.n_missing for row in found.values()] == [1, 0, 0]


def test_a_missing_score_withholds_where_the_card_says_so_and_that_model_alone(
    tmp_path: Path,
) -> None:
    one = test_rating.benchmark(
        tmp_path, test_rating.table(n_prompts=12, n_models=2), evaluation={"missing": "fail"}
    )
    answers = one.answers(None)
    scores = random_scores(answers.pair_ids)
    scores.iloc[0] = math.nan
    found = by_generator(one, answers, scores)
    assert [math.isnan(row.value) for row in found.values()] == [True, False]
    assert found["m0"].note


def test_of_a_split_the_images_of_the_headlines_count(tmp_path: Path) -> None:
    one = test_rating.benchmark(
        tmp_path,
        test_rating.table(n_prompts=16, n_models=2),
        items={"model": "model", "split": "split"},
        headline={"measure": "srcc", "variant": "assay", "facet": "mean", "split": "v"},
    )
    answers = one.answers(None)
    found = by_generator(one, answers, random_scores(answers.pair_ids))
    assert [row.n_items for row in found.values()] == [8, 8]


def test_comparisons_with_an_image_of_a_model_on_either_side_are_its(tmp_path: Path) -> None:
    one = test_preference.benchmark(tmp_path, LISTS, test_preference.LABEL, **MODELS)
    answers = one.answers(None)
    scores = random_scores(answers.pair_ids)
    found = by_generator(one, answers, scores)
    assert set(found) == {"A", "B", "C"}  # an image of nobody known makes no row
    pairs = answers.items.pairs
    score = dict(zip(pairs["image"], scores.loc[list(answers.pair_ids)], strict=True))
    for model, row in found.items():
        its = [r for r in LISTS if model in (r["mx"], r["my"])]
        right = [(score[r["x"]] > score[r["y"]]) == (r["label"] == "x") for r in its]
        assert row.value == pytest.approx(np.mean(right))
        assert (row.n_items, row.split) == (len(its), None)


def test_the_folder_of_an_image_of_evalmuse_is_its_model() -> None:
    answers = evalmuse_answers()
    scores = random_scores(answers.pair_ids)
    found = by_generator(load_registry()["demo_evalmuse"], answers, scores)
    images = answers.images.assign(score=scores.loc[answers.images["pair_id"]].to_numpy())
    for model, of_one in images.groupby(images["pair_id"].str.partition("/")[0]):
        plain = stats.spearmanr(of_one["score"], of_one["label"]).statistic
        assert found[str(model)].value == pytest.approx(plain)
    assert len(found) == 4


@pytest.mark.slow
def test_gecko_has_the_mean_of_its_templates_and_the_mean_over_models_is_the_headline() -> None:
    one, answers = load_registry()["demo_gecko"], gecko_answers()
    scores = random_scores(answers.pair_ids)
    rows = one.evaluate(ScoreTable(pd.DataFrame({"m": scores})), answers, 50).rows
    found = [row.value for row in rows if row.measure == BY_GENERATOR]
    headline = next(row for row in rows if row.skill is None and one.card.headline.matches(row))
    assert len(found) == 4
    assert np.mean(found) == pytest.approx(headline.value)


def test_where_nobody_says_who_made_the_images_there_are_no_rows(tmp_path: Path) -> None:
    rows = test_rating.table(n_prompts=6, n_models=2)
    one = test_rating.benchmark(tmp_path / "1", rows, items={"model": ""})
    answers = one.answers(None)
    assert by_generator(one, answers, random_scores(answers.pair_ids)) == {}
    unnamed = test_preference.benchmark(
        tmp_path / "2", LISTS, test_preference.LABEL, columns={"label": "label"}
    )
    others = unnamed.answers(None)
    assert by_generator(unnamed, others, random_scores(others.pair_ids)) == {}
