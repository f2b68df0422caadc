"""Sources of generations: a folder, an archive or Parquet, all read in the same way.

A folder may be anyone's: nothing outside of it is read, no link followed. An archive is read as a
stream, twice (for manifest and table, then for the images), and nothing of it is unpacked to disk
but the table. Parquet has a row for each image, with the columns `prompt_id`, `seed` and `image`
(bytes, or the `{bytes, path}` of Hugging Face datasets), and if you like `prompt` and `problem`;
what a file says of itself is read first, and a few images at a time then.
"""

from __future__ import annotations

import os
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import IMAGES
from evaluator.generation.check import Kind, Problem
from evaluator.generation.manifest import TABLE, ImageRow, row_fault, stream_rows
from evaluator.manifest import FILE, MAX_BYTES
from evaluator.submission.archives.archive import submitted_entries
from evaluator.submission.archives.entries import (
    ArchiveLimits,
    Entry,
    is_left_behind,
    mb,
    name_problem,
    printable,
    reading,
    too_large,
)

TABLE_BYTES = 256 << 20
"""Of the table of images, however it is packed."""
LINE_BYTES = 1 << 20
"""Of one line of it."""
GROUP_BYTES = 2 << 30
"""Of the images of one row group of a Parquet file, decompressed."""
_FOLDERS = 10_000


@dataclass(frozen=True)
class GenerationsLimits(ArchiveLimits):
    """See `ArchiveLimits`; one file is one image."""

    entries: int = 200_000
    file_bytes: int = 64 << 20
    total_bytes: int = 100 << 30

    @property
    def members(self) -> int:
        """What is listed at the end of a zip is held while it is read: no multiple of `entries`."""
        return self.entries + _FOLDERS


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an image cannot be used."""

    kind: Kind
    message: str


@dataclass(frozen=True, slots=True)
class ImageSource:
    """The file of an image."""

    file: str  # as the table names it
    place: int  # of the image, as it was asked for
    # gives its bytes, or why there are none; called once, in any thread
    read: Callable[[], bytes | Fault]


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of the table."""

    where: str  # it stands, for messages
    row: ImageRow | str  # what it holds, or what is wrong with it


class Source(Protocol):
    """Where the images of a submission are.

    All methods raise SubmitterError where the whole of it cannot be read.
    """

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def manifest(self) -> bytes | None:
        """`assay.toml`, or its beginning where it is too long; None where there is none."""

    def table(self, name: str) -> Iterator[TableLine] | str:
        """The lines of the table of images, or why there is none. May be asked for again."""

    def images(self, files: Mapping[str, int]) -> Iterator[ImageSource | Problem]:
        """The images, in the order in which they are read best, and the files that nobody named."""


def stray(file: str) -> Problem:
    """A file of images that no row names."""
    return Problem("extra", file, "no row names this file")


@dataclass(frozen=True)
class FolderSource:
    """A folder with `assay.toml`, a table and the images."""

    folder: Path  # where they are
    limits: GenerationsLimits  # how much may come

    @property
    def name(self) -> str:
        """See `Source`."""
        return printable(self.folder.name)

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

    def images(self, files: Mapping[str, int]) -> Iterator[ImageSource | Problem]:
        """See `Source`."""
        for file, place in files.items():
            if place >= 0:
                yield ImageSource(file, place, partial(self._read, file))
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
    """The bytes of a file of the folder, or why there are none."""
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


_TABLES = ".jsonl"
_MOST_CANDIDATES = 16
_IN_MEMORY = 8 << 20


@dataclass
class _FirstReading:
    """What the first reading finds."""

    # of every folder that has one, by path
    manifests: dict[str, bytes] = field(default_factory=dict)
    # files that may be the table, by path
    tables: dict[str, BinaryIO] = field(default_factory=dict)
    around: tuple[str, ...] | None = None  # parts of the path that all files share
    problems: list[Problem] = field(default_factory=list)  # names that are refused

    @property
    def prefix(self) -> str:
        """The folders around everything, which are taken off."""
        return "".join(f"{part}/" for part in self.around or ())

    def went_by(self, name: str) -> None:
        """Note where a file lies."""
        parts = PurePosixPath(name).parts[:-1]
        if self.around is None:
            self.around = parts
            return
        same = 0
        for one, other in zip(self.around, parts, strict=False):
            if one != other:
                break
            same += 1
        self.around = self.around[:same]


