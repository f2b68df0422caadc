"""Archives of arrays: sizes are checked before memory is taken, objects are never unpickled."""

from __future__ import annotations

import functools
import io
import os
import random
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evalmuse_track2.arrays import read_npz
from benchmarks.evalmuse_track2.masks import SIZE, MaskFileError, as_it_is, resized, unpack
from tests.benchmarks.evalmuse_track2.hostile import (
    Calls,
    mutated,
    npy_header,
    npz,
    zipped,
)

MOST = 1000
NAMES = np.array(["a", "b"])
SCORES = np.array([1.0, np.nan])
MASKS = np.random.default_rng(3).random((2, SIZE, SIZE)) > 0.7


@pytest.mark.parametrize("dtype", ["bool", "u1", "i4", "f2", "f4", ">f8"])
def test_images_scores_and_masks_are_read_as_they_were_written(dtype: str) -> None:
    found = read_npz(npz(images=NAMES, scores=SCORES, masks=MASKS.astype(dtype)), MOST, resized)
    assert found.scores["a"] == 1.0
    assert np.isnan(found.scores["b"])
    assert np.array_equal(unpack(found.masks["b"]), MASKS[1])


def test_an_uncompressed_archive_and_one_mask_in_column_order_are_read() -> None:
    buffer = io.BytesIO()
    mask = np.asfortranarray(MASKS[:1])
    np.savez(buffer, images=NAMES[:1], scores=SCORES[:1], masks=mask)
    found = read_npz(buffer.getvalue(), MOST, resized)
    assert np.array_equal(unpack(found.masks["a"]), MASKS[0])


def test_label_masks_of_another_size_are_refused() -> None:
    content = npz(images=NAMES, scores=SCORES, masks=MASKS[:, :256])
    assert read_npz(content, MOST, resized).scores["a"] == 1.0
    with pytest.raises(MaskFileError, match="256 x 512; expected 512 x 512"):
        read_npz(content, MOST, as_it_is)


