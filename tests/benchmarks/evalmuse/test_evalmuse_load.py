"""Reading the files of EvalMuse-40K: keys of elements, averages, what is held out, images, prompts."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse.load import (
    SKILLS,
    EvalMuseAnswers,
    held_out,
    parse_element_key,
    prompt_key,
)
from benchmarks.evalmuse.protocol import CARD, EvalMuse
from benchmarks.schema import Benchmark
from tests.benchmarks.evalmuse.evalmuse_tree import (
    LIST,
    RANKING,
    image_bytes,
    labelled_list,
    record,
    write_images,
    write_json,
    write_parts,
)
from tests.kit.checks import trial_card
from tests.kit.refusals import refused


def board(**counts: int) -> EvalMuse:
    return EvalMuse(trial_card(CARD, **counts))


def load(folder: Path, records: object) -> EvalMuseAnswers:
    return board().answers(write_json(folder, LIST, records))


# Element keys.


@pytest.mark.parametrize(
    ("key", "text", "kind", "skill"),
    [
        ("two cups (counting)", "two cups", "counting", "counting"),
        ("Violet (Color) ", "Violet", "Color", "color"),
        ("cup ( object ) ", "cup", "object", "object"),
        ("A(B) cat (animal)", "A(B) cat", "animal", "a./h."),
        ("soldiers (human)", "soldiers", "human", "a./h."),
        ("rider (animal/human)", "rider", "animal/human", "a./h."),
        ("hat (object-cloth&accessories)", "hat", "object-cloth&accessories", "object"),
        ("from above (other-perspective)", "from above", "other-perspective", "other"),
        ("taller (comparison)", "taller", "comparison", "other"),
        ("0 (Counting)", "0", "Counting", "counting"),
    ],
)
def test_a_key_is_a_text_and_a_type_with_a_skill(
    key: str, text: str, kind: str, skill: str
) -> None:
    found = parse_element_key(key)
    assert (found.text, found.kind, found.skill) == (text, kind, skill)


@pytest.mark.parametrize("key", ["cup", "", "(object)", "  (object)"])
def test_a_key_without_text_or_type_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="brackets"):
        parse_element_key(key)


RELEASED_TYPES = {
    "attribute": 185, "object": 154, "activity": 87, "human": 60, "other": 55, "location": 51,
    "animal": 45, "Color": 36, "Material": 36, "Counting": 30, "spatial": 27, "color": 24,
    "food": 17, "other-perspective": 17, "Other-writing&symbol": 16,
    "object-cloth&accessories": 16, "object-other": 15, "counting": 14, "material": 13,
    "attribute-style-artist/works": 12, "Other-weather": 12, "Other-time": 12, "Spatial": 10,
    "object-vehicle": 9, "object-household goods": 6, "object-electronic": 5, "animal/human": 3,
    "shape": 1, "comparison": 1, "time": 1,
}  # fmt: skip
RELEASED_SKILLS = {
    "attribute": 197, "object": 205, "activity": 87, "a./h.": 108, "location": 51, "color": 60,
    "material": 49, "counting": 44, "spatial": 37, "food": 17, "shape": 1, "other": 114,
}  # fmt: skip


@pytest.mark.paper
def test_the_released_ranking_prompts_and_their_970_elements(assay_data: Path) -> None:
    """prompt_t2i.json of DY-Evalab/EvalMuse: 199 prompts, 100 real; pinned by its hash."""
    prompts = EvalMuse().prompts(assay_data)
    assert prompts["split"].value_counts().to_dict() == {"real": 100, "synth": 99}
    assert prompts["prompt"].is_unique
    assert {s for cell in prompts["skills"] for s in cell.split(";") if s} == set(SKILLS)
    content = (assay_data / "evalmuse" / RANKING).read_text(encoding="utf-8")
    keys = [key for entry in json.loads(content).values() for key in entry["element_score"]]
    found = [parse_element_key(key) for key in keys]
    assert Counter(element.kind for element in found) == RELEASED_TYPES
    assert Counter(element.skill for element in found) == RELEASED_SKILLS
    assert all(element.text for element in found)
    # Two types are written with a space after the bracket, wherever they have a capital.
    spaced = Counter(parse_element_key(key).kind for key in keys if key.endswith(" "))
    assert spaced == {"Color": 36, "Material": 36}


# The released list of labelled images.


def test_annotations_are_averaged_to_six_decimals(tmp_path: Path) -> None:
    averaged = record("m/3.png", total_score=3.666667, element_score={"0 (Counting)": 0.0})
    plain = record("m/2.png", total_score=[2, 2, 3, 3, 3, 1])
    del plain["split_confidence"], plain["fidelity_label"]
    records = [record("m/1.png"), plain, averaged | {"split_confidence": 0.5}]
    answers = load(tmp_path, records)
    images, elements = answers.images, answers.elements
    assert answers.pair_ids == ("m/1.png", "m/2.png", "m/3.png")
    assert images["label"].tolist() == [4.0, 2.333333, 3.666667]
    keys = ["cup (object)", "a (Counting) "]
    assert elements["element_id"].tolist() == [*keys, *keys, "0 (Counting)"]
    assert elements["skill"].tolist() == ["object", "counting"] * 2 + ["counting"]
    assert elements["label"].tolist() == [0.666667, 0.333333] * 2 + [0.0]
    assert images["promt_meaningless"].tolist() == [0.333333] * 3
    assert images["attribute_confidence"].tolist() == [1.0] * 3
    np.testing.assert_array_equal(images["split_confidence"], [0.0, np.nan, 0.5])
    assert images["fidelity_label"].tolist() == [";;hand", "", ";;hand"]


@pytest.mark.parametrize("write", [repr, json.dumps])
def test_elements_may_be_spelt_out_as_text(tmp_path: Path, write: Callable[[Any], str]) -> None:
    """The card of the dataset has them as strings, and the authors' preprocessing evaluates them."""
    given = {"cup (object)": [1, 1, 0], 'it\'s "a" (Counting) ': [0, 1]}
    (tmp_path / "text").mkdir()
    spelt = load(tmp_path / "text", [record("m/1.png", element_score=write(given))])
    pd.testing.assert_frame_equal(
        spelt.elements, load(tmp_path, [record("m/1.png", element_score=given)]).elements
    )


