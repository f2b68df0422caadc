"""Makes archives, honest ones and crafted ones, for the tests of the intake."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.archive import inspected, taken_in
from evaluator.submission.archives.entries import ArchiveLimits

Files = Mapping[str, bytes]
FILES: Files = {"assay.toml": b'name = "m"', "scorer.py": b"class Scorer: ...", "data/x.txt": b"x"}
MIB = 1 << 20
T = TypeVar("T")


def folder_of(path: Path, files: Files) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def zipped(path: Path, files: Files, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def tarred(
    path: Path,
    files: Files,
    change: Callable[[tarfile.TarInfo], None] | None = None,
    form: int = tarfile.PAX_FORMAT,
) -> Path:
    """A tar of files, compressed if its name says so; `change` may change their headers."""
    packed = path.name.endswith("gz")
    with tarfile.open(path, "w:gz" if packed else "w:", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if change:
                change(info)
            archive.addfile(info, io.BytesIO(data))
    return path


def contents(path: Path, limits: ArchiveLimits | None = None) -> dict[str, bytes]:
    """The files that come out of an archive."""
    with taken_in(path, path.parent / "scratch", limits) as content:
        return {name: (content.folder / name).read_bytes() for name in content.files}


def refused(path: Path, code: str, limits: ArchiveLimits | None = None) -> str:
    """What is said of an archive that is not taken; nothing of it is left behind."""
    scratch = path.parent / "scratch"
    with pytest.raises(SubmitterError) as caught, taken_in(path, scratch, limits):
        raise AssertionError
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    assert not list(scratch.glob("*"))
    return str(caught.value)


def problems(path: Path, limits: ArchiveLimits | None = None) -> list[tuple[str, str]]:
    """Code and file of everything that is wrong with the files of an archive."""
    with inspected(path, path.parent / "scratch", limits) as looked:
        return [(problem.code, problem.file) for problem in looked.problems]


def within(most: int, call: Callable[..., T], *given: object) -> T:
    """What a call returns, which may hold no more than so many bytes at once.

    It runs in a process of its own, where no other thread allocates.
    """
    with ProcessPoolExecutor(1, get_context("fork")) as alone:
        returned, peak = alone.submit(_traced, call, *given).result()
    assert peak < most, f"{peak / MIB:.1f} MiB"
    return returned


def _traced(call: Callable[..., T], *given: object) -> tuple[T, int]:
    tracemalloc.start()
    returned = call(*given)
    return returned, tracemalloc.get_traced_memory()[1]
