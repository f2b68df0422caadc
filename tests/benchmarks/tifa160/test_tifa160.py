"""TIFA160: the released files, and the protocol on small tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.rows import ONE_CLUSTER, Measured, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.load import GOLDS, HUMAN, IMAGES, LIKERT, MODEL_NAMES
from benchmarks.tifa160.load import Tifa160Answers as Answers
from benchmarks.tifa160.protocol import CARD, MEASURES, Tifa160
from tests.benchmarks.checks import check_pools, refused, trial_card

Change = Callable[[Any], Any]
FIRST = "coco_1_mini_dalle"
PROMPTS = {"coco_1": "A dog, brown", "drawbench_22": "Two cats"}
COUNTS = {"images": 10, "prompts": 2, "human_avg: ratings": 20, "dsg_likert: ratings": 49}


def small(**counts: int) -> Tifa160:
    """The benchmark with the counts of two prompts by five models and nothing pinned."""
    return Tifa160(trial_card(CARD, **counts or COUNTS))


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
    keys = [(prompt, model) for prompt in PROMPTS for model in MODEL_NAMES.values()]
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
    assert tuple(images["pair_id"]) == answers.pair_ids
    assert images["prompt_id"].tolist() == ["coco_1"] * 5 + ["drawbench_22"] * 5
    assert images["source"].tolist() == ["coco"] * 5 + ["drawbench"] * 5
    assert images["model"].tolist()[:2] == ["mini_dalle", "vq_diffusion"]
    assert images["human_avg"].tolist()[:5] == [1.5, 2.5, 3.5, 4.5, 1.5]
    assert np.isnan(answers.ratings["dsg_likert"]).sum() == 1
    assert answers.counts() == COUNTS | {"coco: prompts": 1, "drawbench: prompts": 1}
    for order in (likert(), likert().sample(frac=1, random_state=3)):  # in whatever order
        answers = small().answers(write(tmp_path, ratings=order))
        assert answers.images["dsg_likert"].tolist() == [3.0] * 9 + [2.5]
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
        (lambda t: t.pop(FIRST), ["expected 10"]),
        (lambda t: t[FIRST].pop("human_avg"), [f"{FIRST}, human_avg: "]),
        (with_field("human_scores", [1]), [f"{FIRST}, human_scores: "]),
        (with_field("human_scores", [1, 6]), [f"{FIRST}, human_scores, 1: "]),
        (with_field("human_scores", [1, "2"]), ["(found '2')"]),
        (with_field("human_avg", 1.75), ["1.75", "[1, 2]"]),
        (with_field("image_path", "a.jpg"), ["'a.jpg'", f"'{FIRST}.jpg'"]),
        (with_field("text_id", "coco_2"), ["'coco_2'"]),
        (with_field("text", "A cat"), ["'coco_1'", "another text"]),
        (lambda t: t.update(x_1_mini_dalle=entry("x_1", "mini_dalle")), ["'x_1'"]),
        (lambda t: t.update({FIRST: 3}), [f"at {FIRST}: "]),
    ],
)
def test_another_tifa_file_is_refused(tmp_path: Path, change: Change, says: list[str]) -> None:
    human = human_file()
    change(human)
    with refused("data_malformed", HUMAN, *says):
        small().answers(write(tmp_path, human))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["answer", "worker_id"]), ["worker_id, answer"]),
        (lambda t: t.iloc[:-1], ["expected 49"]),
        (lambda t: t.replace("sd1dot1", "sd9"), ["10 such cells", "t2i_model", "'sd9'", "row 11"]),
        (lambda t: t.assign(answer=t["answer"].replace("3", "3.5")), ["'3.5'", "row 3"]),
        (lambda t: t.replace("coco_1", "coco_9"), ["'coco_9_mini_dalle'", "row 1)"]),
        (lambda t: pd.concat([t, t.iloc[:1]]), ["1 ratings", f"'{FIRST}'"]),
        (lambda t: pd.concat([t, t.iloc[:1].replace("worker 0", "w")]), ["'w'", "row 50"]),
    ],
)
def test_another_dsg_file_is_refused(tmp_path: Path, change: Change, says: list[str]) -> None:
    with refused("data_malformed", LIKERT, *says):
        small().answers(write(tmp_path, ratings=change(likert())))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with refused("data_malformed", "2 images", f"'{FIRST}'"):
        ratings = likert().query("t2i_model != 'mini-dalle'")
        small(prompts=2).answers(write(tmp_path, ratings=ratings))
    with refused("data_malformed", "sha256") as caught:
        Tifa160(CARD.model_copy(update={"counts": {}})).answers(write(tmp_path))
    assert "7330119" in caught.value.hint
    (tmp_path / HUMAN).write_text("[1, 2]")
    with refused("data_malformed", "its top"):
        small().answers(tmp_path)
    (tmp_path / HUMAN).unlink()
    with refused("data_missing", str(tmp_path / HUMAN)):
        small().prompts(tmp_path)


@pytest.mark.parametrize("name", [HUMAN, LIKERT])
def test_without_both_files_the_ratings_are_those_of_the_bundle(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path)
    (folder / name).unlink()
    assert small().answers(folder).pair_ids == Tifa160().answers(None).pair_ids
    assert small().has_answers(folder)


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
    answers = Tifa160().answers(assay_data)
    assert answers.sources == {file.path: file.sha256 for file in CARD.files if file.sha256}
    assert answers.counts() == {
        "images": 800, "prompts": 160, "coco: prompts": 84, "partiprompt: prompts": 51,
        "paintskill: prompts": 15, "drawbench: prompts": 10,
        "dsg_likert: ratings": 3995, "human_avg: ratings": 1600,
    }  # fmt: skip
    assert len(Tifa160().prompts(assay_data)) == 160
    assert answers.images.groupby("prompt_id")["model"].nunique().eq(5).all()


NAN = math.nan
MODELS = ("a", "b", "c", "d", "e")


def made_up(n_prompts: int = 12, seed: int = 0) -> Answers:
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
    return Answers(
        pair_ids=tuple(images["pair_id"]),
        clusters=tuple(prompts),
        images=images.assign(**{gold: found.mean(axis=1) for gold, found in ratings.items()}),
        prompts=table,
        ratings=ratings,
    )


def evaluate(answers: Answers, scores: object, **directions: Literal[1, -1]) -> Measured:
    table = pd.DataFrame({"m": scores}, index=pd.Index(answers.pair_ids, name="pair_id"))
    plan = ResamplingPlan.for_revision("tifa160", "test", answers.clusters, 200)
    return Tifa160().measure(ScoreTable(table, directions=directions), answers, plan)


def by_key(measured: Measured) -> dict[tuple[str, str | None, str | None], Row]:
    found = {(r.measure, r.facet, r.skill): r for r in measured.rows}
    assert len(found) == len(measured.rows)
    return found


@pytest.fixture(scope="module")
def answers() -> Answers:
    return made_up()


@pytest.fixture(scope="module")
def noisy(answers: Answers) -> np.ndarray:
    signal = answers.images["dsg_likert"] + answers.images["human_avg"]
    return np.asarray(signal + np.random.default_rng(1).normal(0, 1, signal.size))


def test_measures_of_both_golds_and_srcc_by_source(answers: Answers, noisy: np.ndarray) -> None:
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
def test_correlations_are_scipys(answers: Answers, noisy: np.ndarray, gold: str) -> None:
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


def test_images_without_a_score_are_counted(answers: Answers, noisy: np.ndarray) -> None:
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
def test_a_row_without_a_value_says_why(answers: Answers, scores: np.ndarray, reason: str) -> None:
    for row in evaluate(answers, scores).rows:
        assert reason in row.note
        if row.measure != "pairwise_accuracy" or "fewer" in reason:
            assert np.isnan([row.value, row.ci_low]).all()


def test_of_equal_scores_the_share_of_tied_ratings_is_right(answers: Answers) -> None:
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


def test_equal_ratings_one_prompt_and_ties_of_all_but_one(
    answers: Answers, noisy: np.ndarray
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
