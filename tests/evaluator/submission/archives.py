"""Makes archives, honest ones and crafted ones, for the tests of the intake."""

from __future__ import annotations

import io
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.errors import SubmitterError
from evaluator.submission.archives.archive import inspected, taken_in
from evaluator.submission.archives.entries import ArchiveLimits

Files = Mapping[str, bytes]
FILES: Files = {"assay.toml": b'name = "m"', "scorer.py": b"class Scorer: ...", "data/x.txt": b"x"}
MIB = 1 << 20


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


@contextmanager
def within(most: int) -> Iterator[None]:
    """No more than so many bytes are held at once."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All threads of the process count.
    others = [one.name for one in threading.enumerate()]
    assert peak < most, f"{peak / MIB:.1f} MiB, with threads {others}"
