"""Which names and kinds of files a submission may hold, and the form of its weights."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from evaluator.submission.archives.archive import check_header, taken_in, weights_problems
from evaluator.submission.archives.entries import ArchiveLimits
from tests.evaluator.submission.archives import FILES, contents, problems, refused, tarred, zipped

OUT = ["../x.py", "/etc/x.py", "a/../../x.py", "./../x"]
DECEITFUL = [
    *OUT, "C:x.py", "C:/x.py", "a\\x.py", "~/x.py", "a\u202egp.py", "a\u200bb.py", "a\u2066b.py",
    "a\ufeffb.py", "a\u3164.py", "a\ufe0f.py", "a\u00a0b.py", "a\nb.py", "a\x1b[31mb.py",
    "e\u0301.py", "CON", "con.txt", "data/Aux.py", "com1.tar.gz.txt", "lpt².txt", "x.", "x /y",
    "a?.py", "a*.py", "a|b.py", '"a".py', "a//b", "a/./b", "d/" * 16 + "x", "x" * 241, "é" * 121,
]  # fmt: skip


@pytest.mark.parametrize("name", DECEITFUL)
def test_names_that_lead_out_or_deceive_are_refused(tmp_path: Path, name: str) -> None:
    info = zipfile.ZipInfo("x")
    info.filename = info.orig_filename = name
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("scorer.py", b"")
        archive.writestr(info, b"x")
    assert [code for code, _ in problems(tmp_path / "a.zip")] == ["unsafe_name"]
    if name in OUT:
        archived = tarred(tmp_path / "a.tar.gz", {**FILES, name: b""})
        assert [code for code, _ in problems(archived)] == ["unsafe_name"]
    assert not list(tmp_path.parent.glob("x.py"))


def test_a_name_that_is_not_unicode_is_refused_and_told_escaped(tmp_path: Path) -> None:
    archive = tarred(tmp_path / "a.tar", {**FILES, "a\udcffb.py": b""})
    assert problems(archive) == [("unsafe_name", "a\\udcffb.py")]


def numpy_file(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


TENSOR = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
HARMLESS = {
    "data/größe.txt": b"", "日本/文.txt": b"", "a b (1) [x] 'y' & z.txt": b"", ".hidden": b"",
    "vocabulary.txt.gz": gzip.compress(b"a b c\n" * 1000),
    "mean.npy": numpy_file(np.zeros(3)),
    "words.npy": numpy_file(np.array(["Object", "O"])),
    "notes.md": b"MZ is not a program. color\nblue\n",
    "config.json": b'{"a": 1}',
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(40),
}  # fmt: skip


def test_texts_arrays_and_pictures_under_ordinary_names_are_taken(tmp_path: Path) -> None:
    assert contents(zipped(tmp_path / "a.zip", HARMLESS)) == HARMLESS


def torch_like() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
    return buffer.getvalue()


REFUSED = {
    **dict.fromkeys(
        ["x.pkl", "x.pt", "x.pth", "x.PTH", "x.bin", "x.so", "x.so.1", "x.dll", "x.npz", "x.joblib",
         "x.h5", "x.onnx", "sitecustomize.py", "lib/usercustomize.py", "sitecustomize/__init__.py"],
        b"",
    ),
    "pickle 2": pickle.dumps({"a": 1}, 2),
    "pickle 5": pickle.dumps({"a": 1}, 5),
    "pickle 0 that calls": b"cos\nsystem\n(S'id'\ntR.",
    "pickle 0": pickle.dumps({"a": 1}, 0),
    "torch": torch_like(),
    "joblib, gzip": gzip.compress(pickle.dumps([1])),
    "joblib, zlib": zlib.compress(pickle.dumps([1])),
    "gzip in gzip": gzip.compress(gzip.compress(b"x")),
    "tar.gz": gzip.compress(b"a" * 257 + b"ustar" + bytes(250)),
    "objects": numpy_file(np.array([1, "a"], dtype=object)),
    "structured objects": numpy_file(np.zeros(2, dtype=[("a", "<f4"), ("b", "O")])),
    "zip": b"PK\3\4" + bytes(30),
    "7z": b"7z\xbc\xaf\x27\x1c" + bytes(30),
    "elf": b"\x7fELF\2\1\1" + bytes(60),
    "pe": b"MZ\x90\0\3" + bytes(60),
    "mach-o": b"\xcf\xfa\xed\xfe" + bytes(60),
    "wasm": b"\0asm\1\0\0\0",
    "hdf5": b"\x89HDF\r\n\x1a\n",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_run_code_is_refused_whatever_its_name(tmp_path: Path, name: str) -> None:
    archive = zipped(tmp_path / "a.zip", {**FILES, name: REFUSED[name]})
    assert problems(archive) == [("refused_file", name)]
    if name == "x.pkl":
        assert "safetensors" in refused(archive, "refused_file")


@pytest.mark.parametrize(
    ("content", "said"), [(bytes(20_000), "named like"), (torch_like(), "a file of torch.save")]
)
def test_zeros_are_not_said_to_be_what_their_name_is(
    tmp_path: Path, content: bytes, said: str
) -> None:
    name = "model.bin" if said == "named like" else "model.dat"
    archive = zipped(tmp_path / "a.zip", {**FILES, name: content})
    assert f"{name}' is {said}" in refused(archive, "refused_file")


# Weights, checked without loading a tensor ----------------------------------------------------


def file_of(header: Any, n_data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(n_data)


def found(tmp_path: Path, data: bytes, limits: ArchiveLimits | None = None) -> str:
    """What is said of a file of weights; empty if nothing."""
    source = zipped(tmp_path / "a.zip", {"w.safetensors": data})
    with taken_in(source, tmp_path) as content:
        told = weights_problems(content, limits or ArchiveLimits())
    assert all((p.code, p.file) == ("bad_weights", "w.safetensors") for p in told)
    return "".join(p.message for p in told)


# 1152 bytes of header are written as the two bytes that begin a pickle of protocol 4.
LIKE_A_PICKLE = file_of(json.dumps({"a": TENSOR}).encode().ljust(0x0480), 16)
BROKEN = {
    "unused": file_of({"a": {**TENSOR, "data_offsets": [4, 20]}}, 20),
    "shares": file_of({"a": TENSOR, "b": TENSOR}, 16),
    "20": file_of({"a": TENSOR}, 20),
    "12": file_of({"a": TENSOR}, 12),
    "shape": file_of({"a": {**TENSOR, "shape": [2, 3]}}, 16),
    "needs": file_of({"a": {**TENSOR, "data_offsets": [16, 0]}}, 16),
    "unknown": file_of({"a": {**TENSOR, "dtype": "PICKLE"}}, 16),
    "unknown type": file_of({"a": {**TENSOR, "dtype": ["F32"]}}, 16),
    "plain": file_of({"a": {**TENSOR, "shape": ["2", 2]}}, 16),
    "numbers": file_of({"a": {**TENSOR, "shape": [-2, -2]}}, 16),
    "plain numbers": file_of({"a": {**TENSOR, "shape": [4, True]}}, 16),
    "64 bits": file_of({"a": {**TENSOR, "shape": [1 << 70]}}, 16),
    "keys": file_of({"a": {**TENSOR, "more": 1}}, 16),
    "other keys": file_of({"a": 5}, 16),
    "__metadata__": file_of({"__metadata__": {"a": 1}, "a": TENSOR}, 16),
    "begin with {": file_of(b"[]", 0),
    "JSON": file_of(b"{nonsense", 0),
    "UTF-8": file_of(b'{"\xff": 1}', 0),
    "twice": file_of(b'{"a": {}, "a": {}}', 0),
    "NaN": file_of(b'{"a": NaN}', 0),
    "deep": file_of(b'{"a": ' + b"[" * 100_000, 0),
    "safetensors": file_of(b'{"a": ' + b"1" * 10_000 + b"}", 0),
    "short": b"\2",
    "longer": (1 << 62).to_bytes(8, "little"),
    "pickle": pickle.dumps(list(range(100)), 2),
}
"""A word of what is said of it: a file of weights that is none."""


@pytest.mark.parametrize("word", BROKEN)
def test_weights_whose_header_does_not_fit_are_refused(word: str, tmp_path: Path) -> None:
    assert word in found(tmp_path, BROKEN[word])


def test_a_huge_number_in_a_header_is_told_without_pythons_own_advice(tmp_path: Path) -> None:
    said = found(tmp_path, file_of(b'{"a": ' + b"9" * 5000 + b"}", 0))
    assert "64 bits" in said
    assert "sys." not in said


def test_a_long_header_is_bounded_and_one_like_a_pickle_is_none(tmp_path: Path) -> None:
    long = file_of(b"{" + b" " * 2000 + b"}", 0)
    assert "1000" in found(tmp_path, long, ArchiveLimits(weights_header_bytes=1000))
    assert LIKE_A_PICKLE.startswith(b"\x80\x04")
    assert not found(tmp_path, long) + found(tmp_path, LIKE_A_PICKLE)


TENSORS = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "BF16", "F4", "F6_E2M3", "BOOL", "C64", "X"]),
        "shape": st.lists(st.integers(-1, 6), max_size=3),
        "data_offsets": st.lists(st.integers(-1, 40), min_size=1, max_size=3),
    }
)
DTYPES = st.sampled_from(["f2", "f4", "f8", "i1", "u2", "i8", "u1", "?"])


@given(st.dictionaries(st.sampled_from("abc"), TENSORS, max_size=3), st.integers(0, 40))
def test_what_is_taken_can_be_opened_by_the_library(header: dict[str, Any], n_data: int) -> None:
    text = json.dumps(header).encode()
    try:
        check_header(text, n_data)
    except ValueError:
        return
    safetensors.deserialize(file_of(text, n_data))


@given(st.lists(st.tuples(DTYPES, st.integers(0, 9)), max_size=5))
def test_nothing_that_the_library_wrote_is_refused(shapes: list[tuple[str, int]]) -> None:
    tensors = {str(i): np.zeros((n, 2), dtype) for i, (dtype, n) in enumerate(shapes)}
    data = save(tensors, metadata={"format": "pt"})
    length = int.from_bytes(data[:8], "little")
    check_header(data[8 : 8 + length], len(data) - 8 - length)
