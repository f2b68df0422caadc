"""TIFA160: the released files as its card reads them, and which rows its protocol gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from benchmarks.tifa160.protocol import HUMAN, IMAGES, LIKERT, MODEL_NAMES, TIFA160, Tifa160
from tests.kit.checks import check_pools, refused, trial_card

Change = Callable[[Any], Any]
FIRST = "coco_1_mini_dalle"
PROMPTS = {"coco_1": "A dog, brown", "drawbench_22": "Two cats"}
COUNTS = {"images": 10, "prompts": 2, "human_avg: ratings": 20, "dsg_likert: ratings": 49}


def small(**counts: int) -> Tifa160:
    """The benchmark with the counts of two prompts by five models and nothing pinned."""
    return Tifa160(trial_card(TIFA160.card, **counts or COUNTS), TIFA160.home)


def entry(prompt: str, model: str, k: int = 0) -> dict[str, Any]:
    scores = [1 + k % 4, 2 + k % 4]
    return {
        "text_id": prompt,
        "image_path": f"{prompt}_{model}.jpg",
        "text": PROMPTS.get(prompt, ""),
        "human_scores": scores,
        "human_avg": sum(scores) / 2,
        "clipscore_vitb32": 20.0 + k,
    }


def human_file() -> dict[str, Any]:
    """The TIFA file: ratings 1 and 2, 2 and 3, ... by the order of the images."""
    keys = [(prompt, str(model)) for prompt in PROMPTS for model in MODEL_NAMES.values()]
    return {f"{p}_{model}": entry(p, model, k) for k, (p, model) in enumerate(keys)}


def likert() -> pd.DataFrame:
    """The DSG file: five ratings of each image, only four of the last."""
    rows = [
        ("tifa160", model, f"tifa160_{i}", prompt, f"worker {rater}", "How?", str(1 + rater))
        for i, prompt in enumerate(PROMPTS)
        for model in MODEL_NAMES
        for rater in range(5)
    ]
    columns = ["dsg_prompt_split", "t2i_model", "item_id", "source_id", "worker_id", "question"]
    return pd.DataFrame(rows[:-1], columns=[*columns, "answer"])


def write(folder: Path, human: Any = None, ratings: pd.DataFrame | None = None) -> Path:
    for name in (HUMAN, LIKERT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / HUMAN).write_text(json.dumps(human_file() if human is None else human))
    (likert() if ratings is None else ratings).to_csv(folder / LIKERT, index=False)
    return folder


def test_both_sets_of_ratings_become_one_table_of_images(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    assert answers.pair_ids[:2] == (FIRST, "coco_1_vq_diffusion")
    assert answers.clusters == ("coco_1", "drawbench_22")
    images = answers.images
    assert images["prompt_id"].tolist() == ["coco_1"] * 5 + ["drawbench_22"] * 5
    assert images["model"].tolist()[:2] == ["mini_dalle", "vq_diffusion"]
    assert images["human_avg"].tolist()[:5] == [1.5, 2.5, 3.5, 4.5, 1.5]
    assert np.isnan(answers.facets["dsg_likert"].ratings).sum() == 1
    assert answers.counts().items() >= (COUNTS | {"coco": 5, "drawbench": 5}).items()
    for order in (likert(), likert().sample(frac=1, random_state=3)):  # in whatever order
        answers = small().answers(write(tmp_path, ratings=order))
        assert answers.means["dsg_likert"].tolist() == [3.0] * 9 + [2.5]
    assert small().prompts(tmp_path).to_dict("list") == {
        "prompt_id": list(PROMPTS),
        "prompt": list(PROMPTS.values()),
        "split": ["", ""],
        "skills": ["coco", "drawbench"],
    }


def with_field(field: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda table: table[FIRST].update({field: value})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.pop(FIRST), [LIKERT, "coco_1", "fit no row"]),
        (lambda t: t[FIRST].pop("human_scores"), [HUMAN, "column human_avg", "row 1)"]),
        (with_field("human_scores", [1, 6]), [HUMAN, "'6'", "from 1 to 5"]),
        (with_field("human_scores", [1, "x"]), [HUMAN, "'x'", "whole number"]),
        (with_field("human_scores", [1]), [HUMAN, "holds 19 human_avg: ratings"]),
        (with_field("text_id", "coco_2"), ["coco_1", "fit no row"]),
        (lambda t: t.update(x_1_mini_dalle=entry("x_1", "mini_dalle")), ["'x_1'", "source"]),
        (lambda t: t.update({FIRST: 3}), [HUMAN, "column prompt", "row 1)"]),
    ],
)
def test_another_tifa_file_is_refused(tmp_path: Path, change: Change, says: list[str]) -> None:
    human = human_file()
    change(human)
    with refused("data_malformed", *says):
        small().answers(write(tmp_path, human))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["answer"]), ["no column answer"]),
        (lambda t: t.iloc[:-1], ["48 dsg_likert: ratings", "expected 49"]),
        (lambda t: t.replace("sd1dot1", "sd9"), ["10 cells", "column model", "'sd9'", "row 11"]),
        (lambda t: t.assign(answer=t["answer"].replace("3", "3.5")), ["'3.5'", "row 3"]),
        (lambda t: t.replace("coco_1", "coco_9"), ["'coco_9'", "row 1)"]),
    ],
)
def test_another_dsg_file_is_refused(tmp_path: Path, change: Change, says: list[str]) -> None:
    with refused("data_malformed", *says):
        small().answers(write(tmp_path, ratings=change(likert())))


def test_other_files_are_refused(tmp_path: Path) -> None:
    unpinned = TIFA160.card.model_copy(update={"counts": {}})
    with refused("data_malformed", "sha256"):
        Tifa160(unpinned, TIFA160.home).answers(write(tmp_path))
    (tmp_path / HUMAN).write_text("[1, 2]")
    with refused("data_malformed", "no object"):
        small().answers(tmp_path)
    (tmp_path / HUMAN).unlink()
    with refused("data_missing", str(tmp_path / HUMAN)):
        small().prompts(tmp_path)


@pytest.mark.parametrize("name", [HUMAN, LIKERT])
def test_without_both_files_the_ratings_are_those_of_the_bundle(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path)
    (folder / name).unlink()
    assert small().answers(folder).pair_ids == TIFA160.answers(None).pair_ids
    assert small().has_answers(folder) and small().texts(folder) == {}


def test_every_image_is_fetched_by_name_and_asked_about_with_its_prompt(tmp_path: Path) -> None:
    folder = write(tmp_path)
    names = small().remote_names(IMAGES, folder)
    assert (names[0], len(names)) == (f"{FIRST}.jpg", 10)
    assert small().remote_names(HUMAN, folder) == ()
    assert not small().has_questions(folder)
    with refused("images_missing"):
        small().questions(folder)
    (folder / IMAGES).mkdir()
    with refused("images_missing", "10 of the 10"):
        small().questions(folder)
    for name in names:
        (folder / IMAGES / name).write_bytes(name.encode())
    assert small().has_questions(folder)
    questions = small().questions(folder)
    assert tuple(pair.pair_id for pair in questions.pairs) == small().answers(folder).pair_ids
    first = questions.pairs[0]
    assert questions.images[first.image_id]() == f"{FIRST}.jpg".encode()
    assert questions.texts[first.text_id] == PROMPTS["coco_1"]


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
