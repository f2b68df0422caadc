"""The cells of a board by column: as they stand in the snapshot, and read slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leaderboard.ranking.cells import Cell

SliceKey = tuple[str, str | None, str | None, str | None, str | None]
"""Measure, variant, split, facet and skill."""

_KEY = ("measure", "variant", "split", "facet", "skill")
_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()
SCHEMA = pa.schema(
    [
        pa.field("benchmark", _TEXT, nullable=False),
        pa.field("revision", _TEXT, nullable=False),
        pa.field("entry_id", _TEXT, nullable=False),
        pa.field("submission_id", _TEXT, nullable=False),
        pa.field("metric", _TEXT, nullable=False),
        pa.field("measure", _TEXT, nullable=False),
        pa.field("variant", _TEXT),
        pa.field("split", _TEXT),
        pa.field("facet", _TEXT),
        pa.field("skill", _TEXT),
        pa.field("value", _NUMBER),
        pa.field("ci_low", _NUMBER),
        pa.field("ci_high", _NUMBER),
        pa.field("ci_method", _TEXT),
        pa.field("n_items", _COUNT, nullable=False),
        pa.field("n_clusters", _COUNT, nullable=False),
        pa.field("n_missing", _COUNT, nullable=False),
        pa.field("rank", _COUNT),
        pa.field("rank_low", _COUNT),
        pa.field("rank_high", _COUNT),
        pa.field("p_best", _NUMBER),
        pa.field("tier", _COUNT),
        pa.field("distrust", _TEXT, nullable=False),
        pa.field("note", _TEXT, nullable=False),
        pa.field("row", _COUNT, nullable=False),
    ]
)
"""One row for each cell. The first five say whose it is; the rest are the fields of `Cell`."""

TEXTS = tuple(field.name for field in SCHEMA if field.type == _TEXT)
"""Columns in which few different values are repeated."""


def key_of(cell: Cell) -> SliceKey:
    """Of which slice a cell is."""
    return (cell.measure, cell.variant, cell.split, cell.facet, cell.skill)


def table_of(benchmark: str, revision: str, cells: Sequence[Cell]) -> Any:
    """Cells of one board as an Arrow table; a missing value and NaN stay two things."""
    whose = [cell.entry_id.rpartition("/") for cell in cells]
    own: dict[str, list[Any]] = {
        "benchmark": [benchmark] * len(cells),
        "revision": [revision] * len(cells),
        "submission_id": [submission_id for submission_id, _, _ in whose],
        "metric": [metric for _, _, metric in whose],
    }
    arrays = [
        pa.array(
            own.get(field.name) or [getattr(cell, field.name) for cell in cells],
            type=field.type,
            from_pandas=False,
        )
        if cells
        else pa.array([], type=field.type)
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


class CellColumns:
    """The cells of one board, read when they are first asked for.

    Args:
        load: reads the table of all its cells, with the columns of `SCHEMA`.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    @cached_property
    def table(self) -> Any:
        """All of them, as an Arrow table."""
        return self._load()

    @cached_property
    def keys(self) -> tuple[SliceKey, ...]:
        """The slices that have cells, in the order in which they appear."""
        return tuple(self._places)

    def slice(self, key: SliceKey) -> tuple[Cell, ...]:
        """The cells of one slice, in the order of the board; none where there is no such slice."""
        places = self._places.get(key)
        return () if places is None else _cells(self.table.take(places))

    def of_entries(self, entry_ids: Collection[str]) -> tuple[Cell, ...]:
        """The cells of some entries in all slices, in the order of the board."""
        wanted = pc.is_in(self.table["entry_id"], pa.array(list(entry_ids), _TEXT))
        return _cells(self.table.filter(wanted))

    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order of the board."""
        return _cells(self.table)

    @cached_property
    def _places(self) -> Mapping[SliceKey, NDArray[np.int64]]:
        """Slice to the rows that hold its cells."""
        texts = [self.table[name].combine_chunks() for name in _KEY]
        coded = [text.dictionary_encode() if text.type == _TEXT else text for text in texts]
        code = np.zeros(len(self.table), np.int64)
        for one in coded:
            # The code of a missing value is one that no text has.
            own = one.indices.fill_null(len(one.dictionary)).to_numpy(zero_copy_only=False)
            code = code * (len(one.dictionary) + 1) + own
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        parts = np.split(order, starts[1:]) if order.size else []
        parts.sort(key=lambda rows: int(rows[0]))
        return {tuple(one[int(rows[0])].as_py() for one in coded): rows for rows in parts}


_FIELDS = tuple(Cell.model_fields)


def _cells(table: Any) -> tuple[Cell, ...]:
    columns = [table[name].to_pylist() for name in _FIELDS]
    rows = zip(*columns, strict=True)
    return tuple(Cell(**dict(zip(_FIELDS, row, strict=True))) for row in rows)
