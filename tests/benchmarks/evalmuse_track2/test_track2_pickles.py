"""Pickles are read as data: what a file asks to be run is refused and never runs."""

from __future__ import annotations

import random
import resource
import time
import tracemalloc
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.evalmuse_track2.masks import SIZE, MaskFileError, resized, unpack
from benchmarks.evalmuse_track2.pickled import read_pickle
from tests.benchmarks.evalmuse_track2.hostile import (
    Calls,
    bombs,
    broken,
    entry,
    executing,
    mutated,
    names_of,
    pickled,
)

MOST = 1000


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("dtype", ["bool", "u1", "i8", "f4", "f8", ">f4", ">u2"])
def test_a_dictionary_of_arrays_and_numbers_is_read_as_it_was_written(
    protocol: int, dtype: str
) -> None:
    rng = np.random.default_rng(1)
    masks = {name: (rng.random((SIZE, SIZE)) > 0.5).astype(dtype) for name in "abc"}
    scores: dict[str, Any] = {"a": 1.5, "b": np.float32(2.25), "c": 3}
    images = {name: entry(masks[name], scores[name]) for name in masks}
    found = read_pickle(pickled(images, protocol), MOST, resized)
    assert found.scores == {"a": 1.5, "b": 2.25, "c": 3.0}
    for name, mask in masks.items():
        assert np.array_equal(unpack(found.masks[name]), mask > 0)


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_order_in_memory_shared_masks_and_numpy_scalars_make_no_difference(protocol: int) -> None:
    upper = np.triu(np.ones((SIZE, SIZE), np.uint8))
    shared = np.asfortranarray(upper)
    images = {
        "f": entry(shared, np.float64(1)),
        "again": entry(shared, np.int64(2)),
        "c": entry(upper, np.float16(3)),
        "view": entry(upper[:, ::-1], -1),
    }
    found = read_pickle(pickled(images, protocol), MOST, resized)
    for name in ("f", "again", "c"):
        assert np.array_equal(unpack(found.masks[name]), upper > 0)
    assert np.array_equal(unpack(found.masks["view"]), upper[:, ::-1] > 0)
    assert list(found.scores.values()) == [1.0, 2.0, 3.0, -1.0]


def test_pickles_of_numpy_before_version_2_are_read() -> None:
    content = pickled({"a": entry(np.ones((4, 4), np.uint8))}, 3)
    old = content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert old != content
    assert read_pickle(old, MOST, resized).scores == {"a": 3.0}


@pytest.mark.parametrize("name", sorted(executing("x")))
def test_a_pickle_that_would_run_code_is_refused_and_nothing_runs(
    name: str, tmp_path: Path
) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(MaskFileError):
        read_pickle(executing(str(marker))[name], MOST, resized)
    assert not marker.exists()
    assert not list(tmp_path.iterdir())


def test_the_error_names_what_the_file_wanted() -> None:
    with pytest.raises(MaskFileError, match=r"posix\.system'; only numpy arrays"):
        read_pickle(executing("x")["os.system"], MOST, resized)


def test_no_object_of_numpy_but_arrays_and_numbers_can_be_named() -> None:
    for module, name in (("numpy", "save"), ("numpy.lib.npyio", "load"), ("numpy", "ndarray.dump")):
        content = b"\x80\x04" + b"".join(
            b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name)
        )
        with pytest.raises(MaskFileError, match="names the object"):
            read_pickle(content + b"\x93.", MOST, resized)


def test_arrays_of_objects_are_refused() -> None:
    for values in (np.array([[None, 1]], dtype=object), np.array([["a", {}]], dtype=object)):
        with pytest.raises(MaskFileError):
            read_pickle(pickled({"a": entry(values)}), MOST, resized)


@pytest.mark.parametrize("name", sorted(bombs()))
def test_a_bomb_is_refused_within_little_time_and_memory(name: str) -> None:
    content = bombs()[name]
    tracemalloc.start()
    started = time.perf_counter()
    try:
        with pytest.raises(MaskFileError):
            read_pickle(content, MOST, resized)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - started < 20.0
    assert peak < 64 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8 << 20  # kB


@pytest.mark.parametrize("name", sorted(broken()))
def test_what_is_no_pickle_of_masks_is_refused(name: str) -> None:
    with pytest.raises(MaskFileError):
        read_pickle(broken()[name], MOST, resized)


def test_more_masks_than_images_are_refused_while_they_are_read() -> None:
    images = {f"{n}": entry(np.zeros((2, 2), np.uint8)) for n in range(4)}
    with pytest.raises(MaskFileError, match="more than 3 masks"):
        read_pickle(pickled(images), 3, resized)


