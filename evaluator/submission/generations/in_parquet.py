"""Generations in Parquet: a row for each image, with the columns `prompt_id`, `seed` and `image`.

`image` holds bytes, or the `{bytes, path}` of Hugging Face datasets. There may be `prompt` and
`problem` beside it, as in the table of a folder. What a file says of itself is read first, and a
few images at a time then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from benchmarks.errors import SubmitterError
from evaluator.generation.check import Problem
from evaluator.generation.rows import ImageRow, row_fault
from evaluator.submission.archives.limits import mb
from evaluator.submission.archives.names import shown
from evaluator.submission.archives.zips import too_large
from evaluator.submission.generations.limits import GROUP_BYTES, LINE_BYTES, GenerationsLimits
from evaluator.submission.generations.sources import Fault, Found, TableLine

MAGIC = b"PAR1"
_ROWS = 256
_NEEDED = ("prompt_id", "seed", "image")
_MORE = ("prompt", "problem")
_ONCE = ("prompt_id", *_MORE)
_BUFFER = 1 << 20
_COLUMNS = "The columns are prompt_id, seed, image (bytes) and, if you like, prompt and problem."


class ParquetSource:
    """Parquet files, with the manifest that lies beside them.

    Args:
        files: in their order.
        folder: that all of them lie in.
        manifest: content of `assay.toml`; None where there is none.
        limits: how much may come.
        name: what all of it is called in messages.
    """

    def __init__(
        self,
        files: Sequence[Path],
        folder: Path,
        manifest: bytes | None,
        limits: GenerationsLimits,
        name: str,
    ) -> None:
        self._files = {shown(path.relative_to(folder).as_posix()): path for path in files}
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

    def images(self, files: Mapping[str, int]) -> Iterator[Found | Problem]:
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
                        yield Found(name, place, lambda found=data: found)  # type: ignore[misc]

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
