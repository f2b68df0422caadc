"""TIFA160: the released files as its card reads them, and which rows its protocol gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.families.items import items_of
from benchmarks.families.rating import RatingAnswers
from benchmarks.families.tables import JoinedTable
from benchmarks.rows import Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.protocol import HUMAN, IMAGES, LIKERT, TIFA160
from tests.benchmarks.tifa160.tifa_tree import FIRST, PROMPTS, likert, small, write
from tests.kit.checks import check_pools


def test_both_sets_of_ratings_become_one_table_of_images(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    images = answers.images
    assert images["prompt_id"].tolist() == ["coco_1"] * 5 + ["drawbench_22"] * 5
    assert images["model"].tolist()[:2] == ["mini_dalle", "vq_diffusion"]
    assert images["human_avg"].tolist()[:5] == [1.5, 2.5, 3.5, 4.5, 1.5]
    assert np.isnan(answers.facets["dsg_likert"].ratings).sum() == 1
    for order in (likert(), likert().sample(frac=1, random_state=3)):  # in whatever order
        answers = small().answers(write(tmp_path, ratings=order))
        assert answers.means["dsg_likert"].tolist() == [3.0] * 9 + [2.5]


def test_every_image_is_fetched_by_name(tmp_path: Path) -> None:
    names = small().remote_names(IMAGES, write(tmp_path))
    assert (names[0], len(names)) == (f"{FIRST}.jpg", 10)
    assert small().remote_names(HUMAN, tmp_path) == ()
    assert small().texts(tmp_path).keys() == PROMPTS.keys()
    (tmp_path / LIKERT).unlink()  # the bundle has no texts
    assert small().texts(tmp_path) == {}


@pytest.mark.paper
def test_the_released_files_have_the_counts_and_hashes_of_the_card(assay_data: Path) -> None:
    answers = TIFA160.answers(assay_data)
    assert answers.sources == {file.path: file.sha256 for file in TIFA160.card.files if file.sha256}
    assert answers.counts() == {
        "pairs": 800, "images": 800, "prompts": 160, "models": 5, "coco": 5 * 84,
        "partiprompt": 5 * 51, "paintskill": 5 * 15, "drawbench": 5 * 10,
        "dsg_likert: ratings": 3995, "human_avg: ratings": 1600,
    }  # fmt: skip
    assert len(TIFA160.prompts(assay_data)) == 160
    assert answers.images.groupby("prompt_id")["model"].nunique().eq(5).all()


MODELS = ("a", "b", "c", "d", "e")
GOLDS = tuple(TIFA160.card.gold)
MEASURES = tuple(TIFA160.card.measures)


@pytest.fixture(scope="module")
def answers() -> RatingAnswers:
    """Five images of each of 12 prompts with random ratings; every third prompt is drawbench."""
    rng = np.random.default_rng(0)
    prompts = [f"{'coco' if k % 3 else 'drawbench'}_{k}" for k in range(12)]
    rows = [(f"{p}_{model}", p, "", model, p.split("_")[0]) for p in prompts for model in MODELS]
    table = pd.DataFrame(rows, columns=["pair", "prompt", "text", "model", "source"])
    ratings = {
        gold: rng.integers(1, 6, (len(rows), n)) for gold, n in zip(GOLDS, (5, 2), strict=True)
    }
    joined = JoinedTable(table.assign(**{gold: one.tolist() for gold, one in ratings.items()}))
    folder = TIFA160.folder(None)
    return TIFA160.labelled(folder, items_of(folder, TIFA160.card, joined))


def evaluate(answers: RatingAnswers, scores: object) -> Measured:
    table = pd.DataFrame({"m": scores}, index=pd.Index(answers.pair_ids, name="pair_id"))
    plan = ResamplingPlan.for_revision("tifa160", "test", answers.clusters, 200)
    return TIFA160.measure(ScoreTable(table), answers, plan)


def by_key(measured: Measured) -> dict[tuple[str, str | None, str | None], Row]:
    found = {(r.measure, r.facet, r.skill): r for r in measured.rows}
    assert len(found) == len(measured.rows)
    return found


@pytest.fixture(scope="module")
def noisy(answers: RatingAnswers) -> np.ndarray:
    signal = sum(answers.means.values())
    return np.asarray(signal + np.random.default_rng(1).normal(0, 1, len(answers.pair_ids)))


def test_measures_of_both_golds_and_srcc_by_source(
    answers: RatingAnswers, noisy: np.ndarray
) -> None:
    measured = evaluate(answers, noisy)
    rows = by_key(measured)
    whole = {(name, gold, None) for name in MEASURES for gold in GOLDS}
    parts = {("srcc", gold, source) for gold in GOLDS for source in ("coco", "drawbench")}
    assert set(rows) == whole | parts
    assert {r.split for r in rows.values()} == {"all"}
    headline = TIFA160.card.headline
    assert sum(headline.matches(r) and r.skill is None for r in rows.values()) == 1
    ours = {("plcc", "dsg_likert", None), ("pairwise_accuracy", "human_avg", None)}
    assert {key for key, row in rows.items() if row.variant == "assay"} == ours | parts
    check_pools(measured)


@pytest.mark.parametrize("gold", GOLDS)
def test_correlations_are_scipys(answers: RatingAnswers, noisy: np.ndarray, gold: str) -> None:
    rows, y = by_key(evaluate(answers, noisy)), answers.means[gold]
    for name, test in (
        ("srcc", stats.spearmanr),
        ("krcc", stats.kendalltau),
        ("pearson", stats.pearsonr),
    ):
        row = rows[name, gold, None]
        assert row.value == pytest.approx(test(noisy, y).statistic, abs=1e-12)
        assert row.ci_low < row.value < row.ci_high
        assert (row.n_items, row.n_clusters, row.n_missing, row.note) == (60, 12, 0, "")
    of_coco = answers.images["prompt_id"].str.startswith("coco").to_numpy()
    row = rows["srcc", gold, "coco"]
    expected = stats.spearmanr(noisy[of_coco], y[of_coco]).statistic
    assert row.value == pytest.approx(expected, abs=1e-12)
    assert (row.n_items, row.n_clusters) == (40, 8)


def test_images_without_a_score_are_left_out_and_counted(
    answers: RatingAnswers, noisy: np.ndarray
) -> None:
    half = np.where(np.arange(60) % 2, noisy, np.nan)
    row, kept = by_key(evaluate(answers, half))["srcc", "human_avg", None], np.isfinite(half)
    expected = stats.spearmanr(noisy[kept], answers.means["human_avg"][kept]).statistic
    assert row.value == pytest.approx(expected, abs=1e-12)
    assert (row.n_items, row.n_missing, row.n_clusters) == (30, 30, 12)
