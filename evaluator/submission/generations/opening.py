"""Tells what generations came as, and opens it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from benchmarks.errors import SubmitterError
from evaluator.generation.rows import TABLE
from evaluator.manifest import FILE, MAX_BYTES
from evaluator.submission.archives.archive import submitted_entries
from evaluator.submission.archives.entries import reading
from evaluator.submission.archives.names import is_left_behind, shown
from evaluator.submission.generations.in_archive import ArchiveSource
from evaluator.submission.generations.in_folder import FolderSource, bytes_inside
from evaluator.submission.generations.in_parquet import MAGIC, ParquetSource
from evaluator.submission.generations.limits import GenerationsLimits
from evaluator.submission.generations.sources import Source

_MOST_PARQUET = 10_000


@contextmanager
def opened_source(path: Path, limits: GenerationsLimits | None = None) -> Iterator[Source]:
    """Open a folder, a zip or tar, a Parquet file, or a folder of such.

    Args:
        path: where it is; only what it holds is read, and `assay.toml` beside a Parquet file.
        limits: how much may come.

    Raises:
        SubmitterError: `file_missing`, `too_many_files`, `not_an_archive`.
    """
    bounds = limits or GenerationsLimits()
    with ExitStack() as stack:
        yield _source(path, bounds, stack)


def _source(path: Path, limits: GenerationsLimits, stack: ExitStack) -> Source:
    if path.is_dir():
        tables = parquet_files(path)
        if tables and not (path / TABLE).exists():
            return ParquetSource(tables, path, _manifest(path), limits, shown(path.name))
        return FolderSource(path, limits)
    if is_parquet(path):
        beside = path.parent
        return ParquetSource((path,), beside, _manifest(beside), limits, shown(path.name))
    return ArchiveSource(path, limits, stack)


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does; its name may say anything."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def parquet_files(folder: Path) -> tuple[Path, ...]:
    """The Parquet files of a folder, in the order of their paths; links are no files."""
    found: list[Path] = []
    for path in sorted(folder.rglob("*.parquet")):
        inside = path.relative_to(folder)
        links = any((folder / part).is_symlink() for part in (inside, *inside.parents))
        if links or is_left_behind(inside.as_posix()) or not path.is_file():
            continue
        found.append(path)
        if len(found) > _MOST_PARQUET:
            raise SubmitterError(
                "too_many_files",
                f"{shown(folder.name)} holds more than {_MOST_PARQUET} Parquet files.",
                "Write fewer and larger ones.",
            )
    return tuple(found)


def _manifest(folder: Path) -> bytes | None:
    found = bytes_inside(folder, FILE, MAX_BYTES + 1, whole=False)
    return found if isinstance(found, bytes) else None


def says_generations(path: Path) -> bool:
    """Whether a folder, archive or file says that it holds generations, or holds Parquet files.

    What cannot be read holds none: whoever takes it for something else says what is wrong.
    """
    if path.is_dir():
        content = _manifest(path)
        return _of_generations(content) if content is not None else bool(parquet_files(path))
    if not path.is_file():
        return False
    if is_parquet(path):
        return True
    try:
        return _of_generations(_first_manifest(path))
    except SubmitterError:
        return False


def _first_manifest(path: Path) -> bytes | None:
    """The manifest of an archive; reads no further than to it."""
    limits = GenerationsLimits()
    for entry in reading(submitted_entries(path, limits), shown(path.name)):
        if PurePosixPath(entry.name).name == FILE and not entry.fault and not entry.is_folder:
            return next(reading(entry.pieces(), shown(path.name)), b"")
    return None


def _of_generations(content: bytes | None) -> bool:
    if content is None or len(content) > MAX_BYTES:
        return False
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # `check` says what is wrong with it
        return False
    return values.get("kind") == "generations"