class ArchiveSource:
    """A zip or tar of a folder with `assay.toml`, a table and the images."""

    def __init__(self, path: Path, limits: GenerationsLimits, stack: ExitStack) -> None:
        self._path = path
        self._limits = limits
        self._stack = stack
        self._read_head: _FirstReading | None = None

    @property
    def name(self) -> str:
        """See `Source`."""
        return printable(self._path.name)

    def manifest(self) -> bytes | None:
        """See `Source`."""
        head = self._head()
        return head.manifests.get(f"{head.prefix}{FILE}")

    def table(self, name: str) -> Iterator[TableLine] | str:
        """See `Source`."""
        head = self._head()
        file = head.tables.get(f"{head.prefix}{name}")
        if file is None:
            return f"there is no such file in the archive (its name ends in {_TABLES})"
        file.seek(0)
        return table_lines(file, name)

    def images(self, files: Mapping[str, int]) -> Iterator[ImageSource | Problem]:
        """See `Source`."""
        head, seen, taken = self._head(), set[int](), 0
        yield from head.problems
        for entry in self._entries():
            file = entry.name.removeprefix(head.prefix)
            place = files.get(file)
            if place is None or place in seen:
                if file.startswith(f"{IMAGES}/"):  # Others may lie beside the images
                    again = Problem("extra", file, "the archive holds two files of this name")
                    yield stray(file) if place is None else again
            elif place >= 0:
                seen.add(place)
                data = self._content(entry)
                taken += len(data) if isinstance(data, bytes) else 0
                if taken > self._limits.total_bytes:
                    raise too_large(self.name, self._limits)
                yield ImageSource(file, place, lambda found=data: found)  # type: ignore[misc]

    def _head(self) -> _FirstReading:
        if self._read_head is not None:
            return self._read_head
        head = _FirstReading()
        for count, entry in enumerate(self._entries(), start=1):
            if count > self._limits.entries:
                raise SubmitterError(
                    "too_many_files",
                    f"{self.name} holds more than {self._limits.entries} files.",
                    "Send the images of one prompt set, one for each prompt and seed.",
                )
            if problem := name_problem(entry.name, self._limits):
                head.problems.append(Problem("unsafe_name", problem.file, problem.message))
                continue
            head.went_by(entry.name)
            self._keep(entry, head)
        self._read_head = head
        return head

    def _keep(self, entry: Entry, head: _FirstReading) -> None:
        last = PurePosixPath(entry.name).name
        if last != FILE and not last.endswith(_TABLES):
            return
        if len(head.tables) + len(head.manifests) >= _MOST_CANDIDATES:
            return
        if entry.fault:
            raise SubmitterError(
                "unreadable_file",
                f"{printable(entry.name)} in {self.name} cannot be read: it {entry.fault}.",
                "Pack it anew, as a plain file and without a password.",
            )
        if entry.name in head.manifests or entry.name in head.tables:
            raise SubmitterError(
                "file_twice",
                f"{self.name} holds two files {printable(entry.name)}.",
                "Keep the right one.",
            )
        if last == FILE:
            head.manifests[entry.name] = self._beginning(entry, MAX_BYTES + 1)
        else:
            spooled = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed with the source)
            file = self._stack.enter_context(spooled)
            n_bytes = 0
            for piece in reading(entry.pieces(), self.name):
                n_bytes += len(piece)
                if n_bytes > TABLE_BYTES:
                    raise SubmitterError(
                        "too_large",
                        f"{printable(entry.name)} has more than {mb(TABLE_BYTES)}.",
                        "A line of the table needs a prompt id, a seed and a file only.",
                    )
                file.write(piece)
            head.tables[entry.name] = file  # type: ignore[assignment]

    def _beginning(self, entry: Entry, most: int) -> bytes:
        found = b""
        for piece in reading(entry.pieces(), self.name):
            found += piece
            if len(found) >= most:
                break
        return found[:most]

    def _content(self, entry: Entry) -> bytes | Fault:
        if entry.fault:
            return Fault("missing", f"it {entry.fault}")
        pieces: list[bytes] = []
        n_bytes = 0
        for piece in reading(entry.pieces(), self.name):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > self._limits.file_bytes:
                return Fault("missing", f"it has more than {mb(self._limits.file_bytes)}")
        return b"".join(pieces)

    def _entries(self) -> Iterator[Entry]:
        """Its files, without what tools leave behind."""
        for entry in reading(submitted_entries(self._path, self._limits), self.name):
            if not entry.is_folder and not is_left_behind(entry.name):
                yield entry