def test_an_object_array_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    call = np.array([Calls(os.system, f"touch {marker}")], dtype=object)
    for arrays in (
        {"images": call, "scores": SCORES, "masks": MASKS},
        {"images": NAMES, "scores": call, "masks": MASKS},
        {"images": NAMES, "scores": SCORES, "masks": call},
    ):
        with pytest.raises(MaskFileError, match="of the type object"):
            read_npz(npz(**arrays), MOST, resized)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"images": NAMES, "scores": SCORES}, "no array masks"),
        ({"scores": SCORES, "masks": MASKS}, "no array images"),
        ({"images": NAMES, "scores": SCORES[:1], "masks": MASKS}, "2 images, but 1 scores"),
        ({"images": NAMES, "scores": SCORES, "masks": MASKS[:1]}, "expected 2 x height x width"),
        ({"images": NAMES, "scores": SCORES, "masks": MASKS[0]}, "expected 2 x height x width"),
        ({"images": NAMES[[0, 0]], "scores": SCORES, "masks": MASKS}, "'a' twice"),
        ({"images": np.arange(2), "scores": SCORES, "masks": MASKS}, "expected texts"),
        ({"images": NAMES, "scores": NAMES, "masks": MASKS}, "expected plain numbers"),
        ({"images": NAMES[None], "scores": SCORES, "masks": MASKS}, "1 x 2; expected one of"),
        ({"images": NAMES, "scores": SCORES + np.inf, "masks": MASKS}, "infinite"),
        ({"images": NAMES, "scores": SCORES, "masks": MASKS * np.nan}, "not finite"),
        ({"images": NAMES, "scores": SCORES, "masks": MASKS[:, :0]}, "two sides of 1 to 2048"),
        ({"images": np.array(["x" * 300]), "scores": SCORES, "masks": MASKS}, "256 characters"),
        (
            {"images": NAMES, "scores": SCORES, "masks": np.zeros((2, 1500, 1500))},
            "more than 8 MB",
        ),
        (
            {"images": NAMES, "scores": SCORES, "masks": np.asfortranarray(MASKS)},
            "column order",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(MaskFileError, match=says):
        read_npz(npz(**arrays), MOST, resized)


@functools.cache
def bombs() -> dict[str, bytes]:
    ids, numbers = npz_member(NAMES), npz_member(SCORES)
    zeros = b"\x00" * (4 << 20)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for n in range(70):
            archive.writestr(f"{n}", b"")
    return {
        "a mask of a terabyte": zipped(
            images=ids,
            scores=numbers,
            masks=npy_header("'|u1'", "(2, 1048576, 1048576)") + zeros,
        ),
        "a billion images": zipped(images=npy_header("'<U9'", "(1000000000,)") + zeros),
        "long names": zipped(images=npy_header("'<U99999999'", "(2,)") + zeros),
        "negative": zipped(
            images=ids, scores=numbers, masks=npy_header("'|u1'", "(2, -4, -4)") + zeros
        ),
        "truths as sides": zipped(
            images=ids, scores=numbers, masks=npy_header("'|u1'", "(2, True, True)") + zeros
        ),
        "short": zipped(images=ids, scores=numbers, masks=npy_header("'|u1'", "(2, 512, 512)")),
        "deep header": zipped(images=npy_header("'<U1'", "(" * 3000 + ")" * 3000)),
        "long header": zipped(images=npy_header("'<U1'", "(" + "1," * 30000 + ")")),
        "no header": zipped(images=b""),
        "records": zipped(images=npy_header("[('x', '<U1')]", "(2,)") + zeros),
        "many members": buffer.getvalue(),
        "no archive": b"PK\x03\x04" + b"\x00" * 100,
        "cut short": npz(images=NAMES, scores=SCORES, masks=MASKS)[:-200],
        "damaged": damaged(npz(images=NAMES, scores=SCORES, masks=MASKS)),
    }


def npz_member(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def damaged(content: bytes) -> bytes:
    middle = len(content) // 2
    return (
        content[:middle]
        + bytes(255 - b for b in content[middle : middle + 64])
        + (content[middle + 64 :])
    )


@pytest.mark.parametrize("name", sorted(bombs()))
def test_a_bomb_or_damaged_archive_is_refused_within_little_time_and_memory(name: str) -> None:
    content = bombs()[name]
    tracemalloc.start()
    started = time.perf_counter()
    try:
        with pytest.raises(MaskFileError):
            read_npz(content, MOST, resized)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - started < 10.0
    assert peak < 96 << 20


def test_other_compressions_and_encrypted_members_are_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("images.npy", npz_member(NAMES))
    with pytest.raises(MaskFileError, match="compressed in a way"):
        read_npz(buffer.getvalue(), MOST, resized)
    plain = bytearray(zipped(images=npz_member(NAMES)))
    plain[plain.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(MaskFileError, match="encrypted"):
        read_npz(bytes(plain), MOST, resized)


def test_a_thousand_masks_are_kept_in_a_few_megabytes() -> None:
    names = np.array([f"{n:05d}" for n in range(200)])
    content = npz(images=names, scores=np.ones(200), masks=np.zeros((200, SIZE, SIZE), np.uint8))
    tracemalloc.start()
    try:
        found = read_npz(content, MOST, resized)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.masks) == 200
    assert peak < 16 << 20  # 200 x 32 kB and one mask at a time


def test_whatever_is_damaged_ends_in_one_kind_of_error() -> None:
    rng = random.Random(7)
    content = npz(images=NAMES, scores=SCORES, masks=np.ones((2, 8, 8), np.uint8))
    refused = 0
    for _ in range(2000):
        try:
            read_npz(mutated(content, rng), 5, resized)
        except MaskFileError:
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize("version", [(3, 0), (9, 1)])
def test_an_array_of_a_format_that_is_not_read_is_named(version: tuple[int, int]) -> None:
    scores = npz_member(SCORES)
    other = scores[:6] + bytes(version) + scores[8:]
    content = zipped(images=npz_member(NAMES), scores=other, masks=npz_member(MASKS))
    with pytest.raises(MaskFileError, match=rf"scores of an unknown format \({version[0]}, "):
        read_npz(content, MOST, resized)
