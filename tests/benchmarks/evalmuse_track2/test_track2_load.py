"""Files of track 2: archives of masks, the labels of an operator, what a submitter sends."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse_track2.load import (
    FROM_BOXES,
    SIZE,
    MaskedScores,
    MaskFileError,
    Track2Answers,
    mask_of_boxes,
    pack,
    read_npz,
    resized,
    unpack,
)
from benchmarks.evalmuse_track2.protocol import BENCHMARKS, EvalMuseTrack2
from benchmarks.schema import ScoreTable
from benchmarks.scores import parse_scores, read_scores, write_scores
from tests.benchmarks.evalmuse_track2.track2_tree import (
    MASKS,
    box_info,
    labels,
    npz,
    write,
    write_boxes,
)
from tests.kit.refusals import refused

TRACK2 = EvalMuseTrack2()


class Calls:
    """An object that runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._call = (os.system, (f"touch {marker}",))

    def __reduce__(self) -> Any:
        return self._call


# Archives: sizes are checked before memory is taken, objects are never unpickled.

MOST = 1000
NAMES = np.array(["a", "b"])
SCORES = np.array([1.0, np.nan])
ARRAYS = {"images": NAMES, "scores": SCORES, "masks": MASKS}
WHOLE = npz(**ARRAYS)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npy_header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zipped(compression: int = zipfile.ZIP_DEFLATED, /, **members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


@pytest.mark.parametrize("dtype", ["bool", "u1", "i4", "f2", "f4", ">f8"])
def test_images_scores_and_masks_are_read_as_they_were_written(dtype: str) -> None:
    found = read_npz(npz(**ARRAYS | {"masks": MASKS.astype(dtype)}), MOST, resized)
    np.testing.assert_array_equal([found.scores[name] for name in "ab"], SCORES)
    assert np.array_equal(unpack(found.masks["b"]), MASKS[1])


def test_an_uncompressed_archive_and_one_mask_in_column_order_are_read() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, images=NAMES[:1], scores=SCORES[:1], masks=np.asfortranarray(MASKS[:1]))
    found = read_npz(buffer.getvalue(), MOST, resized)
    assert np.array_equal(unpack(found.masks["a"]), MASKS[0])


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"masks": None}, "array masks"),
        ({"images": None}, "array images"),
        ({"scores": SCORES[:1]}, "1 scores"),
        ({"masks": MASKS[:1]}, "2 x height"),
        ({"masks": MASKS[0]}, "2 x height"),
        ({"images": NAMES[[0, 0]]}, "'a' twice"),
        ({"images": np.arange(2)}, "expected texts"),
        ({"scores": NAMES}, "plain numbers"),
        ({"images": NAMES[None]}, "1 x 2; expected one of"),
        ({"scores": SCORES + np.inf}, "infinite"),
        ({"masks": MASKS * np.nan}, "not finite"),
        ({"masks": MASKS[:, :0]}, "1 to 2048"),
        ({"images": np.array(["x" * 300])}, "256 characters"),
        ({"masks": np.zeros((2, 1500, 1500))}, "8 MB"),
        ({"masks": np.asfortranarray(MASKS)}, "column order"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(
    arrays: dict[str, np.ndarray | None], says: str
) -> None:
    given = {name: array for name, array in (ARRAYS | arrays).items() if array is not None}
    with pytest.raises(MaskFileError, match=says):
        read_npz(npz(**given), MOST, resized)


@pytest.mark.parametrize("version", [(3, 0), (9, 1)])
def test_an_array_of_a_format_that_is_not_read_is_named(version: tuple[int, int]) -> None:
    scores = npy(SCORES)
    other = scores[:6] + bytes(version) + scores[8:]
    content = zipped(images=npy(NAMES), scores=other, masks=npy(MASKS))
    with pytest.raises(MaskFileError, match=rf"scores .*\({version[0]}, "):
        read_npz(content, MOST, resized)


def test_other_compressions_and_encrypted_members_are_refused() -> None:
    with pytest.raises(MaskFileError, match="compressed"):
        read_npz(zipped(zipfile.ZIP_BZIP2, images=npy(NAMES)), MOST, resized)
    plain = bytearray(zipped(images=npy(NAMES)))
    plain[plain.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(MaskFileError, match="encrypted"):
        read_npz(bytes(plain), MOST, resized)


@contextmanager
def within(most_mb: int) -> Iterator[None]:
    """What happens here takes no more memory than this."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most_mb << 20


def with_masks(shape: str, content: bytes = bytes(4 << 20)) -> bytes:
    masks = npy_header("'|u1'", shape) + content
    return zipped(images=npy(NAMES), scores=npy(SCORES), masks=masks)


BOMBS: dict[str, Callable[[], bytes]] = {
    "a mask of a terabyte": lambda: with_masks("(2, 1048576, 1048576)"),
    "a billion images": lambda: zipped(
        images=npy_header("'<U9'", "(1000000000,)") + bytes(4 << 20)
    ),
    "long names": lambda: zipped(images=npy_header("'<U99999999'", "(2,)") + bytes(4 << 20)),
    "negative": lambda: with_masks("(2, -4, -4)"),
    "truths as sides": lambda: with_masks("(2, True, True)"),
    "short": lambda: with_masks("(2, 512, 512)", b""),
    "deep header": lambda: zipped(images=npy_header("'<U1'", "(" * 3000 + ")" * 3000)),
    "long header": lambda: zipped(images=npy_header("'<U1'", "(" + "1," * 30000 + ")")),
    "no header": lambda: zipped(images=b""),
    "records": lambda: zipped(images=npy_header("[('x', '<U1')]", "(2,)") + bytes(4 << 20)),
    "many members": lambda: zipped(**{f"{n}": b"" for n in range(70)}),
    "no archive": lambda: b"PK\x03\x04" + b"\x00" * 100,
    "cut short": lambda: WHOLE[:-200],
    "damaged": lambda: WHOLE[: len(WHOLE) // 2] + bytes(64) + WHOLE[len(WHOLE) // 2 + 64 :],
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_or_damaged_archive_is_refused_within_little_memory(name: str) -> None:
    content = BOMBS[name]()
    with within(96), pytest.raises(MaskFileError):
        read_npz(content, MOST, resized)


def test_many_masks_are_kept_in_a_few_megabytes() -> None:
    names = np.array([f"{n:05d}" for n in range(200)])
    content = npz(images=names, scores=np.ones(200), masks=np.zeros((200, SIZE, SIZE), np.uint8))
    with within(16):  # 200 x 32 kB and one mask at a time
        found = read_npz(content, MOST, resized)
    assert len(found.masks) == 200


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with a few bytes changed, removed or added."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        match rng.choice("cccra"):
            case "c":
                changed[at] = rng.randrange(256)
            case "r":
                del changed[at : at + rng.randint(1, 9)]
            case _:
                changed[at:at] = rng.randbytes(rng.randint(1, 4))
    return bytes(changed)


def test_whatever_is_damaged_ends_in_one_kind_of_error() -> None:
    rng = random.Random(7)
    content = npz(**ARRAYS | {"masks": np.ones((2, 8, 8), np.uint8)})
    n_refused = 0
    for _ in range(2000):
        try:
            read_npz(mutated(content, rng), 5, resized)
        except MaskFileError:
            n_refused += 1
    assert n_refused > 1000


# Labels that an operator supplies, in each of their forms.


def test_a_label_file_is_read_in_the_order_of_the_names(tmp_path: Path) -> None:
    answers = TRACK2.answers(write(tmp_path, "gt.npz", labels()))
    assert answers.scores.to_dict() == {"a": 4.5, "b": 1.25}
    assert np.array_equal(unpack(answers.masks["a"]), MASKS[1])
    assert answers.note == ""


def test_boxes_become_masks_and_the_rows_say_so(tmp_path: Path) -> None:
    answers = TRACK2.answers(write_boxes(tmp_path, box_info()))
    mask = unpack(answers.masks["img"])
    assert mask[20:90, 10:60].all()
    assert not mask[90, 10:60].any()
    assert not mask[20:90, 60].any()
    assert mask[110, 160]
    assert mask[:, :95].sum() == 70 * 50
    assert not unpack(answers.masks["none"]).any()
    assert answers.note == FROM_BOXES
    assert answers.counts()["images with a distorted region"] == 1


def test_boxes_of_larger_images_are_scaled_and_cut_at_the_border(tmp_path: Path) -> None:
    info = box_info()
    box = {"bbox_type": 1, "bbox": [{"x": -50, "y": 0}, {"x": 256, "y": 4000}]}
    info["img"]["bbox_info"] = [[box]]
    mask = unpack(TRACK2.answers(write_boxes(tmp_path, info, (1024, 768))).masks["img"])
    assert mask[:, :128].all()
    assert not mask[:, 128:].any()


def test_questions_are_images_with_prompts(tmp_path: Path) -> None:
    data = write_boxes(tmp_path, box_info())
    assert TRACK2.has_questions(data)
    questions = TRACK2.questions(data)
    assert questions.texts == {"img": "a cat", "none": "a dog"}
    assert [pair.pair_id for pair in questions.pairs] == ["img", "none"]
    assert questions.images["img"]()[:2] == b"\xff\xd8"
    assert not TRACK2.has_questions(write(tmp_path / "evalmuse_track2", "gt.npz", b""))


def test_prompts_come_from_a_file_of_their_own_where_labels_have_none(tmp_path: Path) -> None:
    data = write_boxes(tmp_path, box_info())
    (data / "evalmuse_track2" / "train_info.json").unlink()
    write(data, "gt.npz", labels(images=np.array(["img"]), scores=np.ones(1), masks=MASKS[:1]))
    assert not TRACK2.has_questions(data)
    write(data, "test_info.json", json.dumps({"img": {"prompt_en": "a cow"}}).encode())
    assert TRACK2.questions(data).texts == {"img": "a cow"}
    write(data, "test_info.json", b'{"img": {}}')
    with refused("data_malformed", "prompt_en"):
        TRACK2.questions(data)


def test_an_image_whose_size_cannot_be_known_is_named(tmp_path: Path) -> None:
    image = write_boxes(tmp_path, box_info()) / "evalmuse_track2" / "images" / "img.jpg"
    image.write_bytes(b"no image")
    with refused("data_malformed", "img.jpg is no image"):
        TRACK2.answers(tmp_path)
    image.unlink()
    with refused("images_missing", "img.jpg"):
        TRACK2.answers(tmp_path)


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


def test_the_registry_is_given_it_with_labels_that_are_not_public() -> None:
    (benchmark,) = BENCHMARKS
    card = benchmark.card
    assert not card.answers_public
    assert (card.headline.measure, card.headline.variant) == ("final", "code")
    assert all(file.supplied and file.optional for file in card.files)


@pytest.mark.slow
def test_registering_it_does_not_import_opencv() -> None:
    code = "import sys; import benchmarks.evalmuse_track2.protocol; sys.exit('cv2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0


# Submitted files: masks by `.npz`, scores alone by CSV.

IMAGES = ("a", "b", "c")
EMPTY = pack(np.zeros((SIZE, SIZE), bool))
ANSWERS = Track2Answers(
    IMAGES, IMAGES, pd.Series([1.0, 2.0, 3.0], IMAGES), dict.fromkeys(IMAGES, EMPTY)
)
SENT = {name: np.random.default_rng(ord(name)).random((SIZE, SIZE)) > 0.9 for name in "cabd"}
CSV = b"pair_id,score\na,1\nb,\nc,3\n"


def as_npz(names: str = "cab", score: float = 2.0) -> bytes:
    masks = np.stack([SENT[name] for name in names])
    return npz(images=np.array(list(names)), scores=np.full(len(names), score), masks=masks)


def parse(content: bytes, name: str) -> ScoreTable:
    return parse_scores(content, name, TRACK2, ANSWERS, metric="detector")


def test_masks_and_scores_are_read_in_the_order_of_the_benchmark() -> None:
    sent = parse(as_npz(), "output.npz")
    assert isinstance(sent, MaskedScores)
    assert sent.overall["detector"].to_dict() == dict.fromkeys(IMAGES, 2.0)
    assert sent.overall.index.tolist() == list(IMAGES)
    for image in IMAGES:
        assert np.array_equal(unpack(sent.masks["detector"][image]), SENT[image])
    assert len(TRACK2.evaluate(sent, ANSWERS, 10).rows) == 8
    # An ordinary scores file has no masks, and one with masks can be written as one.
    assert not isinstance(parse(CSV, "scores.csv"), MaskedScores)
    again = parse(write_scores(sent), "scores.parquet")
    assert again.overall["detector"].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["scores", "scores.csv"])
def test_a_file_is_told_by_its_content_and_read_from_disk(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(as_npz())
    sent = read_scores(tmp_path / name, TRACK2, ANSWERS)
    assert isinstance(sent, MaskedScores)
    assert sent.metrics == ("score",)


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (as_npz("ca"), "missing_pairs", "1 of the 3"),
        (as_npz("cad"), "unknown_pairs", "'d'"),
        (as_npz(score=float("nan")), "no_scores", "no image"),
    ],
)
def test_every_image_is_there_once_and_some_have_a_score(
    content: bytes, code: str, says: str
) -> None:
    with refused(code, says):
        parse(content, "x")


@pytest.mark.parametrize("name", ["x.npz", "x.PKL", "x.pickle", "x.zip"])
def test_a_name_that_promises_masks_must_hold_them(name: str) -> None:
    with refused("unreadable_scores", ".npz") as caught:
        parse(CSV, name)
    assert "FORMAT.md" in caught.value.hint


@pytest.mark.parametrize("name", ["output.pkl", "output.csv", "output.npz"])
def test_a_pickle_and_an_array_of_objects_are_refused_and_never_run(
    tmp_path: Path, name: str
) -> None:
    call = Calls(tmp_path / "ran")
    objects = [npz(**ARRAYS | {array: np.array([call], dtype=object)}) for array in ARRAYS]
    for content in (pickle.dumps({"a": call}), pickle.dumps({"a": call}, 2), *objects):
        with refused("unreadable_scores"):
            parse(content, name)
    assert not (tmp_path / "ran").exists()
