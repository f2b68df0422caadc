"""Reader of TIFA160: the released files, and what is said where they are not as released."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.tifa160.load import HUMAN, IMAGES, LIKERT, MODEL_NAMES, SOURCES
from benchmarks.tifa160.protocol import CARD, FACETS, Tifa160
from tests.benchmarks.cards import trial_card
from tests.benchmarks.checks import refused

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
def test_a_tifa_file_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], says: list[str]
) -> None:
    human = human_file()
    change(human)
    with refused("data_malformed", HUMAN, *says):
        small().answers(write(tmp_path, human))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["answer", "worker_id"]), ["worker_id, answer"]),
        (lambda t: t.iloc[:-1], ["expected 49"]),
        (lambda t: t.replace("sd1dot1", "sd9"), ["10 cells", "t2i_model", "'sd9'", "row 11"]),
        (lambda t: t.assign(answer=t["answer"].replace("3", "3.5")), ["'3.5'", "row 3"]),
        (lambda t: t.replace("coco_1", "coco_9"), ["'coco_9_mini_dalle'", "row 1)"]),
        (lambda t: pd.concat([t, t.iloc[:1]]), ["1 ratings", f"'{FIRST}'"]),
        (lambda t: pd.concat([t, t.iloc[:1].replace("worker 0", "w")]), ["'w'", "row 50"]),
    ],
)
def test_a_dsg_file_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], says: list[str]
) -> None:
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


def test_the_registry_finds_it_and_the_card_names_every_facet_and_source() -> None:
    card = load_registry()["tifa160"].card
    assert card == CARD
    assert card.facets == FACETS
    assert tuple(card.skills) == SOURCES
    assert card.headline.measure in card.measures
    assert card.headline.facet in card.facets


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