MAGIC = b"PAR1"
_ROWS = 256
_NEEDED = ("prompt_id", "seed", "image")
_MORE = ("prompt", "problem")
_ONCE = ("prompt_id", *_MORE)
_BUFFER = 1 << 20
_COLUMNS = "The columns are prompt_id, seed, image (bytes) and, if you like, prompt and problem."


class ParquetSource:
    """Parquet files, with the manifest that lies beside them."""

    def __init__(
        self,
        files: Sequence[Path],
        folder: Path,
        manifest: bytes | None,
        limits: GenerationsLimits,
        name: str,
    ) -> None:
        self._files = {printable(path.relative_to(folder).as_posix()): path for path in files}
        self._manifest = manifest
        self._limits = limits
        self._name = name

    @property
    def name(self) -> str:
        """See `Source`."""
        return self._name

    def manifest(self) -> bytes | None:
        """See `Source`."""
        return self._manifest

    def table(self, name: str) -> Iterator[TableLine] | str:
        """See `Source`."""
        del name  # The files are the table.
        return self._lines()

    def _lines(self) -> Iterator[TableLine]:
        n_rows = 0
        for label, path in self._files.items():
            with self._opened(label, path) as file:
                n_rows += file.metadata.num_rows
                if n_rows > self._limits.entries:
                    raise SubmitterError(
                        "too_many_files",
                        f"{self.name} holds more than {self._limits.entries} images.",
                        "Send the images of one prompt set, one for each prompt and seed.",
                    )
                there = set(file.schema_arrow.names)
                columns = [*_NEEDED[:2], *(name for name in _MORE if name in there)]
                number = 0
                for batch in file.iter_batches(_ROWS, columns=columns, use_threads=False):
                    _check_texts(batch, label)
                    for values in batch.to_pylist():
                        number += 1
                        yield _line(values, f"{label}, row {number}")

    def images(self, files: Mapping[str, int]) -> Iterator[ImageSource | Problem]:
        """See `Source`."""
        taken = 0
        for label, path in self._files.items():
            number = 0
            with self._opened(label, path) as file:
                for value in _values(file):
                    number += 1
                    name = f"{label}, row {number}"
                    place = files.get(name, -1)
                    taken += 0 if value is None else value.size
                    if taken > self._limits.total_bytes:
                        raise too_large(self.name, self._limits)
                    data = self._content(value, name)
                    if place >= 0:
                        yield ImageSource(name, place, lambda found=data: found)  # type: ignore[misc]

    def _content(self, value: pa.Buffer | None, name: str) -> bytes | Fault:
        if value is None or not value.size:
            return Fault("missing", "its image is empty; a path alone is none")
        if value.size > self._limits.file_bytes:
            raise SubmitterError(
                "too_large",
                f"{name} has an image of more than {mb(self._limits.file_bytes)}.",
                "One image takes a few megabytes.",
            )
        return bytes(value.to_pybytes())

    @contextmanager
    def _opened(self, label: str, path: Path) -> Iterator[pq.ParquetFile]:
        with _in_words(label):
            with pq.ParquetFile(path, pre_buffer=False) as file:
                _check_columns(label, file.schema_arrow)
                _check_sizes(label, file.metadata)
                paths = {file.schema.column(n).path for n in range(len(file.schema))}
            # A text that is written once and named in every row is kept once, and images come
            # one by one: written out, a file of a few hundred bytes would fill the memory.
            once = [name for name in _ONCE if name in paths]
            with pq.ParquetFile(
                path, pre_buffer=False, buffer_size=_BUFFER, read_dictionary=once
            ) as file:
                yield file


