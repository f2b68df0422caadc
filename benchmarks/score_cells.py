"""Reads the cells of a scores file, CSV or Parquet, and checks its columns.

Files come from strangers: how much a file may become in memory is known before it is read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.errors import SubmitterError
from benchmarks.parquet import parquet_file
from benchmarks.score_columns import MAX_METRICS, check_columns, too_many_metrics
from benchmarks.stored_scores import is_stored, widened

MAX_CELLS = 16_000_000
"""Of one file; as text they take some hundred bytes each while they are read."""
MAX_LINE = 1 << 20
MAX_INFLATED = 1 << 30
MAX_FOOTER = 4 << 20
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""An index without a name, as pandas writes it; nobody meant to send it."""


@dataclass(frozen=True)
class Cells:
    """The cells of a scores file as text or numbers.

    Attributes:
        name: of the file.
        cells: its index tells where in the file each row stands.
        place: what the index counts, lines or rows.
    """

    name: str
    cells: pd.DataFrame
    place: Literal["line", "row"]


def read_cells(content: bytes, name: str, metric: str, most_rows: int) -> Cells:
    """The cells of a file, with its columns checked.

    Args:
        content: the file.
        name: its name, for messages.
        metric: what a column `score` is to be named.
        most_rows: a file with more is refused before it is read.

    Raises:
        SubmitterError: `unreadable_scores`, `too_many_rows`, `file_too_large`, or what is wrong
            with the columns.
    """
    try:
        if content[:4] == b"PAR1":
            return _read_parquet(content, name, metric, most_rows)
        return _read_csv(content, name, metric, most_rows)
    except (pa.ArrowException, csv.Error, ValueError, OSError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SubmitterError(
            "unreadable_scores",
            f"{name} is neither CSV nor Parquet: {first_line[:300].rstrip('.')}.",
            "Send a comma-separated file with a header line, in UTF-8, or Parquet.",
        ) from error


def _read_csv(content: bytes, name: str, metric: str, most_rows: int) -> Cells:
    # As text, so that a cell which is not a number can be named as it was written.
    if max(content.count(b"\n"), content.count(b"\r")) > 2 * most_rows + 2:
        raise _too_many_rows(name, "more lines", most_rows)
    lines = _csv_lines(content)
    header = [cell.strip() for cell in next(lines, (1, []))[1]]
    if not header:
        raise ValueError("it is empty")
    check_columns(name, header, metric)
    places: list[int] = []
    rows: list[list[str]] = []
    for number, row in lines:
        if len(row) > len(header):
            raise ValueError(f"line {number} has more cells than the header line")
        places.append(number)
        rows.append(row + [""] * (len(header) - len(row)))
        _check_size(name, len(rows), len(header), most_rows)
    cells = pd.DataFrame(rows, index=pd.Index(places), columns=header, dtype=str)
    return Cells(name, cells, "line")


def _csv_lines(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not blank, numbered and cut into cells.

    No cell of a scores file needs a line break, so each line is read on its own: the numbers are
    right, and a quote that is never closed is found where it was opened.
    """
    text = TextIOWrapper(BytesIO(content), encoding="utf-8-sig", newline="")
    for number, line in enumerate(iter(lambda: text.readline(MAX_LINE + 1), ""), start=1):
        if len(line) > MAX_LINE:
            raise ValueError(f"line {number} has more than {MAX_LINE} characters")
        if line.strip():
            try:
                yield number, next(csv.reader((line,), strict=True))
            except csv.Error as error:
                raise ValueError(f"line {number}: {error}") from error


def _read_parquet(content: bytes, name: str, metric: str, most_rows: int) -> Cells:
    schema = _parquet_schema(content, name, metric, most_rows)
    columns = schema.names
    # Texts as dictionaries: what is repeated is held once until its full size is known.
    texts = [c for c in columns if _is_text(_value_type(schema.field(c).type))]
    file = parquet_file(content, texts)
    batches = [_plain(schema.empty_table())]
    size = 0
    for batch in file.iter_batches(columns=columns, use_threads=False):
        size += batch.nbytes + sum(_text_bytes(column) for column in batch.columns)
        if size > MAX_INFLATED:
            raise _inflates(name)
        batches.append(_plain(pa.Table.from_batches([batch])))
    table = pa.concat_tables(batches)
    table.validate(full=True)
    # Without pandas' own notes in the file, which would make an index of some columns.
    cells = table.rename_columns([c.strip() for c in columns]).to_pandas(ignore_metadata=True)
    if is_stored(columns):
        cells = widened(cells, name, MAX_CELLS)
        check_columns(name, list(cells.columns), metric)
    return Cells(name, cells.set_axis(range(1, len(cells) + 1)), "row")


def _parquet_schema(content: bytes, name: str, metric: str, most_rows: int) -> Any:
    """The columns to read, after all that can be told without reading them.

    A few values, and how often each stands there, can be millions of rows.
    """
    if content.endswith(b"PAR1") and int.from_bytes(content[-8:-4], "little") > MAX_FOOTER:
        raise ValueError(f"its footer has more than {MAX_FOOTER >> 20} MB")
    file = parquet_file(content)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    # A column of lists or records counts several times here.
    if file.metadata.num_columns > 2 * MAX_METRICS:
        raise too_many_metrics(name, file.metadata.num_columns)
    schema = pa.schema([f for f in file.schema_arrow if not _PANDAS_INDEX.fullmatch(f.name)])
    n_rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    if is_stored(schema.names):
        # Each row of this form is one cell of the other.
        _check_size(name, n_rows, 1, most_rows * MAX_METRICS)
    else:
        check_columns(name, [c.strip() for c in schema.names], metric)
        _check_size(name, n_rows, len(schema), most_rows)
    _check_types(name, schema)
    if sum(group.total_byte_size for group in groups) > MAX_INFLATED:
        raise _inflates(name)
    return schema


def _check_types(name: str, schema: Any) -> None:
    for field in schema:
        kind = _value_type(field.type)
        if not (_is_number(kind) or _is_text(kind)):
            raise SubmitterError(
                "not_numeric",
                f"{name}, column {field.name[:60]!r}: its cells are of the type {str(kind)[:60]}.",
                "Write ids as strings and scores as floating-point numbers.",
            )


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _text_bytes(column: Any) -> int:
    """What the texts of a dictionary column take when each row has its own."""
    if not pa.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return 0
    lengths = pc.binary_length(column.dictionary.cast(pa.large_string()))
    return pc.sum(pc.take(lengths, column.indices)).as_py() or 0


def _plain(table: Any) -> Any:
    """Ids as text and scores as float64 or text, whatever width and encoding they came in."""

    def plain(column: str, values: Any) -> Any:
        ids = column.strip() in ("pair_id", "element_id", "metric")
        number = _is_number(_value_type(values.type)) and not ids
        return values.cast(pa.float64() if number else pa.large_string(), safe=False)

    names = table.schema.names
    arrays = [plain(n, c) for n, c in zip(names, table.columns, strict=True)]
    return type(table).from_arrays(arrays, names=names)


def _check_size(name: str, n_rows: int, n_columns: int, most_rows: int) -> None:
    if n_rows > most_rows:
        raise _too_many_rows(name, "more rows", most_rows)
    if n_rows * n_columns > MAX_CELLS:
        raise SubmitterError(
            "too_many_rows",
            f"{name} has more than {MAX_CELLS} cells.",
            "Send fewer metrics in one file.",
        )


def _too_many_rows(name: str, what: str, most: int) -> SubmitterError:
    return SubmitterError(
        "too_many_rows",
        f"{name} has {what} than this benchmark can need (at most {most} rows are read).",
        "Keep one row per pair, and one per element where there are element scores.",
    )


def _inflates(name: str) -> SubmitterError:
    return SubmitterError(
        "file_too_large",
        f"{name} takes more than {MAX_INFLATED >> 20} MB when it is decompressed.",
        "Send fewer metrics in one file.",
    )
