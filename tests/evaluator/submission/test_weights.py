"""The form of safetensors files, which is checked without loading a tensor."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from evaluator.submission.archives.archive import taken_in
from evaluator.submission.archives.limits import ArchiveLimits
from evaluator.submission.archives.weights import check_header, weights_problems
from tests.evaluator.submission.archives import zipped

TENSOR = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


def file_of(header: Any, n_data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(n_data)


def found(tmp_path: Path, data: bytes, limits: ArchiveLimits | None = None) -> str:
    """What is said of a file of weights; empty if nothing."""
    source = zipped(tmp_path / "a.zip", {"w.safetensors": data})
    with taken_in(source, tmp_path) as content:
        problems = weights_problems(content, limits or ArchiveLimits())
    assert all((p.code, p.file) == ("bad_weights", "w.safetensors") for p in problems)
    return "".join(p.message for p in problems)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint16", "int64", "bool"]
)
def test_what_the_library_writes_is_taken(tmp_path: Path, dtype: str) -> None:
    tensors = {"a": np.ones((3, 5), dtype), "empty": np.ones((0, 5), dtype), "b": np.ones(7, dtype)}
    assert not found(tmp_path, save(tensors, metadata={"format": "pt"}))
    assert not found(tmp_path, save({}))


BROKEN: dict[str, tuple[Any, int, str]] = {
    "a gap": ({"a": {**TENSOR, "data_offsets": [4, 20]}}, 20, "leaves bytes unused"),
    "shared bytes": ({"a": TENSOR, "b": TENSOR}, 16, "shares bytes"),
    "bytes behind": ({"a": TENSOR}, 20, "20 follow"),
    "bytes missing": ({"a": TENSOR}, 12, "12 follow"),
    "another size": ({"a": {**TENSOR, "shape": [2, 3]}}, 16, "shape needs"),
    "backwards": ({"a": {**TENSOR, "data_offsets": [16, 0]}}, 16, "shape needs"),
    "unknown type": ({"a": {**TENSOR, "dtype": "PICKLE"}}, 16, "unknown type"),
    "type that is no text": ({"a": {**TENSOR, "dtype": ["F32"]}}, 16, "unknown type"),
    "shape of texts": ({"a": {**TENSOR, "shape": ["2", 2]}}, 16, "no plain numbers"),
    "negative": ({"a": {**TENSOR, "shape": [-2, -2]}}, 16, "no plain numbers"),
    "truth for a number": ({"a": {**TENSOR, "shape": [4, True]}}, 16, "no plain numbers"),
    "huge": ({"a": {**TENSOR, "shape": [1 << 70]}}, 16, "no plain numbers"),
    "more keys": ({"a": {**TENSOR, "more": 1}}, 16, "other keys"),
    "no table": ({"a": 5}, 16, "other keys"),
    "metadata": ({"__metadata__": {"a": 1}, "a": TENSOR}, 16, "__metadata__"),
    "a list": (b"[]", 0, "begin with {"),
    "no json": (b"{nonsense", 0, "not JSON"),
    "no utf-8": (b'{"\xff": 1}', 0, "not UTF-8"),
    "twice": (b'{"a": {}, "a": {}}', 0, "twice"),
    "a constant": (b'{"a": NaN}', 0, "NaN"),
    "depth": (b'{"a": ' + b"[" * 100_000, 0, "too deep"),
    "digits": (b'{"a": ' + b"1" * 10_000 + b"}", 0, "not a safetensors"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_header_that_does_not_describe_the_file_is_refused(tmp_path: Path, case: str) -> None:
    header, n_data, said = BROKEN[case]
    assert said in found(tmp_path, file_of(header, n_data))


def test_a_file_too_short_or_with_too_long_a_header_is_refused(tmp_path: Path) -> None:
    assert "too short" in found(tmp_path, b"\2")
    assert "longer than the file" in found(tmp_path, (1 << 62).to_bytes(8, "little"))
    long = file_of(b"{" + b" " * 2000 + b"}", 0)
    limits = ArchiveLimits(weights_header_bytes=1000)
    assert "1000 bytes is the most" in found(tmp_path, long, limits)
    assert not found(tmp_path, long)


def test_a_pickle_under_the_name_of_weights_is_called_one(tmp_path: Path) -> None:
    assert "is a pickle" in found(tmp_path, pickle.dumps(list(range(100)), 2))


def test_a_header_whose_length_looks_like_a_pickle_is_none(tmp_path: Path) -> None:
    """1152 bytes of header are written as the two bytes that begin a pickle of protocol 4."""
    text = json.dumps({"a": TENSOR}).encode().ljust(0x0480)
    data = file_of(text, 16)
    assert data.startswith(b"\x80\x04")
    assert not found(tmp_path, data)


SIZES = st.integers(-1, 40)
TENSORS = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "BF16", "F4", "F6_E2M3", "BOOL", "C64", "X"]),
        "shape": st.lists(st.integers(-1, 6), max_size=3),
        "data_offsets": st.lists(SIZES, min_size=1, max_size=3),
    }
)


@given(st.dictionaries(st.sampled_from("abc"), TENSORS, max_size=3), st.integers(0, 40))
def test_what_is_taken_can_be_opened_by_the_library(header: dict[str, Any], n_data: int) -> None:
    text = json.dumps(header).encode()
    try:
        check_header(text, n_data)
    except ValueError:
        return
    safetensors.deserialize(file_of(text, n_data))


@given(st.lists(st.tuples(st.sampled_from(["f4", "u1", "i8"]), st.integers(0, 9)), max_size=5))
def test_nothing_that_the_library_wrote_is_refused(shapes: list[tuple[str, int]]) -> None:
    data = save({str(i): np.zeros(n, dtype) for i, (dtype, n) in enumerate(shapes)})
    length = int.from_bytes(data[:8], "little")
    check_header(data[8 : 8 + length], len(data) - 8 - length)