def _values(file: pq.ParquetFile) -> Iterator[pa.Buffer | None]:
    """The bytes of the column of images, one after the other, not copied."""
    nested = pa.types.is_struct(file.schema_arrow.field("image").type)
    columns = ["image.bytes" if nested else "image"]
    for batch in file.iter_batches(1, columns=columns, use_threads=False):
        column = batch.column(0)
        if nested:
            column = pc.struct_field(column, "bytes")
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        yield column[0].as_buffer()


def _line(values: Mapping[str, object], where: str) -> TableLine:
    problem = values.get("problem") or None
    row = {**values, "problem": problem, "file": None if problem else where}
    try:
        return TableLine(where, ImageRow.model_validate(row))
    except ValidationError as error:
        return TableLine(where, row_fault(error))


def _check_columns(label: str, schema: pa.Schema) -> None:
    names = schema.names
    faults = [f"it has no column {name}" for name in _NEEDED if names.count(name) != 1]
    faults += [
        f"{name} is no text ({schema.field(name).type})"
        for name in ("prompt_id", *_MORE)
        if names.count(name) == 1 and not _is_text(schema.field(name).type)
    ]
    if "seed" in names and not pa.types.is_integer(schema.field("seed").type):
        faults.append(f"seed is no whole number ({schema.field('seed').type})")
    if "image" in names and not _holds_bytes(schema.field("image").type):
        faults.append(f"image holds no bytes ({str(schema.field('image').type)[:80]})")
    if faults:
        raise SubmitterError("bad_parquet", f"{label}: {', '.join(faults)}.", _COLUMNS)


def _check_sizes(label: str, metadata: pq.FileMetaData) -> None:
    for number in range(metadata.num_row_groups):
        if metadata.row_group(number).total_byte_size > GROUP_BYTES:
            raise SubmitterError(
                "too_large",
                f"{label}: row group {number + 1} has more than {mb(GROUP_BYTES)}.",
                "Write row groups of a few hundred images.",
            )


def _check_texts(batch: pa.RecordBatch, label: str) -> None:
    """Refuse long texts before they are copied for every row."""
    for name in ("prompt_id", *_MORE):
        if name in batch.schema.names:
            longest = pc.max(pc.binary_length(batch.column(name).dictionary)).as_py() or 0
            if longest > LINE_BYTES:
                raise SubmitterError("bad_parquet", f"{label}: a {name} has {mb(longest)}.")


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):  # as pandas writes categories
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return [_is_bytes(one.type) for one in kind if one.name == "bytes"] == [True]
    return _is_bytes(kind)


def _is_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_bytes(kind.value_type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


@contextmanager
def _in_words(label: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
        raise SubmitterError(
            "damaged_parquet",
            f"{label} cannot be read: {str(error).splitlines()[0][:200] if str(error) else 'damaged'}.",
            "Write it again, and check that all of it was copied.",
        ) from error


_MOST_PARQUET = 10_000


@contextmanager
def opened_source(path: Path, limits: GenerationsLimits | None = None) -> Iterator[Source]:
    """Open a folder, a zip or tar, a Parquet file, or a folder of such."""
    bounds = limits or GenerationsLimits()
    with ExitStack() as stack:
        yield _source(path, bounds, stack)


def _source(path: Path, limits: GenerationsLimits, stack: ExitStack) -> Source:
    if path.is_dir():
        tables = parquet_files(path)
        if tables and not (path / TABLE).exists():
            return ParquetSource(tables, path, _manifest(path), limits, printable(path.name))
        return FolderSource(path, limits)
    if is_parquet(path):
        beside = path.parent
        return ParquetSource((path,), beside, _manifest(beside), limits, printable(path.name))
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
                f"{printable(folder.name)} holds more than {_MOST_PARQUET} Parquet files.",
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
    for entry in reading(submitted_entries(path, limits), printable(path.name)):
        if PurePosixPath(entry.name).name == FILE and not entry.fault and not entry.is_folder:
            return next(reading(entry.pieces(), printable(path.name)), b"")
    return None


def _of_generations(content: bytes | None) -> bool:
    if content is None or len(content) > MAX_BYTES:
        return False
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):  # `check` says what is wrong with it
        return False
    return values.get("kind") == "generations"
