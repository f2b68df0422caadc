"""Generations in a folder, which may be anyone's: nothing outside of it is read, no link followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from benchmarks.prompt_sets.prompt_set import IMAGES
from evaluator.generation.check import Problem
from evaluator.generation.rows import ImageRow, stream_rows
from evaluator.manifest import FILE, MAX_BYTES
from evaluator.submission.archives.limits import mb
from evaluator.submission.archives.names import is_left_behind, shown
from evaluator.submission.generations.limits import LINE_BYTES, TABLE_BYTES, GenerationsLimits
from evaluator.submission.generations.sources import Fault, Found, TableLine, stray


@dataclass(frozen=True)
class FolderSource:
    """A folder with `assay.toml`, a table and the images.

    Attributes:
        folder: where they are.
        limits: how much may come.
    """

    folder: Path
    limits: GenerationsLimits

    @property
    def name(self) -> str:
        """See `Source`."""
        return shown(self.folder.name)

    def manifest(self) -> bytes | None:
        """See `Source`."""
        found = bytes_inside(self.folder, FILE, MAX_BYTES + 1, whole=False)
        return found if isinstance(found, bytes) else None

    def table(self, name: str) -> Iterator[TableLine] | str:
        """See `Source`."""
        place = place_inside(self.folder, name, TABLE_BYTES)
        return place if isinstance(place, str) else self._lines(place, name)

    def _lines(self, place: Path, name: str) -> Iterator[TableLine]:
        with place.open("rb") as file:
            yield from table_lines(file, name)

    def images(self, files: Mapping[str, int]) -> Iterator[Found | Problem]:
        """See `Source`."""
        for file, place in files.items():
            if place >= 0:
                yield Found(file, place, partial(self._read, file))
        for file in self._below(self.folder / IMAGES):
            if file not in files:
                yield stray(file)

    def _read(self, file: str) -> bytes | Fault:
        found = bytes_inside(self.folder, file, self.limits.file_bytes)
        return found if isinstance(found, bytes) else Fault("missing", found)

    def _below(self, folder: Path) -> Iterator[str]:
        for place, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                file = (Path(place) / name).relative_to(self.folder).as_posix()
                if not is_left_behind(file):
                    yield file


def table_lines(file: BinaryIO, name: str) -> Iterator[TableLine]:
    """The lines of a table of images."""
    for found in stream_rows(_bounded(file)):
        if isinstance(found, ImageRow):
            yield TableLine(name, found)
        else:
            yield TableLine(f"{name}, line {found.line}", found.reason)


def _bounded(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LINE_BYTES):
        yield line


def bytes_inside(folder: Path, file: str, most: int, *, whole: bool = True) -> bytes | str:
    """The bytes of a file of the folder, or why there are none.

    Args:
        folder: nothing outside of it is read.
        file: path inside, a stranger's.
        most: bytes it may have.
        whole: whether a longer one is refused; otherwise its beginning is given.
    """
    place = place_inside(folder, file, most if whole else None)
    if isinstance(place, str):
        return place
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            return opened.read(most)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def place_inside(folder: Path, file: str, most: int | None) -> Path | str:
    """Where a plain file of the folder is, or why it is none."""
    parts = PurePosixPath(file).parts
    if not parts or file.startswith("/") or ".." in parts or "\\" in file or "\0" in file:
        return "its path does not stay inside the folder"
    place = str(folder)
    try:
        for part in parts:
            place = f"{place}/{part}"
            found = os.lstat(place)
            if stat.S_ISLNK(found.st_mode):
                return "it is a link"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if not stat.S_ISREG(found.st_mode):
        return "it is no plain file"
    if most is not None and found.st_size > most:
        return f"it has more than {mb(most)}"
    return Path(place)
