"""Archives of masks: sizes are checked before memory is taken, objects are never unpickled."""

from __future__ import annotations

import io
import random
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evalmuse_track2.load import SIZE, MaskFileError, as_it_is, read_npz, resized, unpack
from tests.benchmarks.evalmuse_track2.npz_files import Calls, mutated, npy, npy_header, npz, zipped

MOST = 1000
NAMES = np.array(["a", "b"])
SCORES = np.array([1.0, np.nan])
MASKS = np.random.default_rng(3).random((2, SIZE, SIZE)) > 0.7
ARRAYS = {"images": NAMES, "scores": SCORES, "masks": MASKS}
WHOLE = npz(**ARRAYS)


@pytest.mark.parametrize("dtype", ["bool", "u1", "i4", "f2", "f4", ">f8"])
def test_images_scores_and_masks_are_read_as_they_were_written(dtype: str) -> None:
    found = read_npz(npz(**ARRAYS | {"masks": MASKS.astype(dtype)}), MOST, resized)
    assert found.scores["a"] == 1.0
    assert np.isnan(found.scores["b"])
    assert np.array_equal(unpack(found.masks["b"]), MASKS[1])


def test_an_uncompressed_archive_and_one_mask_in_column_order_are_read() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, images=NAMES[:1], scores=SCORES[:1], masks=np.asfortranarray(MASKS[:1]))
    found = read_npz(buffer.getvalue(), MOST, resized)
    assert np.array_equal(unpack(found.masks["a"]), MASKS[0])


def test_label_masks_of_another_size_are_refused() -> None:
    content = npz(**ARRAYS | {"masks": MASKS[:, :256]})
    assert read_npz(content, MOST, resized).scores["a"] == 1.0
    with pytest.raises(MaskFileError, match="256 x 512; expected 512 x 512"):
        read_npz(content, MOST, as_it_is)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_object_array_is_refused_and_nothing_runs(tmp_path: Path, name: str) -> None:
    marker = tmp_path / "ran"
    content = npz(**ARRAYS | {name: np.array([Calls(marker)], dtype=object)})
    with pytest.raises(MaskFileError, match="of the type object"):
        read_npz(content, MOST, resized)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"masks": None}, "no array masks"),
        ({"images": None}, "no array images"),
        ({"scores": SCORES[:1]}, "2 images, but 1 scores"),
        ({"masks": MASKS[:1]}, "expected 2 x height x width"),
        ({"masks": MASKS[0]}, "expected 2 x height x width"),
        ({"images": NAMES[[0, 0]]}, "'a' twice"),
        ({"images": np.arange(2)}, "expected texts"),
        ({"scores": NAMES}, "expected plain numbers"),
        ({"images": NAMES[None]}, "1 x 2; expected one of"),
        ({"scores": SCORES + np.inf}, "infinite"),
        ({"masks": MASKS * np.nan}, "not finite"),
        ({"masks": MASKS[:, :0]}, "two sides of 1 to 2048"),
        ({"images": np.array(["x" * 300])}, "256 characters"),
        ({"masks": np.zeros((2, 1500, 1500))}, "more than 8 MB"),
        ({"masks": np.asfortranarray(MASKS)}, "column order"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    arrays: dict[str, np.ndarray | None], says: str
) -> None:
    given = {name: array for name, array in (ARRAYS | arrays).items() if array is not None}
    with pytest.raises(MaskFileError, match=says):
        read_npz(npz(**given), MOST, resized)


def with_masks(shape: str, content: bytes = bytes(4 << 20)) -> bytes:
    masks = npy_header("'|u1'", shape) + content
    return zipped({"images": npy(NAMES), "scores": npy(SCORES), "masks": masks})


BOMBS = {
    "a mask of a terabyte": with_masks("(2, 1048576, 1048576)"),
    "a billion images": zipped({"images": npy_header("'<U9'", "(1000000000,)") + bytes(4 << 20)}),
    "long names": zipped({"images": npy_header("'<U99999999'", "(2,)") + bytes(4 << 20)}),
    "negative": with_masks("(2, -4, -4)"),
    "truths as sides": with_masks("(2, True, True)"),
    "short": with_masks("(2, 512, 512)", b""),
    "deep header": zipped({"images": npy_header("'<U1'", "(" * 3000 + ")" * 3000)}),
    "long header": zipped({"images": npy_header("'<U1'", "(" + "1," * 30000 + ")")}),
    "no header": zipped({"images": b""}),
    "records": zipped({"images": npy_header("[('x', '<U1')]", "(2,)") + bytes(4 << 20)}),
    "many members": zipped({f"{n}": b"" for n in range(70)}),
    "no archive": b"PK\x03\x04" + b"\x00" * 100,
    "cut short": WHOLE[:-200],
    "damaged": WHOLE[: len(WHOLE) // 2] + bytes(64) + WHOLE[len(WHOLE) // 2 + 64 :],
}


@pytest.mark.parametrize("content", BOMBS.values(), ids=BOMBS)
def test_a_bomb_or_damaged_archive_is_refused_within_little_memory(content: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MaskFileError):
            read_npz(content, MOST, resized)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 96 << 20


def test_other_compressions_and_encrypted_members_are_refused() -> None:
    with pytest.raises(MaskFileError, match="compressed in a way"):
        read_npz(zipped({"images": npy(NAMES)}, zipfile.ZIP_BZIP2), MOST, resized)
    plain = bytearray(zipped({"images": npy(NAMES)}))
    plain[plain.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(MaskFileError, match="encrypted"):
        read_npz(bytes(plain), MOST, resized)


def test_many_masks_are_kept_in_a_few_megabytes() -> None:
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
    content = npz(**ARRAYS | {"masks": np.ones((2, 8, 8), np.uint8)})
    refused = 0
    for _ in range(2000):
        try:
            read_npz(mutated(content, rng), 5, resized)
        except MaskFileError:
            refused += 1
    assert refused > 1000


@pytest.mark.parametrize("version", [(3, 0), (9, 1)])
def test_an_array_of_a_format_that_is_not_read_is_named(version: tuple[int, int]) -> None:
    scores = npy(SCORES)
    other = scores[:6] + bytes(version) + scores[8:]
    content = zipped({"images": npy(NAMES), "scores": other, "masks": npy(MASKS)})
    with pytest.raises(MaskFileError, match=rf"scores of an unknown format \({version[0]}, "):
        read_npz(content, MOST, resized)
