"""Reading the released EvalMuse files: what becomes of them, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import SKILLS, EvalMuseAnswers, held_out, prompt_key
from benchmarks.evalmuse.protocol import CARD, EvalMuse
from benchmarks.registry import load_registry
from tests.benchmarks.cards import trial_card
from tests.benchmarks.evalmuse.evalmuse_tree import (
    Record,
    image_bytes,
    labelled_list,
    record,
    write_images,
    write_json,
    write_parts,
)

LIST = "train_list.json"


def board(**counts: int) -> EvalMuse:
    return EvalMuse(trial_card(CARD, **counts))


def load(folder: Path, records: object) -> EvalMuseAnswers:
    return board().answers(write_json(folder, LIST, records))


def refused(folder: Path, records: object) -> str:
    with pytest.raises(SubmitterError) as caught:
        load(folder, records)
    assert caught.value.code == "data_malformed"
    assert LIST in caught.value.message
    return caught.value.message


def test_annotations_are_averaged_to_six_decimals(tmp_path: Path) -> None:
    answers = load(tmp_path, [record("m/1.png"), record("m/2.png", total_score=[2, 2, 3, 3, 3, 1])])
    assert answers.pair_ids == ("m/1.png", "m/2.png")
    assert answers.images["label"].tolist() == [4.0, 2.333333]
    assert answers.elements["element_id"].tolist() == ["cup (object)", "a (Counting) "] * 2
    assert answers.elements["skill"].tolist() == ["object", "counting"] * 2
    assert answers.elements["label"].tolist() == [0.666667, 0.333333] * 2


def test_an_average_in_place_of_a_list_is_taken_as_it_is(tmp_path: Path) -> None:
    averaged = record("m/1.png", total_score=3.666667, element_score={"0 (Counting)": 0.0})
    answers = load(tmp_path, [averaged | {"split_confidence": 0.5}])
    assert answers.images["label"].tolist() == [3.666667]
    assert answers.elements["label"].tolist() == [0.0]
    assert answers.images["split_confidence"].tolist() == [0.5]


def test_flags_are_kept_averaged_beside_the_labels(tmp_path: Path) -> None:
    plain = record("m/2.png")
    del plain["split_confidence"], plain["fidelity_label"]
    images = load(tmp_path, [record("m/1.png"), plain]).images
    assert images["promt_meaningless"].tolist() == [0.333333, 0.333333]
    assert images["attribute_confidence"].tolist() == [1.0, 1.0]
    np.testing.assert_array_equal(images["split_confidence"], [0.0, np.nan])
    assert images["fidelity_label"].tolist() == [";;hand", ""]


def test_var_is_the_sample_variance_over_the_images_of_one_prompt_text(tmp_path: Path) -> None:
    records = [
        record("m/1.png", "a", total_score=[1]),
        record("m/2.png", "a", total_score=[4]),
        record("m/3.png", "A", total_score=[5]),  # the same prompt, but another text
    ]
    images = load(tmp_path, records).images
    np.testing.assert_allclose(images["var"], [4.5, 4.5, np.nan])


def test_a_quarter_of_the_prompts_of_each_type_is_held_out(tmp_path: Path) -> None:
    answers = load(tmp_path, labelled_list(24, images=3))
    prompts = answers.images.drop_duplicates("prompt_id")
    assert prompts["split"].value_counts().to_dict() == {"real": 3, "synth": 3}
    assert len(answers.images) == 18
    assert len(answers.elements) == 36
    assert set(answers.clusters) == set(answers.images["prompt_id"])


def test_the_held_out_prompts_have_the_smallest_hashes(tmp_path: Path) -> None:
    records = labelled_list(24)
    answers = load(tmp_path, records)
    for kind, split in (("real", "real"), ("synthetic", "synth")):
        keys = sorted({prompt_key(r["prompt"]) for r in records if r["type"] == kind})
        found = set(answers.images.loc[answers.images["split"] == split, "prompt_id"])
        assert found == set(keys[:3])


def test_the_answers_do_not_depend_on_the_order_of_the_file(tmp_path: Path) -> None:
    records = labelled_list()
    before = load(tmp_path / "a", records)
    random.Random(0).shuffle(records)
    after = load(tmp_path / "b", records)
    assert (before.pair_ids, before.clusters) == (after.pair_ids, after.clusters)
    pd.testing.assert_frame_equal(before.images, after.images)
    pd.testing.assert_frame_equal(before.elements, after.elements)


def test_one_text_under_two_numbers_is_one_prompt(tmp_path: Path) -> None:
    records = labelled_list(40)
    for number, one in enumerate(labelled_list(40)):
        again = {"img_path": f"again/{number}.png", "prompt_id": f"9{number:04d}"}
        records.append(one | again | {"prompt": f" {one['prompt'].upper()}  "})
    answers = load(tmp_path, records)
    assert len(answers.clusters) == 10
    assert answers.images.groupby("prompt_id").size().tolist() == [4] * 10


def test_a_text_with_both_types_is_drawn_once_as_real(tmp_path: Path) -> None:
    answers = load(tmp_path, [record("m/1.png"), record("m/2.png", kind="synth")])
    assert answers.images["split"].tolist() == ["real", "synth"]
    assert len(answers.clusters) == 1


def test_a_split_needs_no_file() -> None:
    types = {prompt_key(f"prompt {n}"): ("real", "synth")[n % 2] for n in range(100)}
    chosen = held_out(types)
    assert sorted(types[key] for key in chosen) == ["real"] * 13 + ["synth"] * 13
    assert held_out(dict(reversed(types.items()))) == chosen


@pytest.mark.parametrize("kind", ["real", "Real_split", " synthetic", "synth"])
def test_types_are_told_by_how_they_begin(tmp_path: Path, kind: str) -> None:
    answers = load(tmp_path, [record("m/1.png", kind=kind)])
    assert answers.images["split"].tolist() == ["real" if "eal" in kind else "synth"]


def without(key: str) -> Record:
    return {k: v for k, v in record("m/7.png").items() if k != key}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (record("m/7.png", kind="artificial"), "type is 'artificial'; expected real or synth"),
        (record("m/7.png", total_score=[]), "total_score is an empty list"),
        (record("m/7.png", total_score=[3, 6]), "total_score holds 6; expected numbers in 1..5"),
        (record("m/7.png", total_score=[0]), "holds 0; expected numbers in 1..5"),
        (record("m/7.png", total_score=["3"]), "holds '3'"),
        (record("m/7.png", total_score=[True]), "holds True"),
        (record("m/7.png", total_score=None), "holds None"),
        (record("m/7.png", element_score={"cup (object)": []}), "'cup (object)' is an empty list"),
        (record("m/7.png", element_score={"cup (object)": [2]}), "expected numbers in 0..1"),
        (record("m/7.png", element_score={"cup": [1]}), "'cup' is no element with a type"),
        (record("m/7.png", element_score=[1, 0]), "expected an object of elements"),
        (
            record("m/7.png", element_score={"cup (object)": [1], "cup (object) ": [0]}),
            "'cup (object) ' stands twice, spaces aside",
        ),
        (record("m/7.png", split_confidence=[2]), "split_confidence holds 2"),
        (record("m/7.png", prompt=" "), "prompt is ' '; expected a text"),
        *((without(key), f"it has no {key}") for key in
          ("prompt", "type", "total_score", "element_score")),
    ],
)  # fmt: skip
def test_an_unusable_item_is_named_by_position_and_image(
    tmp_path: Path, bad: Record, says: str
) -> None:
    message = refused(tmp_path, [record("m/1.png"), bad])
    assert "item 1 (from 0, img_path 'm/7.png')" in message
    assert says in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "is not a JSON array"),
        ([], "is not a JSON array"),
        ([3], "item 0 (from 0): it is not an object"),
        ([without("img_path")], "item 0 (from 0): it has no img_path"),
        ([record("m/1.png"), record("m/1.png")], "image 'm/1.png' a second time in item 1"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, content: Any, says: str) -> None:
    assert says in refused(tmp_path, content)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'[{"a": 1,', "is not JSON"),
        (b"\xff", "is not JSON"),
        (b'[{"a": 1, "a": 2}]', "'a' stands"),
        (b'[{"total_score": [NaN]}]', "NaN at [0] 'total_score' [0] is no finite number"),
        (rb'[{"prompt": "a \ud800"}]', r"the text 'a \ud800' at [0] 'prompt' holds half of a"),
        (rb'[{"element_score": {"\udfff (object)": [1]}}]', r"the key '\udfff (object)' at [0]"),
    ],
)
def test_broken_json_and_keys_that_stand_twice_are_refused(
    tmp_path: Path, text: bytes, says: str
) -> None:
    folder = write_json(tmp_path, LIST, [])
    (folder / "evalmuse" / LIST).write_bytes(text)
    with pytest.raises(SubmitterError, match="is not JSON") as caught:
        board().answers(folder)
    assert says in caught.value.message


def test_a_list_of_another_size_than_the_card_says_is_refused(tmp_path: Path) -> None:
    folder = write_json(tmp_path, LIST, labelled_list(4))
    with pytest.raises(SubmitterError, match="8 labelled images; expected 9"):
        board(**{"labelled images": 9}).answers(folder)


def test_a_list_that_cannot_be_the_released_one_by_its_size_is_refused(tmp_path: Path) -> None:
    """Other prompts would be held out of a part of the list, under the same name and revision."""
    folder = write_json(tmp_path, LIST, labelled_list(4))
    with pytest.raises(SubmitterError, match="8 labelled images; expected about 32000 to 33500"):
        EvalMuse().answers(folder)
    bounds = {"labelled images, at least": 8, "labelled images, at most": 8}
    assert board(**bounds).answers(folder).counts()["labelled images"] == 8
    for far in ({"labelled images, at least": 9}, {"labelled images, at most": 7}):
        with pytest.raises(SubmitterError, match="8 labelled images"):
            board(**far).answers(folder)


def test_without_the_list_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        assert not board().has_answers(data)
        with pytest.raises(SubmitterError) as caught:
            board().answers(data)
        assert caught.value.code == "data_missing"
        assert "fetch evalmuse" in caught.value.hint


def test_counts_say_how_much_of_what_there_is(tmp_path: Path) -> None:
    records = [record("m/1.png"), record("m/2.png", element_score={})]
    assert load(tmp_path, records).counts() == {
        "images": 2,
        "prompts": 1,
        "elements": 2,
        "images without elements": 1,
        "labelled images": 2,
        "real: images": 2,
        "real: prompts": 1,
        "counting: elements": 1,
        "object: elements": 1,
    }


def test_the_hash_of_the_list_goes_with_the_answers(tmp_path: Path) -> None:
    assert set(load(tmp_path, labelled_list(4)).sources) == {"evalmuse/train_list.json"}


def check_questions(folder: Path) -> None:
    assert board().has_questions(folder)
    answers, questions = board().answers(folder), board().questions(folder)
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    prompts = dict(zip(answers.pair_ids, answers.images["prompt"], strict=True))
    for pair in questions.pairs:
        assert questions.images[pair.image_id]() == image_bytes(pair.pair_id)
        assert questions.texts[pair.text_id] == prompts[pair.pair_id]
        asked = {element.element_id: element.text for element in questions.elements[pair.text_id]}
        assert asked == {"cup (object)": "cup", "a (Counting) ": "a"}


def test_images_are_read_from_the_parts_of_the_archive(tmp_path: Path) -> None:
    records = labelled_list()
    folder = write_json(tmp_path, LIST, records)
    assert not board().has_questions(folder)
    check_questions(write_parts(folder, [r["img_path"] for r in records]))


def test_images_are_read_from_the_unpacked_folder(tmp_path: Path) -> None:
    records = labelled_list()
    folder = write_json(tmp_path, LIST, records)
    check_questions(write_images(folder, "images", [r["img_path"] for r in records]))


def test_a_missing_part_or_image_is_said(tmp_path: Path) -> None:
    records = labelled_list()
    folder = write_json(tmp_path, LIST, records)
    names = [r["img_path"] for r in records]
    write_parts(folder, names[1:])
    (folder / "evalmuse" / "images.zip.part-ac").unlink()
    assert not board().has_questions(folder)
    with pytest.raises(SubmitterError, match="part-ac") as caught:
        board().questions(folder)
    assert caught.value.code == "images_missing"
    held = board().answers(folder).pair_ids
    write_parts(folder, [name for name in names if name != held[0]])
    with pytest.raises(SubmitterError, match="lacks 1 of the 8 images of evalmuse"):
        board().questions(folder)


def test_images_of_one_prompt_are_asked_about_the_elements_of_all(tmp_path: Path) -> None:
    records = [record("m/1.png"), record("m/2.png", element_score={"red (color)": [1]})]
    folder = write_images(write_json(tmp_path, LIST, records), "images", ["m/1.png", "m/2.png"])
    (elements,) = board().questions(folder).elements.values()
    assert [e.element_id for e in elements] == ["cup (object)", "a (Counting) ", "red (color)"]


def ranking(*keys: str) -> dict[str, object]:
    return {
        k: {"prompt": k, "element_score": {"cup (object)": None, "4 (Other)": None}} for k in keys
    }


def test_ranking_prompts_have_split_and_skills(tmp_path: Path) -> None:
    folder = write_json(tmp_path, "prompt_t2i.json", ranking(*(f"p{n}" for n in range(102))))
    prompts = board().prompts(folder)
    assert prompts.columns.tolist() == ["prompt_id", "prompt", "split", "skills"]
    assert prompts["prompt_id"].is_unique
    assert prompts["split"].tolist() == ["real"] * 100 + ["synth"] * 2
    assert set(prompts["skills"]) == {"object"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "is not a JSON object of prompts"),
        ({"a": {"prompt": "b", "element_score": {}}}, "entry 'a' whose prompt differs"),
        ({"a": {"prompt": "a"}}, "entry 'a' with unusable element_score"),
        ({"a": {"prompt": "a", "element_score": {"cup": None}}}, "'cup' is no element"),
    ],
)
def test_prompts_that_are_not_as_released_are_refused(
    tmp_path: Path, content: Any, says: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        board().prompts(write_json(tmp_path, "prompt_t2i.json", content))
    assert caught.value.code == "data_malformed"
    assert says in caught.value.message


@pytest.mark.paper
def test_the_released_ranking_prompts(assay_data: Path) -> None:
    """prompt_t2i.json of DY-Evalab/EvalMuse: 199 prompts, 100 real; pinned by its hash."""
    prompts = EvalMuse().prompts(assay_data)
    assert prompts["split"].value_counts().to_dict() == {"real": 100, "synth": 99}
    assert prompts["prompt"].is_unique
    skills = {skill for cell in prompts["skills"] for skill in cell.split(";") if skill}
    assert skills == set(SKILLS)


def test_ranking_prompts_of_another_size_or_release_are_refused(tmp_path: Path) -> None:
    folder = write_json(tmp_path, "prompt_t2i.json", ranking("a", "b"))
    with pytest.raises(SubmitterError, match="2 ranking prompts; expected 199"):
        EvalMuse().prompts(folder)
    other = EvalMuse(CARD.model_copy(update={"counts": {}}))
    with pytest.raises(SubmitterError, match="sha256"):
        other.prompts(folder)


def test_the_card_says_that_figures_differ_from_the_papers() -> None:
    card = load_registry()["evalmuse"].card
    assert "not public" in card.description
    assert "not comparable one to one" in card.description
    assert tuple(card.skills) == SKILLS
    assert (card.headline.measure, card.headline.split) == ("srcc", "all")
