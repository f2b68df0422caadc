"""Reading the labels that an operator supplies, in each of their forms."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse_track2.load import SIZE, MaskFileError, mask_of_boxes, unpack
from benchmarks.evalmuse_track2.protocol import BENCHMARKS, CARD, EvalMuseTrack2
from tests.benchmarks.cards import trial_card
from tests.benchmarks.evalmuse_track2.npz_files import npz

MASKS = {name: np.random.default_rng(n).random((SIZE, SIZE)) > 0.9 for n, name in enumerate("ba")}
SCORES = {"b": 1.25, "a": 4.5}


def write(root: Path, name: str, content: bytes) -> Path:
    (root / "evalmuse_track2").mkdir(exist_ok=True)
    (root / "evalmuse_track2" / name).write_bytes(content)
    return root


def labels(**changed: object) -> bytes:
    arrays = {
        "images": np.array(list(MASKS)),
        "scores": np.array(list(SCORES.values())),
        "masks": np.stack(list(MASKS.values())),
    }
    return npz(**{name: a for name, a in (arrays | changed).items() if a is not None})


def box_info() -> dict[str, Any]:
    rectangle = {"bbox_type": 1, "bbox": [{"x": 10, "y": 20}, {"x": 60, "y": 90}]}
    triangle = {"bbox_type": 2, "bbox": [[100, 100], [160, 110], [130, 170]]}
    return {
        "img": {"prompt_en": "a cat", "mos": 3.5, "bbox_info": [[rectangle], [triangle], []]},
        "none": {"prompt_en": "a dog", "mos": 5, "bbox_info": []},
    }


def write_boxes(root: Path, info: object, size: tuple[int, int] = (SIZE, SIZE)) -> Path:
    write(root, "train_info.json", json.dumps(info).encode())
    (root / "evalmuse_track2" / "images").mkdir(exist_ok=True)
    for name in ("img", "none"):
        Image.new("RGB", size).save(root / "evalmuse_track2" / "images" / f"{name}.jpg")
    return root


def test_a_label_file_is_read_in_the_order_of_the_names(tmp_path: Path) -> None:
    answers = EvalMuseTrack2().answers(write(tmp_path, "gt.npz", labels()))
    assert answers.pair_ids == answers.clusters == ("a", "b")
    assert answers.scores.to_dict() == {"a": 4.5, "b": 1.25}
    assert np.array_equal(unpack(answers.masks["a"]), MASKS["a"])
    assert list(answers.sources) == ["evalmuse_track2/gt.npz"]
    assert answers.counts() == {"images": 2, "images with a distorted region": 2}
    assert answers.note == ""


def test_boxes_become_masks_and_the_rows_say_so(tmp_path: Path) -> None:
    data = write_boxes(tmp_path, box_info())
    answers = EvalMuseTrack2().answers(data)
    mask = unpack(answers.masks["img"])
    assert mask[20:90, 10:60].all()
    assert not mask[90, 10:60].any()
    assert not mask[20:90, 60].any()
    assert mask[110, 160]
    assert mask[:, :95].sum() == 70 * 50
    assert not unpack(answers.masks["none"]).any()
    assert "by a rule of ours" in answers.note
    assert answers.counts()["images with a distorted region"] == 1


def test_boxes_of_larger_images_are_scaled_and_cut_at_the_border(tmp_path: Path) -> None:
    info = box_info()
    info["img"]["bbox_info"] = [
        [{"bbox_type": 1, "bbox": [{"x": -50, "y": 0}, {"x": 256, "y": 4000}]}]
    ]
    mask = unpack(EvalMuseTrack2().answers(write_boxes(tmp_path, info, (1024, 768))).masks["img"])
    assert mask[:, :128].all()
    assert not mask[:, 128:].any()


def test_questions_are_images_with_prompts(tmp_path: Path) -> None:
    benchmark = EvalMuseTrack2()
    data = write_boxes(tmp_path, box_info())
    assert benchmark.has_questions(data)
    questions = benchmark.questions(data)
    assert questions.texts == {"img": "a cat", "none": "a dog"}
    assert [pair.pair_id for pair in questions.pairs] == ["img", "none"]
    assert questions.images["img"]()[:2] == b"\xff\xd8"
    assert not benchmark.has_questions(write(tmp_path / "evalmuse_track2", "gt.npz", b""))


def test_prompts_come_from_a_file_of_their_own_where_labels_have_none(tmp_path: Path) -> None:
    data = write_boxes(tmp_path, box_info())
    (data / "evalmuse_track2" / "train_info.json").unlink()
    write(
        data,
        "gt.npz",
        labels(images=np.array(["img"]), scores=np.ones(1), masks=np.zeros((1, SIZE, SIZE))),
    )
    benchmark = EvalMuseTrack2()
    assert not benchmark.has_questions(data)
    write(data, "test_info.json", json.dumps({"img": {"prompt_en": "a cow"}}).encode())
    assert benchmark.questions(data).texts == {"img": "a cow"}
    write(data, "test_info.json", b'{"img": {}}')
    with pytest.raises(SubmitterError, match="no text prompt_en"):
        benchmark.questions(data)


def test_without_labels_the_error_says_how_to_get_them(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(SubmitterError, match=r"gt\.npz") as caught:
            EvalMuseTrack2().answers(data)
        assert caught.value.code == "data_missing"
        assert "FORMAT.md" in caught.value.hint
    assert not EvalMuseTrack2().has_answers(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "npz"),
        (b"PK", "npz"),
        (pickle.dumps({}), "npz"),
        (labels(masks=None), "no array masks"),
        (labels(images=np.array([], "U1"), scores=[], masks=MASKS["a"][None][:0]), "no image"),
        (labels(masks=np.zeros((2, 4, 4))), "expected 512 x 512"),
        (labels(masks=np.full((2, SIZE, SIZE), np.nan)), "not finite"),
        (labels(masks=np.full((2, SIZE, SIZE), np.inf, "f4")), "not finite"),
        (labels(scores=[1.0, float("nan")]), "'a' no score"),
        (labels(scores=[1.0, 1e300]), "'a' the score 1e.300"),
        (labels(images=np.array(["b", "../a"])), "names an image '../a'"),
    ],
)
def test_a_label_file_that_is_wrong_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(SubmitterError, match=says) as caught:
        EvalMuseTrack2().answers(write(tmp_path, "gt.npz", content))
    assert caught.value.code == "data_malformed"
    assert "gt.npz" in caught.value.message


def test_another_count_than_the_cards_is_refused(tmp_path: Path) -> None:
    benchmark = EvalMuseTrack2(trial_card(CARD, images=3))
    with pytest.raises(SubmitterError, match="holds 2 images; expected 3"):
        benchmark.answers(write(tmp_path, "gt.npz", labels()))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda info: info["img"].pop("mos"), "'img' no number mos"),
        (lambda info: info["img"].update(mos="3"), "'img' no number mos"),
        (lambda info: info["img"].pop("bbox_info"), "not a list of lists"),
        (lambda info: info["img"].update(bbox_info=[{}]), "not a list of lists"),
        (lambda info: info["img"].update(bbox_info=[[{"bbox_type": 3, "bbox": []}]]), "neither"),
        (lambda info: info["img"].update(mos=10**400), "at 'img' 'mos' is no finite number"),
        (lambda info: info["img"].update(mos=10**18), "'img' the score 1e.18; expected a mean"),
        (lambda info: info["img"].update(mos=float("nan")), "NaN at 'img' 'mos'"),
        (lambda info: info.update({"../../../x": info["img"]}), "names an image '../../../x'"),
        (lambda info: info.update({"a\\x": info["img"]}), "names an image"),
        (lambda info: info.update({"": info["img"]}), "names an image ''"),
        (lambda info: info.update(img=3), "object of objects"),
        (lambda info: info.update(missing=info["img"]), r"missing\.jpg does not exist"),
    ],
)
def test_an_annotation_file_that_is_wrong_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    info = box_info()
    change(info)
    with pytest.raises(SubmitterError, match=says) as caught:
        EvalMuseTrack2().answers(write_boxes(tmp_path, info))
    assert caught.value.code in ("data_malformed", "images_missing")


@pytest.mark.parametrize(
    "box",
    [
        {"bbox_type": 1, "bbox": [{"x": 1, "y": 2}]},
        {"bbox_type": 1, "bbox": [{"x": "1", "y": 2}, {"x": 3, "y": 4}]},
        {"bbox_type": 1, "bbox": [{"x": float("nan"), "y": 2}, {"x": 3, "y": 4}]},
        {"bbox_type": 1, "bbox": [{"x": 1e9, "y": 2}, {"x": 3, "y": 4}]},
        {"bbox_type": 2, "bbox": [[1, 2], [3, 4]]},
        {"bbox_type": 2, "bbox": [[1, 2], [3, 4], [5]]},
        {"bbox_type": 2, "bbox": [[1, 2], [3, 4], [5, True]]},
        "box",
    ],
)
def test_a_box_of_another_form_is_refused(box: object) -> None:
    with pytest.raises(MaskFileError):
        mask_of_boxes([[box]], SIZE, SIZE)


def test_an_image_that_stands_twice_in_the_annotation_is_refused(tmp_path: Path) -> None:
    data = write_boxes(tmp_path, box_info())
    write(data, "train_info.json", b'{"img": {"mos": 1}, "img": {"mos": 2}}')
    with pytest.raises(SubmitterError, match="key 'img' stands twice"):
        EvalMuseTrack2().answers(data)


def test_names_lead_to_no_file_outside_the_images(tmp_path: Path) -> None:
    info = box_info()
    data = write_boxes(tmp_path, {"../secret": info["img"]})
    Image.new("RGB", (SIZE, SIZE)).save(data / "evalmuse_track2" / "secret.jpg")
    with pytest.raises(SubmitterError, match="expected the name of a file in images/"):
        EvalMuseTrack2().answers(data)


def test_missing_images_are_asked_of_the_organisers(tmp_path: Path) -> None:
    data = write(write_boxes(tmp_path, box_info()), "gt.npz", labels())
    write(data, "info.json", json.dumps({n: {"prompt_en": "x"} for n in MASKS}).encode())
    with pytest.raises(SubmitterError, match="lacks 2 of the 2 images") as caught:
        EvalMuseTrack2().questions(data)
    assert "participants" in caught.value.hint
    assert "fetch" not in caught.value.hint


def test_an_image_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    data = write_boxes(tmp_path, box_info())
    (data / "evalmuse_track2" / "images" / "img.jpg").write_bytes(b"no image")
    with pytest.raises(SubmitterError, match=r"img\.jpg is no image"):
        EvalMuseTrack2().answers(data)


def test_the_registry_is_given_it_with_labels_that_are_not_public() -> None:
    (benchmark,) = BENCHMARKS
    card = benchmark.card
    assert not card.answers_public
    assert (card.headline.measure, card.headline.variant) == ("final", "code")
    assert all(file.supplied and file.optional for file in card.files)
