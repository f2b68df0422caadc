"""Images in columns of Parquet files, read one at a time where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import SubmitterError

_ROWS_AT_A_TIME = 16


class _Place(NamedTuple):
    file: int
    row: int  # of the file, from 0
    column: str


class ParquetImages:
    """Images of one table in Parquet files: a column, or several, of bytes or of `{bytes, path}`.

    Only names are kept in memory; an image costs reading the rows before it in its row group.

    `columns`: as many as a row has images. `keys`: columns whose cells name the images, as many;
    without any an image is named by its row over all files and its place there, `17/0`.
    """

    def __init__(self, paths: Sequence[Path], columns: Sequence[str], keys: Sequence[str]) -> None:
        self._paths, self._columns, self._keys = paths, columns, keys

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the images."""
        return frozenset(self._places)

    def has_columns(self) -> bool:
        """Whether every file is readable and has the columns."""
        try:
            return bool(self._files)
        except SubmitterError:
            return False

    @property
    def n_rows(self) -> int:
        """Rows of all files."""
        return sum(file.metadata.num_rows for file in self._files)

    def read(self, name: str) -> bytes:
        """Content of one image, as it is kept."""
        place = self._places[name]
        file, path = self._files[place.file], self._paths[place.file]
        sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
        ends = list(accumulate(sizes))
        group = next(at for at, end in enumerate(ends) if place.row < end)
        left = place.row - (ends[group] - sizes[group])
        try:
            # A reader of its own: this may be asked from several threads.
            opened = pq.ParquetFile(path, metadata=file.metadata, pre_buffer=False)
            for batch in opened.iter_batches(
                _ROWS_AT_A_TIME, [group], [_leaf(file, place.column)], use_threads=False
            ):
                if left < batch.num_rows:
                    cell = batch.column(0)[left].as_py()
                    break
                left -= batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, error) from error
        content = cell["bytes"] if isinstance(cell, dict) else cell
        if not content:
            raise SubmitterError(
                "data_malformed",
                f"{path} holds no image in column {place.column} (data row {place.row + 1}).",
                "Fetch it again, or take a release that holds the images themselves.",
            )
        return bytes(content)

    @cached_property
    def _files(self) -> list[pq.ParquetFile]:
        return [self._opened(path) for path in self._paths]

    def _opened(self, path: Path) -> pq.ParquetFile:
        try:
            file = pq.ParquetFile(path, pre_buffer=False)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(path, error) from error
        schema = file.schema_arrow
        for name in (*self._columns, *self._keys):
            if name not in schema.names:
                known = ", ".join(schema.names[:20])
                raise SubmitterError(
                    "data_malformed", f"{path} has no column {name}; it has {known}."
                )
        for name in self._columns:
            if not _holds_bytes(schema.field(name).type):
                raise SubmitterError(
                    "data_malformed",
                    f"{path} has {schema.field(name).type} in column {name}; expected bytes, or "
                    "bytes with a path.",
                )
        return file

    @cached_property
    def _places(self) -> dict[str, _Place]:
        found: dict[str, _Place] = {}
        for name, place in self._all():
            found.setdefault(name, place)
        return found

    def _all(self) -> Iterator[tuple[str, _Place]]:
        before = 0
        for at, file in enumerate(self._files):
            n_rows = file.metadata.num_rows
            keys = self._key_cells(at) if self._keys else None
            for place, column in enumerate(self._columns):
                for row in range(n_rows):
                    name = keys[place][row] if keys else f"{before + row}/{place}"
                    yield name, _Place(at, row, column)
            before += n_rows

    def _key_cells(self, at: int) -> list[list[str]]:
        """The cells of each key column of a file."""
        try:
            table = self._files[at].read(list(dict.fromkeys(self._keys)), use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(self._paths[at], error) from error
        return [[str(cell) for cell in table.column(key).to_pylist()] for key in self._keys]

    def __str__(self) -> str:
        more = f" (with {len(self._paths)} files)" if len(self._paths) > 1 else ""
        return f"{self._paths[0]}{more}"


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _holds_bytes(kind.field("bytes").type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _leaf(file: pq.ParquetFile, column: str) -> str:
    kind = file.schema_arrow.field(column).type
    return f"{column}.bytes" if pa.types.is_struct(kind) else column


def _damaged(path: Path, error: Exception) -> SubmitterError:
    return SubmitterError(
        "data_malformed", f"{path} cannot be read as Parquet: {error}.", "Fetch it again."
    )
