"""Tables that a card declares: files read, rows chosen, columns made and joined."""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from python_calamine import CalamineError

from benchmarks.families.card import (
    ROW,
    CellType,
    Column,
    FamilyCard,
    Join,
    Table,
    with_named_group,
)
from benchmarks.parquet import parquet_columns
from benchmarks.parsing import parse_json
from benchmarks.sources.folder import DataFolder, data_row

_SLOT = re.compile(r"\{([^{}:]+)(?::0(\d{1,2})d)?\}")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SHOWN = 3
_MOST_CELLS = 300_000_000
_LARGEST_WORKBOOK = 1 << 30
"""Bytes of its parts: a zip of kilobytes may hold more than any machine."""


@dataclass(frozen=True)
class JoinedTable:
    """The rows of the first table of a card with the columns that joins brought to them.

    Attributes:
        rows: index 0..n-1; the columns of the card.
        dropped: table to rows that `where` left out.
    """

    rows: pd.DataFrame
    dropped: Mapping[str, int] = field(default_factory=dict)


def read_tables(folder: DataFolder, card: FamilyCard) -> JoinedTable:
    """Read every table of a card and join them to the first.

    Raises:
        SubmitterError: `data_missing`, or `data_malformed` with file, row, column, what was found
            and what was expected.
    """
    tables, dropped = {}, {}
    for table in card.tables:
        tables[table.name], dropped[table.name] = read_table(folder, table)
    joined = tables[card.tables[0].name]
    paths = {table.name: table.paths[0] for table in card.tables}
    for join in card.joins:
        if join.left == card.tables[0].name:
            joined = _join(folder, paths, join, joined, tables[join.right])
        else:
            tables[join.left] = _join(folder, paths, join, tables[join.left], tables[join.right])
    return JoinedTable(joined, dropped)


def filled(template: str, cells: Mapping[str, Any]) -> str:
    """A template with its slots `{name}` and `{name:05d}` filled in.

    Raises:
        KeyError: a slot that is no cell. ValueError: a number is wanted where there is none.
    """

    def slot(match: re.Match[str]) -> str:
        value = cells[match[1]]
        return f"{int(value):0{int(match[2])}d}" if match[2] else str(value)

    return _SLOT.sub(slot, template)


def slots(template: str) -> tuple[str, ...]:
    """Names of the slots of a template."""
    return tuple(match[1] for match in _SLOT.finditer(template))


def read_table(folder: DataFolder, table: Table) -> tuple[pd.DataFrame, int]:
    """The columns of one table, and how many rows its `where` left out."""
    parts, n_dropped = [], 0
    for path in table.paths:
        raw = _raw(folder, path, table)
        kept = raw
        for column, values in table.where.items():
            wanted = {str(value) for value in values}
            kept = kept[_source(folder, path, kept, column).map(text_of).isin(wanted)]
        n_dropped += len(raw) - len(kept)
        parts.append(_made(folder, path, kept, table))
    return pd.concat(parts, ignore_index=True), n_dropped


def _raw(folder: DataFolder, path: str, table: Table) -> pd.DataFrame:
    """The cells of a file as they are, with `@file`, `@row` and what `records` and `explode` add."""
    form = table.format or PurePosixPath(path).suffix.lstrip(".").lower()
    reader = _READERS.get(form)
    if reader is None:
        raise folder.malformed(path, f"has the suffix {form!r}; expected {', '.join(_READERS)}")
    frame = reader(folder, path, table)
    if table.explode:
        frame = _exploded(folder, path, frame, table.explode)
    frame = frame.reset_index(drop=True)
    frame["@file"] = PurePosixPath(path).stem
    frame[ROW] = np.arange(len(frame))
    return frame


def _separated(separator: str) -> Callable[[DataFolder, str, Table], pd.DataFrame]:
    def read(folder: DataFolder, path: str, table: Table) -> pd.DataFrame:
        return folder.read_table(path, (), separator=separator, quotes=table.quotes)

    return read


def _json(folder: DataFolder, path: str, table: Table) -> pd.DataFrame:
    return _frame(_records(folder, path, folder.read_json(path), table.records))


