"""Folders that change while they are read: nothing outside is read, and nothing blocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.submission.archives.entries import Entry
from evaluator.submission.archives.folders import folder_entries
from evaluator.submission.archives.limits import ArchiveLimits

SECRET = b"secret"


def first(path: Path, name: str) -> tuple[Entry, Callable[[], list[str]]]:
    """Read until an entry, and what reads on behind it."""
    entries = folder_entries(path, ArchiveLimits())
    entry = next(entry for entry in entries if entry.name == name)
    return entry, lambda: [entry.name for entry in entries]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.py").write_bytes(SECRET)
    return folder


@pytest.fixture
def given(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.py").touch()
    (folder / "sub" / "a.py").touch()
    return folder


def test_a_file_that_became_a_link_is_not_followed(given: Path, outside: Path) -> None:
    entry, _ = first(given, "a.py")
    (given / "a.py").unlink()
    (given / "a.py").symlink_to(outside / "a.py")
    with pytest.raises(OSError, match="symbolic links"):
        list(entry.pieces())


def test_a_file_that_became_a_pipe_does_not_block(given: Path) -> None:
    entry, _ = first(given, "a.py")
    (given / "a.py").unlink()
    os.mkfifo(given / "a.py")
    with pytest.raises(ValueError, match="no file"):
        list(entry.pieces())


def test_a_folder_that_became_a_link_is_not_gone_into(given: Path, outside: Path) -> None:
    _, rest = first(given, "sub")
    (given / "sub").rename(given / "other")
    (given / "sub").symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        rest()


def test_a_folder_put_elsewhere_is_read_where_it_went(given: Path, outside: Path) -> None:
    entry, _ = first(given, "sub/a.py")
    (given / "sub").rename(given / "other")
    (given / "sub").symlink_to(outside)
    assert list(entry.pieces()) == []


def test_no_folder_is_held_open_once_reading_ends(given: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    _, rest = first(given, "a.py")
    assert rest() == ["sub", "sub/a.py"]
    assert len(list(Path("/proc/self/fd").iterdir())) == before