def test_var_is_the_sample_variance_over_the_images_of_one_prompt_text(tmp_path: Path) -> None:
    records = [
        record("m/1.png", "a", total_score=[1]),
        record("m/2.png", "a", total_score=[4]),
        record("m/3.png", "A", total_score=[5]),  # the same prompt, but another text
    ]
    np.testing.assert_allclose(load(tmp_path, records).images["var"], [4.5, 4.5, np.nan])


def test_a_quarter_of_the_prompts_of_each_type_with_the_smallest_hashes_is_held_out(
    tmp_path: Path,
) -> None:
    records = labelled_list(24, images=3)
    answers = load(tmp_path, records)
    assert set(answers.clusters) == set(answers.images["prompt_id"])
    assert (len(answers.images), len(answers.elements)) == (18, 36)
    for kind, split in (("real", "real"), ("synthetic", "synth")):
        keys = sorted({prompt_key(r["prompt"]) for r in records if r["type"] == kind})
        found = answers.images.loc[answers.images["split"] == split, "prompt_id"]
        assert set(found) == set(keys[:3])


def test_neither_answers_nor_split_depend_on_the_order_of_the_file(tmp_path: Path) -> None:
    records = labelled_list()
    before = load(tmp_path / "a", records)
    random.Random(0).shuffle(records)
    after = load(tmp_path / "b", records)
    assert (before.pair_ids, before.clusters) == (after.pair_ids, after.clusters)
    pd.testing.assert_frame_equal(before.images, after.images)
    pd.testing.assert_frame_equal(before.elements, after.elements)
    types = {prompt_key(f"prompt {n}"): ("real", "synth")[n % 2] for n in range(100)}
    chosen = held_out(types)
    assert sorted(types[key] for key in chosen) == ["real"] * 13 + ["synth"] * 13
    assert held_out(dict(reversed(types.items()))) == chosen


def test_one_text_under_two_numbers_is_one_prompt(tmp_path: Path) -> None:
    records = labelled_list(40)
    for number, one in enumerate(labelled_list(40)):
        again = {"img_path": f"again/{number}.png", "prompt_id": f"9{number:04d}"}
        records.append(one | again | {"prompt": f" {one['prompt'].upper()}  "})
    answers = load(tmp_path, records)
    assert answers.images.groupby("prompt_id").size().tolist() == [4] * 10


def test_a_text_with_both_types_is_drawn_once_as_real(tmp_path: Path) -> None:
    kinds = ("real", "synth", "Real_split", " synthetic")  # told by how they begin
    records = [record(f"m/{n}.png", kind=kind) for n, kind in enumerate(kinds)]
    answers = load(tmp_path, records)
    assert answers.images["split"].tolist() == ["real", "synth"] * 2
    assert len(answers.clusters) == 1


