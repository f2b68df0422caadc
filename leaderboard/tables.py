"""Tables as they are on screen, with raw values, to take away as CSV, Parquet or JSON.

Values keep their digits; a missing value and NaN are an empty field in CSV, `null` in JSON, and
two things in Parquet. In CSV no text can be a formula of a spreadsheet; the other two keep texts
as they are.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from leaderboard.text import clean

Value = str | float | int | bool | None
ABOUT = b"assay"  # Key under which a Parquet file keeps what its table is about, as JSON

_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Some spreadsheets take the wide forms for the narrow ones."""
_PASSED_OVER = "".join(char for char in map(chr, range(0x3001)) if char.isspace()) + '"'
"""What may stand before a formula: spaces, and quotes where a line is split within them."""


class Type(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    NUMBER = "number"
    COUNT = "integer"
    FLAG = "boolean"


_ARROW = {
    Type.TEXT: pa.string(),
    Type.NUMBER: pa.float64(),
    Type.COUNT: pa.int64(),
    Type.FLAG: pa.bool_(),
}


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str  # stable, for programs
    type: Type  # of its values; any may be missing
    meaning: str = ""  # what it says, with its unit


@dataclass(frozen=True)
class Table:
    """What is on screen, with raw values."""

    name: str  # says what is inside, as a file name would
    columns: tuple[Column, ...]  # in their order
    # column name to value, in the order of the screen; what a row lacks is missing
    rows: Sequence[Mapping[str, Value]] = ()
    # what the table is of, for whoever finds it later
    about: Mapping[str, Any] = field(default_factory=dict)

    def value(self, row: Mapping[str, Value], column: Column) -> Value:
        """A value as the type of its column says."""
        found = row.get(column.name)
        if found is None:
            return None
        if column.type is Type.TEXT:
            # A lone surrogate is no character, and no file can hold it.
            return str(found).encode("utf-8", "replace").decode()
        if column.type is Type.FLAG:
            return bool(found)
        return float(found) if column.type is Type.NUMBER else int(found)


def columns_of(
    names: Sequence[str], types: Mapping[Type, str], meanings: Mapping[str, str]
) -> tuple[Column, ...]:
    """Columns by name; whatever `types` does not name is text."""
    of = {name: type_ for type_, listed in types.items() for name in listed.split()}
    return tuple(Column(n, of.get(n, Type.TEXT), meanings.get(n, "")) for n in names)


def harmless(value: object) -> object:
    """The value, with an apostrophe before any text that a spreadsheet would run as a formula.

    Where a comma is part of numbers, spreadsheets split lines at semicolons, whatever is quoted: so
    a formula behind one of those gets its apostrophe as well.
    """
    if not isinstance(value, str):
        return value
    first, *others = value.split(";")
    return ";".join([_harmless(first), *map(_harmless, others)]) if others else _harmless(first)


def _harmless(value: str) -> str:
    # Cleaned first: a formula may hide behind characters that cleaning drops.
    shown = clean(value)
    starts = value.startswith(("\t", "\r")) or shown.lstrip(_PASSED_OVER).startswith(
        _FORMULA_STARTS
    )
    return f"'{shown}" if starts and not _is_number(shown) else shown


def to_csv(table: Table) -> str:
    """With a line of column names; an empty field where there is no value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([harmless(column.name) for column in table.columns])
    writer.writerows(
        [_field(table.value(row, column)) for column in table.columns] for row in table.rows
    )
    return out.getvalue()


def to_json(table: Table) -> str:
    """Columns, rows and what the table is about; everything outside ASCII is escaped."""
    return json.dumps(
        {
            "name": table.name,
            "about": dict(table.about),
            "columns": [
                {"name": one.name, "type": one.type.value, "meaning": one.meaning}
                for one in table.columns
            ],
            "rows": [
                {column.name: _finite(table.value(row, column)) for column in table.columns}
                for row in table.rows
            ],
        },
        allow_nan=False,
    )


def to_parquet(table: Table) -> bytes:
    """Typed columns; what a column means and what the table is about are in the metadata."""
    values = [[table.value(row, column) for row in table.rows] for column in table.columns]
    types = [_arrow(one.type, of) for one, of in zip(table.columns, values, strict=True)]
    schema = pa.schema(
        [
            pa.field(one.name, type_, metadata={"meaning": one.meaning})
            for one, type_ in zip(table.columns, types, strict=True)
        ],
        metadata={ABOUT: json.dumps({"name": table.name, **table.about}).encode()},
    )
    arrays = [
        pa.array(of, type=type_, from_pandas=False) for of, type_ in zip(values, types, strict=True)
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), buffer, compression="zstd")
    return buffer.getvalue()


def _arrow(type_: Type, values: Sequence[Value]) -> pa.DataType:
    """Of a column; random seeds may be larger than any signed number."""
    if type_ is Type.COUNT and any(isinstance(one, int) and one >= 2**63 for one in values):
        return pa.uint64()
    return _ARROW[type_]


def _field(value: Value) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isnan(value):
        return ""
    return harmless(value)


def _finite(value: Value) -> Value:
    """JSON has no word for what is not a finite number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