def _json_lines(folder: DataFolder, path: str, table: Table) -> pd.DataFrame:
    lines = folder.path(path).read_bytes().splitlines()
    try:
        content = [parse_json(line) for line in lines if line.strip()]
    except ValueError as error:
        raise folder.malformed(path, f"is not JSON lines as expected: {error}") from error
    return _frame(_records(folder, path, content, table.records))


def _text_lines(folder: DataFolder, path: str, table: Table) -> pd.DataFrame:
    del table
    try:
        lines = folder.path(path).read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise folder.malformed(path, f"is not text in UTF-8: {error}") from error
    return pd.DataFrame({"@value": [line.strip() for line in lines if line.strip()]}, dtype=object)


def _parquet(folder: DataFolder, path: str, table: Table) -> pd.DataFrame:
    wanted, place = _source_columns(table), folder.path(path)
    try:
        cells = pq.read_metadata(place).num_rows * max(len(wanted), 1)
        if cells > _MOST_CELLS:
            raise folder.malformed(path, f"has {cells:,} cells, more than {_MOST_CELLS:,}")
        return parquet_columns(place, wanted)
    except (pa.ArrowException, KeyError) as error:
        raise folder.malformed(path, f"cannot be read as Parquet: {error}") from error


def _workbook(folder: DataFolder, path: str, table: Table) -> pd.DataFrame:
    del table
    try:
        with zipfile.ZipFile(folder.path(path)) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > _LARGEST_WORKBOOK:
            raise ValueError(f"it has {size:,} bytes unpacked, more than {_LARGEST_WORKBOOK:,}")
        return pd.read_excel(folder.path(path), engine="calamine", dtype=object)
    except (CalamineError, ValueError, zipfile.BadZipFile) as error:
        raise folder.malformed(path, f"cannot be read as a workbook: {error}") from error


_READERS: Mapping[str, Callable[[DataFolder, str, Table], pd.DataFrame]] = {
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "json": _json,
    "jsonl": _json_lines,
    "txt": _text_lines,
    "parquet": _parquet,
    "xlsx": _workbook,
}


def _source_columns(table: Table) -> list[str]:
    """Columns of the file that the table is made of."""
    named = [*table.where, table.explode]
    for column in table.columns.values():
        named += [column.source, *slots(column.template)]
    steps = (_steps(name)[0] for name in named if name and not name.startswith("@"))
    return list(dict.fromkeys(str(step) for step in steps))


def _records(folder: DataFolder, path: str, content: Any, places: str) -> list[dict[str, Any]]:
    """The records of a JSON file, with the keys that were passed as `@1`, `@2`, ..."""
    found: list[tuple[Any, dict[str, Any]]] = [(content, {})]
    for step in re.findall(r"[^.\[\]]+|\[\*\]", places or "[*]"):
        following: list[tuple[Any, dict[str, Any]]] = []
        for value, keys in found:
            if step == "[*]":
                if not isinstance(value, list):
                    raise folder.malformed(path, f"has no list at {places or 'its top'}")
                following += [(one, {**keys, "@index": i}) for i, one in enumerate(value)]
            elif not isinstance(value, dict):
                raise folder.malformed(
                    path, f"has no object at {places}, where {step!r} is looked for"
                )
            elif step == "*":
                number = f"@{sum(key[1:].isdigit() for key in keys) + 1}"
                following += [(one, {**keys, number: key}) for key, one in value.items()]
            elif step in value:
                following.append((value[step], keys))
            else:
                raise folder.malformed(path, f"has no {step!r} at {places}")
        found = following
    return [
        {**(value if isinstance(value, dict) else {"@value": value}), **keys}
        for value, keys in found
    ]


def _frame(records: list[dict[str, Any]]) -> pd.DataFrame:
    names = dict.fromkeys(name for record in records for name in record)
    return pd.DataFrame(
        {name: pd.Series([record.get(name) for record in records], dtype=object) for name in names}
    )


def _exploded(folder: DataFolder, path: str, frame: pd.DataFrame, column: str) -> pd.DataFrame:
    lists = _source(folder, path, frame, column).map(_as_list)
    if lists.isna().any():
        raise folder.malformed(path, f"has no list in column {column} ({_where(lists.isna())})")
    found = frame.assign(**{column: lists}).explode(column)
    found["@index"] = found.groupby(level=0).cumcount()
    return found[lists.map(len).loc[found.index] > 0]


