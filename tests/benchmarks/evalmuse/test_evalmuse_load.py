"""Reading the files of EvalMuse-40K and NTIRE 2025 track 1: what becomes of them, what is refused."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import benchmarks.evalmuse
from benchmarks.evalmuse.load import (
    SKILLS,
    EvalMuseAnswers,
    held_out,
    parse_element_key,
    prompt_key,
)
from benchmarks.evalmuse.protocol import CARD, EvalMuse, EvalMuseNtire
from benchmarks.schema import Benchmark
from benchmarks.scores import parse_scores
from tests.benchmarks.evalmuse.evalmuse_tree import (
    Record,
    image_bytes,
    labelled_list,
    record,
    write_images,
    write_json,
    write_parts,
)
from tests.kit.checks import refused, row_of, trial_card

LIST, NTIRE_LIST, RANKING = "train_list.json", "eval.json", "prompt_t2i.json"


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


def without(key: str) -> Record:
    return {k: v for k, v in record("m/7.png").items() if k != key}


def bad(**changes: Any) -> Record:
    return record("m/7.png", **changes)


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (bad(kind="artificial"), "'artificial'"),
        (bad(total_score=[]), "total_score"),
        (bad(total_score=[3, 6]), "in 1..5"),
        (bad(total_score=[0]), "holds 0"),
        (bad(total_score=["3"]), "holds '3'"),
        (bad(total_score=[True]), "holds True"),
        (bad(total_score=None), "holds None"),
        (bad(element_score={"cup (object)": []}), "'cup (object)'"),
        (bad(element_score={"cup (object)": [2]}), "in 0..1"),
        (bad(element_score={"cup": [1]}), "'cup'"),
        (bad(element_score=[1, 0]), "an object"),
        (bad(element_score={"cup (object)": [1], "cup (object) ": [0]}), "'cup (object) '"),
        (bad(element_score="{'cup (object)': [1]"), "an object"),
        (bad(element_score="__import__('os')"), "an object"),
        (bad(element_score="[1, 0]"), "an object"),
        (bad(element_score="{'cup (object)': [1], 'cup (object)': [0]}"), "twice"),
        (bad(split_confidence=[2]), "split_confidence"),
        (bad(prompt=" "), "prompt is"),
        *((without(key), f"no {key}") for key in ("prompt", "type", "total_score",
                                                  "element_score")),
    ],
)  # fmt: skip
def test_an_unusable_item_is_named_by_position_and_image(
    tmp_path: Path, item: Record, says: str
) -> None:
    with refused("data_malformed", LIST, "item 1 (from 0, img_path 'm/7.png')", says):
        load(tmp_path, [record("m/1.png"), item])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "JSON array"),
        ([], "JSON array"),
        ([3], "item 0 (from 0)"),
        ([without("img_path")], "no img_path"),
        ([record("m/1.png"), record("m/1.png")], "'m/1.png' a second"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, content: Any, says: str) -> None:
    with refused("data_malformed", LIST, says):
        load(tmp_path, content)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'[{"a": 1,', "JSON"),
        (b"\xff", "JSON"),
        (b'[{"a": 1, "a": 2}]', "'a' stands"),
        (b'[{"total_score": [NaN]}]', "NaN at [0] 'total_score' [0]"),
        (rb'[{"prompt": "a \ud800"}]', r"'a \ud800' at [0] 'prompt'"),
        (rb'[{"element_score": {"\udfff (object)": [1]}}]', r"key '\udfff (object)' at [0]"),
    ],
)
def test_broken_json_and_keys_that_stand_twice_are_refused(
    tmp_path: Path, text: bytes, says: str
) -> None:
    folder = write_json(tmp_path, LIST, [])
    (folder / "evalmuse" / LIST).write_bytes(text)
    with refused("data_malformed", LIST, says):
        board().answers(folder)


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


@pytest.mark.parametrize("packed", [True, False], ids=["parts", "unpacked"])
def test_images_are_read_from_the_archive_or_the_folder(tmp_path: Path, packed: bool) -> None:
    records = labelled_list()
    names = [r["img_path"] for r in records]
    folder = write_json(tmp_path, LIST, records)
    assert not board().has_questions(folder)
    if packed:
        write_parts(folder, names)
    else:
        write_images(folder, "images", names)
    assert board().has_questions(folder)
    answers, questions = board().answers(folder), board().questions(folder)
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    prompts = dict(zip(answers.pair_ids, answers.images["prompt"], strict=True))
    for pair in questions.pairs:
        assert questions.images[pair.image_id]() == image_bytes(pair.pair_id)
        assert questions.texts[pair.text_id] == prompts[pair.pair_id]
        asked = {element.element_id: element.text for element in questions.elements[pair.text_id]}
        assert asked == {"cup (object)": "cup", "a (Counting) ": "a"}


def test_a_missing_part_or_image_is_said(tmp_path: Path) -> None:
    records = labelled_list()
    folder = write_json(tmp_path, LIST, records)
    names = [r["img_path"] for r in records]
    write_parts(folder, names)
    (folder / "evalmuse" / "images.zip.part-ac").unlink()
    assert not board().has_questions(folder)
    with refused("images_missing", "part-ac"):
        board().questions(folder)
    held = board().answers(folder).pair_ids
    write_parts(folder, [name for name in names if name != held[0]])
    with refused("images_missing", "1 of the 8 images"):
        board().questions(folder)


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


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "JSON object"),
        ({"a": {"prompt": "b", "element_score": {}}}, "'a' whose"),
        ({"a": {"prompt": "a"}}, "'a'"),
        ({"a": {"prompt": "a", "element_score": {"cup": None}}}, "'cup'"),
    ],
)
def test_prompts_that_are_not_as_released_are_refused(
    tmp_path: Path, content: Any, says: str
) -> None:
    with refused("data_malformed", RANKING, says):
        board().prompts(write_json(tmp_path, RANKING, content))


def test_ranking_prompts_of_another_size_or_release_are_refused(tmp_path: Path) -> None:
    folder = write_json(tmp_path, RANKING, ranking(["a", "b"]))
    with refused("data_malformed", "expected 199"):
        EvalMuse().prompts(folder)
    with refused("data_malformed", "sha256"):
        EvalMuse(CARD.model_copy(update={"counts": {}})).prompts(folder)


# The label file of NTIRE 2025 track 1, which an operator supplies.


def item(img_path: str, *keys: str, **changes: Any) -> dict[str, Any]:
    return {
        "img_path": img_path,
        "total_score": 3.0,
        "element_score": dict.fromkeys(keys, 0.666667),
    } | changes


def test_the_example_of_the_format_page_is_accepted(tmp_path: Path) -> None:
    page = Path(benchmarks.evalmuse.__file__).with_name("FORMAT.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    answers = EvalMuseNtire().answers(write_json(tmp_path, NTIRE_LIST, json.loads(example)))
    assert answers.pair_ids == ("Kolors/02011.png", "SDXL-Turbo/00805.png")
    assert answers.images["label"].tolist() == [4.0, 3.333333]
    assert answers.elements["label"].tolist() == [0.666667, 0.666667, 1.0]
    assert answers.elements["skill"].tolist() == ["color", "counting", "object"]
    assert set(answers.sources) == {"evalmuse/eval.json"}


def test_images_of_one_prompt_or_with_the_same_elements_are_clustered(tmp_path: Path) -> None:
    items = [
        item("a.png", "b (food)", "a (color)"), item("b.png", "a (color)"),
        item("c.png", "a (color)", "b (food)"), item("d.png"), item("e.png"),
        item("f.png", prompt="a cup"), item("g.png", "a (color)", prompt="A cup "),
        item("h.png", "a (color)", prompt="x"),
    ]  # fmt: skip
    answers = EvalMuseNtire().answers(write_json(tmp_path, NTIRE_LIST, items))
    same = answers.images.groupby("prompt_id")["pair_id"].agg(lambda of: "".join(n[0] for n in of))
    assert sorted(same) == ["ac", "b", "d", "e", "fg", "h"]
    assert len(answers.clusters) == 6


NAMES = [f"img_{n:04d}.png" for n in range(20)]


def labelled(tmp_path: Path, **changes: Any) -> Path:
    items = [
        item(name, "cup (object)", f"{n // 2} (counting)", total_score=1 + n % 5, **changes)
        for n, name in enumerate(NAMES)
    ]
    return write_json(tmp_path, NTIRE_LIST, items)


def test_a_scores_file_gets_the_final_score_as_the_headline(tmp_path: Path) -> None:
    ntire = EvalMuseNtire()
    answers = ntire.answers(labelled(tmp_path))
    lines = ["pair_id,score,element_id,element_score"]
    lines += [f"{p},{n % 5 + n % 3 / 10},," for n, p in enumerate(answers.pair_ids)]
    lines += [f"{e.pair_id},,{e.element_id},0.9" for e in answers.elements.itertuples()]
    scores = parse_scores("\n".join(lines).encode(), "s.csv", ntire, answers, metric="m")
    row = row_of(ntire.evaluate(scores, answers, 50), measure="ntire_track1", variant="code")
    assert ntire.card.headline.matches(row)
    assert row.value == pytest.approx(0.25 * 2 + 0.5, abs=0.1)
    assert (row.benchmark, row.n_items, row.n_clusters) == ("evalmuse_ntire", 20, 10)
    assert row.ci_low <= row.value


def test_code_can_be_run_where_prompts_and_images_are_there(tmp_path: Path) -> None:
    ntire = EvalMuseNtire()
    folder = labelled(tmp_path, prompt="a cup")
    assert not ntire.has_questions(folder)
    with refused("images_missing"):
        ntire.questions(folder)
    write_images(folder, "ntire_images", NAMES)
    assert ntire.has_questions(folder)
    questions = ntire.questions(folder)
    assert questions.images["img_0003.png"]() == image_bytes("img_0003.png")
    assert set(questions.texts.values()) == {"a cup"}
    labelled(tmp_path)
    assert not ntire.has_questions(folder)
    with refused("data_malformed", "20 of 20 images"):
        ntire.questions(folder)
