"""Ranking set of GenAI-Bench: its files as its card reads them, its choices and its pools."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.families.best_of import RatedGroups as Answers
from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
from tests.benchmarks.genai_ranking.ranking_tree import MODELS, ninth, small, write
from tests.kit.checks import row_of


def read(data: Path) -> Answers:
    found = small().answers(data)
    assert isinstance(found, Answers)
    return found


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return read(write(tmp_path))


def test_images_are_named_by_prompt_model_and_number(answers: Answers, tmp_path: Path) -> None:
    assert answers.pair_ids[9] == "7/SDXL_Base/1"
    assert answers.rated.means[0] == pytest.approx((3 + 3 + 4) / 3)
    assert answers.items.skills()["basic"].sum() == 2 * 18, (
        "prompts outside the set are passed over"
    )
    (table,) = small().facts(answers).values()
    assert set(table["split"]) == set(MODELS)
    cases = small().cases(answers, tmp_path)
    assert cases["case_id"].nunique() == 6
    assert cases["case_id"][9] == "7/SDXL_Base" and cases["said"][0] == "3.3 of 5"


def test_images_may_have_different_numbers_of_ratings(tmp_path: Path) -> None:
    answers = read(write(tmp_path, ninth([2])))
    assert answers.rated.means[answers.pair_ids.index("12/DALLE_3/9")] == 2.0
    assert np.isfinite(answers.rated.ratings).sum() == 54 * 3 - 2


DALLE = {"split": "DALLE_3", "facet": "best_of_9"}


def chance(answers: Answers) -> dict[tuple[str, str], dict[str, float]]:
    """Figures of a random choice and of the best one, by split and facet."""
    (table,) = small().facts(answers).values()
    found: Any = table.set_index(["split", "facet"]).to_dict("index")
    return dict(found)


def of_model(answers: Answers, model: str) -> np.ndarray:
    """Images of a model, shape (prompts, 9)."""
    rows = np.flatnonzero(answers.items.pairs["model"] == model)
    return rows.reshape(-1, 9)


def evaluate(answers: Answers, scores: Any) -> Measured:
    table = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    return small().evaluate(table, answers, n_resamples=30)


def test_a_perfect_metric_always_chooses_one_of_the_best(answers: Answers) -> None:
    rows, best = evaluate(answers, answers.rated.means), chance(answers)
    for split, facet, variant in product(MODELS, ("best_of_9", "best_of_3"), ("paper", "assay")):
        where = {"split": split, "facet": facet, "variant": variant}
        row = row_of(rows, measure="top1_agreement", **where)
        assert (row.value, row.ci_low, row.ci_high) == (1.0, 1.0, 1.0)
        assert (row.n_items, row.n_clusters) == (3 if facet == "best_of_9" else 9, 3)
        row = row_of(rows, measure="rating_of_best", **where)
        assert row.value == pytest.approx(best[split, facet]["best_rating"])
    tagged = row_of(rows, measure="top1_agreement", skill="basic", **DALLE)
    assert (tagged.n_items, tagged.n_clusters) == (2, 2)


def test_equal_scores_take_the_first_image_or_the_average(answers: Answers) -> None:
    rows = evaluate(answers, np.zeros(54))
    paper = row_of(rows, measure="rating_of_best", **DALLE)
    assert paper.value == pytest.approx(
        answers.rated.means[of_model(answers, "DALLE_3")][:, 0].mean()
    )
    of_three = DALLE | {"facet": "best_of_3"}
    even = row_of(rows, measure="top1_agreement", variant="assay", **of_three)
    assert even.value == pytest.approx(chance(answers)["DALLE_3", "best_of_3"]["top1_agreement"])


def test_each_model_has_a_pool_of_its_own(answers: Answers) -> None:
    scores = np.random.default_rng(0).normal(size=54)
    where = {"facet": None, "measure": "pairwise_accuracy", "split": "SDXL_Base"}
    row = row_of(evaluate(answers, scores), **where)
    images = of_model(answers, "SDXL_Base").ravel()
    assert row.value == tie_calibrated(scores[images], answers.rated.means[images]).accuracy
    assert row.n_items == 27
    assert not small().within_text(row) and small().within_text(
        replace(row, measure="top1_agreement")
    )


def test_images_without_a_score_are_never_chosen(answers: Answers) -> None:
    scores = np.array(answers.rated.means)
    scores[of_model(answers, "DALLE_3")[0]] = math.nan
    row = row_of(evaluate(answers, scores), measure="top1_agreement", **DALLE)
    assert (row.value, row.n_items, row.n_missing) == (1.0, 2, 9)
    assert "chosen: 9" in row.note
    for row in evaluate(answers, np.full(54, math.nan)).rows:
        assert math.isnan(row.value)
        assert row.note
