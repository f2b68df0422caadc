"""Which names and which kinds of files a submission may hold."""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.evaluator.submission.archives import FILES, contents, problems, refused, tarred, zipped


@pytest.mark.parametrize(
    "name",
    [
        "../x.py",
        "/etc/x.py",
        "a/../../x.py",
        "C:x.py",
        "C:/x.py",
        "a\\x.py",
        "~/x.py",
        "a\u202egp.py",
        "a\u200bb.py",
        "a\u2066b.py",
        "a\ufeffb.py",
        "a\u3164.py",
        "a\ufe0f.py",
        "a\u00a0b.py",
        "a\nb.py",
        "a\x1b[31mb.py",
        "e\u0301.py",
        "CON",
        "con.txt",
        "data/Aux.py",
        "com1.tar.gz.txt",
        "lpt².txt",
        "x.",
        "x /y",
        "a?.py",
        "a*.py",
        "a|b.py",
        '"a".py',
        "a//b",
        "a/./b",
        "d/" * 16 + "x",
        "x" * 241,
        "é" * 121,
    ],
)
def test_names_that_lead_out_or_deceive_are_refused(tmp_path: Path, name: str) -> None:
    def renamed(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
        info.filename = info.orig_filename = name
        return info

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("scorer.py", b"")
        archive.writestr(renamed(zipfile.ZipInfo("x")), b"x")
    assert [code for code, _ in problems(tmp_path / "a.zip")] == ["unsafe_name"]
    assert not list(tmp_path.parent.glob("x.py"))


@pytest.mark.parametrize("name", ["../x.py", "/tmp/x.py", "a/../../x", "./../x"])
def test_a_tar_leads_out_as_little_as_a_zip(tmp_path: Path, name: str) -> None:
    archive = tarred(tmp_path / "a.tar.gz", {**FILES, name: b""})
    assert [code for code, _ in problems(archive)] == ["unsafe_name"]


def test_a_name_that_is_not_unicode_is_refused_and_told_escaped(tmp_path: Path) -> None:
    archive = tarred(tmp_path / "a.tar", {**FILES, "a\udcffb.py": b""})
    ((code, file),) = problems(archive)
    assert (code, file) == ("unsafe_name", "a\\udcffb.py")


@pytest.mark.parametrize(
    "name", ["scorer.py", "data/größe.txt", "日本/文.txt", "a b (1) [x] 'y' & z.txt", ".hidden"]
)
def test_ordinary_names_are_taken(tmp_path: Path, name: str) -> None:
    assert contents(zipped(tmp_path / "a.zip", {"a/x": b"", name: b"x"}))[name] == b"x"


@pytest.mark.parametrize(
    "name",
    [
        "x.pkl",
        "x.pt",
        "x.pth",
        "x.PTH",
        "x.bin",
        "x.so",
        "x.so.1",
        "x.dll",
        "x.npz",
        "x.joblib",
        "x.h5",
        "x.onnx",
        "sitecustomize.py",
        "lib/usercustomize.py",
        "sitecustomize/__init__.py",
    ],
)
def test_names_of_what_is_not_taken_are_refused(tmp_path: Path, name: str) -> None:
    assert problems(zipped(tmp_path / "a.zip", {**FILES, name: b""})) == [("refused_file", name)]


def numpy_file(array: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array(array, dtype=object) if isinstance(array, list) else array)  # type: ignore[arg-type]
    return buffer.getvalue()


def torch_like() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
    return buffer.getvalue()


HIDDEN = {
    "pickle 2": pickle.dumps({"a": 1}, 2),
    "pickle 5": pickle.dumps({"a": 1}, 5),
    "pickle 0 that calls": b"cos\nsystem\n(S'id'\ntR.",
    "pickle 0": pickle.dumps({"a": 1}, 0),
    "torch": torch_like(),
    "joblib, gzip": gzip.compress(pickle.dumps([1])),
    "joblib, zlib": zlib.compress(pickle.dumps([1])),
    "gzip in gzip": gzip.compress(gzip.compress(b"x")),
    "tar.gz": gzip.compress(b"a" * 257 + b"ustar" + bytes(250)),
    "objects": numpy_file([1, "a"]),
    "structured objects": numpy_file(np.zeros(2, dtype=[("a", "<f4"), ("b", "O")])),
    "zip": b"PK\3\4" + bytes(30),
    "7z": b"7z\xbc\xaf\x27\x1c" + bytes(30),
    "elf": b"\x7fELF\2\1\1" + bytes(60),
    "pe": b"MZ\x90\0\3" + bytes(60),
    "mach-o": b"\xcf\xfa\xed\xfe" + bytes(60),
    "wasm": b"\0asm\1\0\0\0",
    "hdf5": b"\x89HDF\r\n\x1a\n",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_is_not_taken_is_refused_under_any_name(tmp_path: Path, kind: str) -> None:
    archive = zipped(tmp_path / "a.zip", {**FILES, "data.txt": HIDDEN[kind]})
    assert problems(archive) == [("refused_file", "data.txt")]


HARMLESS = {
    "vocabulary.txt.gz": gzip.compress(b"a b c\n" * 1000),
    "mean.npy": numpy_file(np.zeros(3)),
    "words.npy": numpy_file(np.array(["Object", "O"])),
    "notes.md": b"MZ is not a program. color\nblue\n",
    "config.json": b'{"a": 1}',
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(40),
    "empty": b"",
}


def test_texts_arrays_and_pictures_are_taken(tmp_path: Path) -> None:
    assert contents(zipped(tmp_path / "a.zip", HARMLESS)) == HARMLESS


def test_a_pickle_is_refused_with_the_reason(tmp_path: Path) -> None:
    said = refused(zipped(tmp_path / "a.zip", {"model.pkl": b""}), "refused_file")
    assert "runs code" in said
    assert "safetensors" in said