def test_what_is_not_held_out_can_be_trained_on(tmp_path: Path) -> None:
    records = labelled_list(16)
    folder = write_json(tmp_path, LIST, records)
    write_images(folder, "images", [one["img_path"] for one in records])
    held_out, (questions, training) = board().answers(folder), board().training(folder)
    assert (len(held_out.clusters), len(training.clusters)) == (4, 12)
    assert not set(held_out.clusters) & set(training.clusters)
    assert {*held_out.pair_ids, *training.pair_ids} == {one["img_path"] for one in records}
    assert tuple(pair.pair_id for pair in questions.pairs) == training.pair_ids
    assert set(training.elements["pair_id"]) == set(training.pair_ids)
    assert Benchmark.training(board(), folder) is None  # boards that take all of their release


def test_a_list_that_cannot_be_the_released_one_by_its_size_is_refused(tmp_path: Path) -> None:
    """Other prompts would be held out of a part of the list, under the same name and revision."""
    folder = write_json(tmp_path, LIST, labelled_list(4))
    least, most = "labelled images, at least", "labelled images, at most"
    assert board(**{least: 8, most: 8}).answers(folder).labelled == 8
    for other in (
        board(**{"labelled images": 9}), board(**{least: 9}), board(**{most: 7}), EvalMuse(),
    ):  # fmt: skip
        with refused("data_malformed", "8 labelled images"):
            other.answers(folder)


def test_answers_say_how_much_of_what_there_is_and_of_which_file(tmp_path: Path) -> None:
    records = [record("m/1.png"), record("m/2.png", element_score={})]
    answers = load(tmp_path, records)
    assert answers.counts() == {
        "images": 2, "prompts": 1, "elements": 2, "images without elements": 1,
        "labelled images": 2, "real: images": 2, "real: prompts": 1, "counting: elements": 1,
        "object: elements": 1,
    }  # fmt: skip
    assert set(answers.sources) == {"evalmuse/train_list.json"}


# Images.


def test_images_are_read_from_the_parts_of_the_archive_and_asked_about_with_elements(
    tmp_path: Path,
) -> None:
    names = [item["img_path"] for item in labelled_list()]
    folder = write_parts(write_json(tmp_path, LIST, labelled_list()), names)
    questions = board().questions(folder)
    for pair in questions.pairs:
        assert questions.images[pair.image_id]() == image_bytes(pair.pair_id)
        words = {element.element_id: element.text for element in questions.elements[pair.text_id]}
        assert words == {"cup (object)": "cup", "a (Counting) ": "a"}
    write_parts(folder, names[1:])
    with refused("images_missing", "1 of the 8 images"):
        board().questions(folder)
    (folder / "evalmuse" / "images.zip.part-ac").unlink()
    assert not board().has_questions(folder)


def test_images_of_one_prompt_are_asked_about_the_elements_of_all(tmp_path: Path) -> None:
    records = [record("m/1.png"), record("m/2.png", element_score={"red (color)": [1]})]
    folder = write_images(write_json(tmp_path, LIST, records), "images", ["m/1.png", "m/2.png"])
    (elements,) = board().questions(folder).elements.values()
    assert [e.element_id for e in elements] == ["cup (object)", "a (Counting) ", "red (color)"]


# Prompts by which text-to-image models are ranked.


def ranking(names: list[str]) -> dict[str, object]:
    scores = {"cup (object)": None, "4 (Other)": None}
    return {name: {"prompt": name, "element_score": scores} for name in names}


def test_ranking_prompts_have_split_and_skills(tmp_path: Path) -> None:
    folder = write_json(tmp_path, RANKING, ranking([f"p{n}" for n in range(102)]))
    prompts = board().prompts(folder)
    assert prompts.columns.tolist() == ["prompt_id", "prompt", "split", "skills"]
    assert prompts["prompt_id"].is_unique
    assert prompts["split"].tolist() == ["real"] * 100 + ["synth"] * 2
    assert set(prompts["skills"]) == {"object"}


def test_ranking_prompts_of_another_size_or_release_are_refused(tmp_path: Path) -> None:
    folder = write_json(tmp_path, RANKING, ranking(["a", "b"]))
    with refused("data_malformed", "expected 199"):
        EvalMuse().prompts(folder)
    with refused("data_malformed", "sha256"):
        EvalMuse(CARD.model_copy(update={"counts": {}})).prompts(folder)
