"""Reader of TIFA160: the released files, and what is said where they are not as released."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.tifa160.load import HUMAN, IMAGES, LIKERT, SOURCES
from benchmarks.tifa160.protocol import CARD, FACETS, Tifa160
from tests.benchmarks.checks import refused
from tests.benchmarks.tifa160.tifa160_tree import human_file, likert, small, write

FIRST = "coco_1_mini_dalle"


def test_both_sets_of_ratings_become_one_table_of_images(tmp_path: Path) -> None:
    answers = small().answers(write(tmp_path))
    assert answers.pair_ids[:2] == (FIRST, "coco_1_vq_diffusion")
    assert answers.clusters == ("coco_1", "drawbench_22")
    assert tuple(answers.images["pair_id"]) == answers.pair_ids
    assert answers.images["prompt_id"].tolist() == ["coco_1"] * 5 + ["drawbench_22"] * 5
    assert answers.images["source"].tolist() == ["coco"] * 5 + ["drawbench"] * 5
    assert answers.images["model"].tolist()[:2] == ["mini_dalle", "vq_diffusion"]
    assert answers.images["human_avg"].tolist()[:5] == [1.5, 2.5, 3.5, 4.5, 1.5]

    assert np.isnan(answers.ratings["dsg_likert"]).sum() == 1
    assert answers.counts() == {
        "images": 10,
        "prompts": 2,
        "coco: prompts": 1,
        "drawbench: prompts": 1,
        "dsg_likert: ratings": 49,
        "human_avg: ratings": 20,
    }
    for order in (likert(), likert().sample(frac=1, random_state=3)):  # in whatever order
        answers = small().answers(write(tmp_path, ratings=order))
        assert answers.images["dsg_likert"].tolist() == [3.0] * 9 + [2.5]


def with_field(field: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda table: table[FIRST].update({field: value})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.pop(FIRST), "9 images; expected 10"),
        (lambda t: t[FIRST].pop("human_avg"), f"{FIRST}, human_avg: Field required"),
        (with_field("human_scores", [1]), f"{FIRST}, human_scores: List should have at least 2"),
        (with_field("human_scores", [1, 6]), f"{FIRST}, human_scores, 1: Input should be less"),
        (with_field("human_scores", [1, "2"]), "Input should be a valid integer (found '2')"),
        (with_field("human_avg", 1.75), "has human_avg 1.75, not the mean of [1, 2]"),
        (with_field("image_path", "a.jpg"), f"has image_path 'a.jpg'; expected '{FIRST}.jpg'"),
        (with_field("text_id", "coco_2"), "is not named <text_id>_<model> with text_id 'coco_2'"),
        (with_field("text", "A cat"), "gives prompt 'coco_1' another text"),
        (lambda t: t.update(x_1_mini_dalle=renamed("x_1")), "has text_id 'x_1'; expected it to"),
        (lambda t: t.update({FIRST: 3}), f"the first at {FIRST}: Input should be a valid dict"),
    ],
)
def test_a_tifa_file_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    human = human_file()
    change(human)
    with refused("data_malformed", HUMAN, says):
        small().answers(write(tmp_path, human))


def renamed(prompt: str) -> dict[str, Any]:
    """An entry of the TIFA file for another prompt."""
    entry = human_file()[FIRST]
    return {**entry, "text_id": prompt, "image_path": f"{prompt}_mini_dalle.jpg"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.drop(columns=["answer", "worker_id"]), "no column worker_id, answer"),
        (lambda t: t.iloc[:-1], "48 dsg_likert: ratings; expected 49"),
        (
            lambda t: t.replace("sd1dot1", "sd9"),
            "10 cells in column t2i_model like 'sd9' (data row 11)",
        ),
        (lambda t: t.assign(answer=t["answer"].replace("3", "3.5")), "like '3.5' (data row 3)"),
        (lambda t: t.replace("coco_1", "coco_9"), "'coco_9_mini_dalle' (data row 1)"),
        (lambda t: pd.concat([t, t.iloc[:1]]), "1 ratings too many, the first is of 'coco_1_mini"),
        (lambda t: pd.concat([t, t.iloc[:1].replace("worker 0", "w")]), "by 'w' (data row 50)"),
    ],
)
def test_a_dsg_file_that_is_not_the_released_one_is_refused(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], says: str
) -> None:
    with refused("data_malformed", LIKERT, says):
        small().answers(write(tmp_path, ratings=change(likert())))


def test_other_files_are_refused(tmp_path: Path) -> None:
    uncounted = small()
    uncounted.card = uncounted.card.model_copy(update={"counts": {}})
    ratings = likert().query("t2i_model != 'mini-dalle'")
    with refused("data_malformed", f"2 images not at all, the first is '{FIRST}'"):
        uncounted.answers(write(tmp_path, ratings=ratings))
    released = Tifa160(CARD.model_copy(update={"counts": {}}))
    with refused("data_malformed", "sha256") as caught:
        released.answers(write(tmp_path))
    assert "7330119" in caught.value.hint
    (tmp_path / HUMAN).write_text("[1, 2]")
    with refused("data_malformed", "the first at its top"):
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


def test_the_names_of_the_images_to_fetch_come_from_the_annotations(tmp_path: Path) -> None:
    names = small().remote_names(IMAGES, write(tmp_path))
    assert names[0] == f"{FIRST}.jpg"
    assert len(names) == 10
    assert small().remote_names(HUMAN, tmp_path) == ()


def test_every_image_is_asked_about_with_its_prompt(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert not small().has_questions(folder)
    with refused("images_missing"):
        small().questions(folder)
    (folder / IMAGES).mkdir()
    with refused("images_missing", "lacks 10 of the 10 images"):
        small().questions(folder)
    for name in small().remote_names(IMAGES, folder):
        (folder / IMAGES / name).write_bytes(name.encode())
    assert small().has_questions(folder)
    questions = small().questions(folder)
    assert tuple(pair.pair_id for pair in questions.pairs) == small().answers(folder).pair_ids
    first = questions.pairs[0]
    assert questions.images[first.image_id]() == f"{FIRST}.jpg".encode()
    assert questions.texts[first.text_id] == "A dog, brown"


def test_the_prompts_are_a_prompt_set_with_their_sources_as_skills(tmp_path: Path) -> None:
    prompts = small().prompts(write(tmp_path))
    assert prompts.to_dict("list") == {
        "prompt_id": ["coco_1", "drawbench_22"],
        "prompt": ["A dog, brown", "Two cats"],
        "split": ["", ""],
        "skills": ["coco", "drawbench"],
    }


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
        "images": 800,
        "prompts": 160,
        "coco: prompts": 84,
        "partiprompt: prompts": 51,
        "paintskill: prompts": 15,
        "drawbench: prompts": 10,
        "dsg_likert: ratings": 3995,
        "human_avg: ratings": 1600,
    }
    assert len(Tifa160().prompts(assay_data)) == 160
    assert answers.images.groupby("prompt_id")["model"].nunique().eq(5).all()