def _made(folder: DataFolder, path: str, frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The columns of a table; what is wrong in any of them is said at once."""
    made, problems = {}, []
    for name, column in table.columns.items():
        try:
            made[name] = _cells(folder, path, frame, column)
        except _CellsError as wrong:
            problems.append(f"column {name}: {wrong}")
    if problems:
        raise folder.malformed(path, f"does not fit table {table.name}: {'; '.join(problems)}")
    return pd.DataFrame(made, index=frame.index)


class _CellsError(Exception):
    """Cells of a column that are not as expected."""


def _cells(folder: DataFolder, path: str, frame: pd.DataFrame, column: Column) -> pd.Series:
    if column.const is not None:
        return pd.Series([column.const] * len(frame), frame.index)
    if column.template:
        names = slots(column.template)
        parts = [_source(folder, path, frame, name) for name in names]
        try:
            made = [
                filled(column.template, dict(zip(names, cells, strict=True)))
                for cells in zip(*parts, strict=True)
            ]
        except ValueError as error:
            raise _CellsError(f"no number for {column.template!r}: {error}") from error
        cells = pd.Series(made, frame.index, dtype=object)
    else:
        cells = _source(folder, path, frame, column.source, optional=column.optional)
    empty = cells.map(_is_empty)
    if empty.any() and not column.optional:
        raise _CellsError(f"{int(empty.sum())} cells are empty ({_where(empty)})")
    known = cells[~empty]
    listed = column.type in _ELEMENT
    typed = _listed(known, column) if listed else _made_of(known, column, column.type)
    return typed if not empty.any() else typed.reindex(frame.index)


def _listed(cells: pd.Series, column: Column) -> pd.Series:
    """Lists whose entries are cut, mapped and typed."""
    lists = cells.map(_as_list)
    if lists.isna().any():
        raise _CellsError(f"{_wrong_cells(cells, lists.isna())}; expected a list")
    flat = lists.explode()
    # An empty list explodes into an empty cell.
    made = _made_of(flat[flat.notna()], column, _ELEMENT[column.type])
    grouped = made.groupby(level=0).agg(list)
    return grouped.reindex(cells.index).map(lambda one: one if isinstance(one, list) else [])


def _made_of(cells: pd.Series, column: Column, kind: CellType) -> pd.Series:
    """Cells that are cut, mapped and typed."""
    if column.regex:
        cells = _cut(cells, column.regex)
    if column.map:
        texts = cells.map(text_of)
        strange = ~texts.isin(list(column.map))
        if strange.any():
            raise _CellsError(
                f"{_wrong_cells(texts, strange)}; expected one of {', '.join(column.map)}"
            )
        cells = texts.map(dict(column.map))
    return _typed(cells, kind)


def _cut(cells: pd.Series, pattern: str) -> pd.Series:
    texts = pa.array(cells.map(text_of), pa.string())
    found = pc.extract_regex(texts, with_named_group(pattern))
    cut = pd.Series(pc.struct_field(found, "found").to_pylist(), cells.index, dtype=object)
    if cut.isna().any():
        raise _CellsError(
            f"{_wrong_cells(cells, cut.isna())}; expected a text that fits {pattern!r}"
        )
    return cut


def _typed(cells: pd.Series, kind: CellType) -> pd.Series:
    if kind == "str":
        return cells.map(text_of).astype(object)
    if kind == "bool":
        truth = cells.map(lambda cell: _TRUTH.get(text_of(cell).lower()))
        if truth.isna().any():
            raise _CellsError(f"{_wrong_cells(cells, truth.isna())}; expected true or false")
        return truth.astype(bool)
    numbers = pd.to_numeric(cells, errors="coerce")
    numbers = numbers.astype(np.float64)
    wrong = ~numbers.between(-np.inf, np.inf, inclusive="neither")
    if kind == "int":
        wrong |= numbers % 1 != 0
    if wrong.any():
        raise _CellsError(f"{_wrong_cells(cells, wrong)}; expected {_NUMBERS[kind]}")
    return numbers.astype(np.int64 if kind == "int" else np.float64)


_ELEMENT: Mapping[str, CellType] = {
    "list_str": "str",
    "list_int": "int",
    "list_float": "float",
}
_NUMBERS = {"int": "a whole number", "float": "a number"}


def _source(
    folder: DataFolder, path: str, frame: pd.DataFrame, name: str, *, optional: bool = False
) -> pd.Series:
    """The cells a name stands for: a column, or a path into its records."""
    if name in frame:
        return frame[name]
    first, *rest = _steps(name)
    if first in frame and rest:
        return frame[first].map(lambda cell: _reached(cell, rest))
    if optional:
        return pd.Series([None] * len(frame), frame.index, dtype=object)
    known = ", ".join(map(str, frame.columns[:20]))
    raise folder.malformed(path, f"has no column {name}; it has {known}")


def _steps(name: str) -> list[str | int]:
    found: list[str | int] = [
        int(match[2]) if match[2] else match[1] for match in _STEP.finditer(name)
    ]
    return found or [name]


def _reached(cell: Any, steps: Sequence[str | int]) -> Any:
    """What lies in a record, or in a cell of JSON, at the end of a path; None where nothing does."""
    if isinstance(cell, str):
        try:
            cell = parse_json(cell.encode())
        except ValueError:
            return None
    for step in steps:
        if isinstance(step, str) and isinstance(cell, dict):
            cell = cell.get(step)
        elif isinstance(step, int) and isinstance(cell, list | np.ndarray) and step < len(cell):
            cell = cell[step]
        else:
            return None
    return cell


def _as_list(cell: Any) -> list[Any] | None:
    """A list as it is, or in JSON; None for anything else."""
    if isinstance(cell, str):
        try:
            cell = parse_json(cell.encode())
        except ValueError:
            return None
    return list(cell) if isinstance(cell, list | tuple | np.ndarray) else None


def text_of(cell: Any) -> str:
    """A cell as text, whole numbers without a decimal point."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | list) else str(cell)


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or str(cell) == ""


def _wrong_cells(cells: pd.Series, wrong: pd.Series) -> str:
    """Which cells are wrong, and where; `wrong` has the index of `cells`."""
    bad = cells[wrong.to_numpy(bool)]
    shown = ", ".join(repr(text_of(cell)[:60]) for cell in bad.iloc[:_SHOWN])
    return f"{len(bad)} cells are {shown}{', …' if len(bad) > _SHOWN else ''} ({_where(wrong)})"


def _where(wrong: pd.Series) -> str:
    return f"first in {data_row(wrong.index[wrong.to_numpy(bool)][0])}"


def _join(
    folder: DataFolder,
    paths: Mapping[str, str],
    join: Join,
    left: pd.DataFrame,
    right: pd.DataFrame,
) -> pd.DataFrame:
    path = paths[join.right]
    for own, others in join.keys.items():
        if own not in left or others not in right:
            raise folder.malformed(path, f"cannot be joined on {own} = {others}: no such column")
    mine, theirs = list(join.keys), list(join.keys.values())
    brought = [str(name) for name in right if name not in left and name not in theirs]
    left_key = pd.MultiIndex.from_arrays([left[name].astype(str) for name in mine])
    right_key = pd.MultiIndex.from_arrays([right[name].astype(str) for name in theirs])
    strange = ~right_key.isin(left_key)
    if strange.any() and join.unmatched == "error":
        first = dict(zip(theirs, right_key[strange][0], strict=True))
        raise folder.malformed(
            path,
            f"has {int(strange.sum())} rows that fit no row of {join.left}; the first is {first} "
            f"({data_row(right.index[strange][0])})",
        )
    if join.how == "one":
        if right_key.has_duplicates:
            twice = right_key[right_key.duplicated()][0]
            raise folder.malformed(path, f"has {twice} twice; a join of one needs it once")
        place = right_key.get_indexer(left_key)
        if (place < 0).any():
            raise folder.malformed(path, f"has no row for {left_key[place < 0][0]} of {join.left}")
        return left.assign(**{name: right[name].to_numpy()[place] for name in brought})
    lists = right[brought].groupby(right_key).agg(list)
    places = lists.index.get_indexer(pd.Index(list(left_key)))
    return left.assign(
        **{
            name: pd.Series(
                [lists[name].iloc[place] if place >= 0 else [] for place in places], left.index
            )
            for name in brought
        }
    )