def test_content_that_was_used_for_one_array_cannot_be_used_for_a_thousand() -> None:
    """A state kept in the memo would be expanded again for each array that asks for it."""
    whole = pickled({"a": entry(np.zeros((64, 64), np.uint8))}, 3)
    assert "BINPUT" in names_of(whole)
    end = whole.index(b"b", whole.index(b"\x00" * 4096))  # BUILD of the array
    state = whole[end - 2 : end]  # BINPUT and the number of its state
    assert state[:1] == b"q"
    again = whole[: end + 1] + b"h" + state[1:] + b"b" + whole[end + 1 :]
    with pytest.raises(MaskFileError):
        read_pickle(again, MOST, resized)


def test_the_length_that_a_frame_claims_is_not_believed() -> None:
    content = b"\x80\x04\x95" + (1 << 62).to_bytes(8, "little") + b"}."
    assert read_pickle(content, MOST, resized).scores == {}


def test_a_key_that_stands_twice_is_refused() -> None:
    content = pickled({"a": entry(np.zeros((4, 4))), "b": entry(np.zeros((4, 4)))})
    twice = content.replace(b"\x8c\x01b", b"\x8c\x01a")
    with pytest.raises(MaskFileError, match="twice"):
        read_pickle(twice, MOST, resized)


def test_content_of_another_size_than_the_shape_says_is_refused_before_it_is_used() -> None:
    for name, content in (*bombs().items(), *broken().items()):
        if name in ("content does not fill", "huge shape"):
            with pytest.raises(MaskFileError, match=r"does not fill it|two sides of 1 to 2048"):
                read_pickle(content, MOST, resized)


def test_classes_and_functions_as_values_are_refused() -> None:
    for value in (Path("x"), Calls(len, ()), {1, 2}, 1j, object):
        with pytest.raises(MaskFileError):
            read_pickle(pickled({"a": value}), MOST, resized)


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
def test_whatever_is_damaged_ends_in_one_kind_of_error() -> None:
    rng = random.Random(7)
    images = {"a": entry(np.ones((4, 4), np.uint8)), "b": entry(np.ones((3, 5)), np.float32(2))}
    contents = [pickled(images, protocol) for protocol in (3, 4, 5)]
    refused = 0
    for _ in range(3000):
        try:
            read_pickle(mutated(rng.choice(contents), rng), 5, resized)
        except MaskFileError:
            refused += 1
    assert refused > 2000


def test_more_instructions_than_the_images_need_are_not_followed() -> None:
    for most, n, allowed in ((1, 10_200, True), (1, 10_201, False), (9, 11_801, False)):
        content = b"\x80\x04" + b"N" * (n - 3) + b"}."
        if allowed:
            assert read_pickle(content, most, resized).scores == {}
        else:
            with pytest.raises(MaskFileError, match="more instructions than masks and scores"):
                read_pickle(content, most, resized)


def test_content_that_two_arrays_share_is_refused() -> None:
    shared = bytes(SIZE * SIZE)
    function = import_module("numpy._core.numeric")._frombuffer
    two = {name: entry(Calls(function, shared, np.dtype("u1"), (SIZE, SIZE), "C")) for name in "ab"}
    one = {"a": two["a"]}
    assert read_pickle(pickled(one), MOST, resized).scores == {"a": 3.0}
    with pytest.raises(MaskFileError, match="the content of one array twice"):
        read_pickle(pickled(two), MOST, resized)


@pytest.mark.parametrize("content", [b"", b"\0" * 4, b"\0" * 9])
def test_a_number_whose_content_has_another_size_is_refused(content: bytes) -> None:
    scalar = import_module("numpy._core.multiarray").scalar
    made = Calls(scalar, np.dtype("f8"), content)
    with pytest.raises(MaskFileError, match="whose content does not fill it"):
        read_pickle(pickled({"a": entry(np.ones((4, 4)), made)}), MOST, resized)
    whole = Calls(scalar, np.dtype("f8"), np.float64(2.5).tobytes())
    images = {"a": entry(np.ones((4, 4)), whole)}
    assert read_pickle(pickled(images), MOST, resized).scores == {"a": 2.5}


def test_a_pickle_without_an_end_is_refused() -> None:
    whole = pickled({"a": entry(np.ones((4, 4), np.uint8))})
    assert read_pickle(whole, MOST, resized).scores == {"a": 3.0}
    with pytest.raises(MaskFileError, match="is not a complete pickle"):
        read_pickle(whole[:-1], MOST, resized)
    # What follows the end is not looked at.
    assert read_pickle(whole + b"junk", MOST, resized).scores == {"a": 3.0}
