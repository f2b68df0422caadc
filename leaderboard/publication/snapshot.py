"""The file of the snapshot: Parquet, one row for each cell, the rest as JSON in its metadata.

Anyone reads the table with pandas or `datasets`. Opening it here reads the metadata alone; a board
is read when it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from io import BytesIO
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from benchmarks.errors import PlatformError
from benchmarks.parquet import parquet_file
from benchmarks.schema import Card, Selector
from benchmarks.statistics.resampling import seed_of
from leaderboard.publication.entries import Entry, StoredEntries, stored
from leaderboard.publication.results import RANKED_BY, Origin
from leaderboard.ranking.cells import Cell, best_first
from leaderboard.store.interface import NotFoundError, Repository

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
        pa.field("best_share", _NUMBER),
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
    """The cells of one board, read when they are first asked for."""

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


class Board:
    """All values on one benchmark revision."""

    def __init__(
        self,
        card: Card,  # the benchmark
        cells: Sequence[Cell] | None = None,
        load: Callable[[], Any] | None = None,
    ) -> None:
        self.card = card
        self._given = None if cells is None else tuple(cells)
        self.columns = CellColumns(load or self._table)

    @property
    def seed(self) -> int:
        """Seed of its resamples and tests."""
        return seed_of(self.card.name, self.card.revision)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every one; where few are needed, ask for slices."""
        return self.columns.cells() if self._given is None else self._given

    @property
    def keys(self) -> tuple[SliceKey, ...]:
        """The slices that have cells, in the order in which they appear."""
        return self.columns.keys

    def slice(self, selector: Selector, skill: str | None) -> tuple[Cell, ...]:
        """The cells of one ranking: best first, undefined values last."""
        found = self.columns.slice(
            (selector.measure, selector.variant, selector.split, selector.facet, skill)
        )
        return best_first(found, higher_is_better=self.card.higher_is_better(selector.measure))

    def _table(self) -> Any:
        return table_of(self.card.name, self.card.revision, self._given or ())


@dataclass(frozen=True)
class Snapshot:
    """Everything the pages show."""

    built_at: datetime  # when it was made
    entries: Mapping[str, Entry]  # by id
    boards: Mapping[str, Board]  # by benchmark
    built_from: str = ""  # version of the store it was made from; empty where that is not known
    # submission to what of it is shown; empty in snapshots older than this statement
    origins: Mapping[str, Origin] = field(default_factory=dict)


PATH = "snapshot.parquet"
OLD_PATH = "snapshot.json"
"""Where snapshots of version 1 are, all of one in JSON; the next publication replaces it."""
METADATA, ENTRIES = b"assay", b"assay.entries"
"""Keys of the metadata of the file: one JSON value, and the entries, one as JSON a line."""
_EARLIER = {"p_best": "best_share"}
"""Names that columns had before; a snapshot that is kept still has them."""
_ROWS = 1 << 16  # Of a row group; a board begins a new one
_CODEC: dict[str, Any] = {"compression": "zstd", "compression_level": 3}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _BoardPart(_Model):
    """Which row groups of the file a board is in."""

    card: Card
    first: int
    groups: int


class _Header(_Model):
    """What the metadata hold."""

    schema_version: Literal[2] = 2
    built_at: AwareDatetime
    built_from: str
    ranked_by: int
    entry_ids: tuple[str, ...]
    boards: tuple[_BoardPart, ...]
    origins: dict[str, Origin]


class _OldBoard(_Model):
    card: Card
    cells: tuple[Cell, ...]


class _OldSnapshot(_Model):
    """Version 1."""

    schema_version: Literal[1] = 1
    built_at: AwareDatetime
    entries: dict[str, Entry]
    boards: dict[str, _OldBoard]


def snapshot_bytes(snapshot: Snapshot) -> bytes:
    """The file of a snapshot: equal snapshots make equal bytes."""
    buffer = BytesIO()
    parts: dict[str, _BoardPart] = {}
    groups = 0
    with pq.ParquetWriter(buffer, SCHEMA, use_dictionary=list(TEXTS), **_CODEC) as writer:
        for name, board in sorted(snapshot.boards.items()):
            table = board.columns.table.cast(SCHEMA)
            if len(table):
                writer.write_table(table, row_group_size=_ROWS)
            own = -(-len(table) // _ROWS)
            parts[name] = _BoardPart(card=board.card, first=groups, groups=own)
            groups += own
        header = _Header(
            built_at=snapshot.built_at,
            built_from=snapshot.built_from,
            ranked_by=RANKED_BY,
            entry_ids=tuple(snapshot.entries),
            boards=tuple(parts[name] for name in snapshot.boards),
            origins=dict(snapshot.origins),
        )
        # In the file's own metadata only: as part of the schema it would be there twice.
        lines = stored(snapshot.entries).lines.values()
        writer.add_key_value_metadata(
            {METADATA: header.model_dump_json().encode(), ENTRIES: b"\n".join(lines)}
        )
    return buffer.getvalue()


def parse_snapshot(content: bytes) -> Snapshot:
    """The snapshot in a file; its boards are read from these bytes when they are looked at."""
    try:
        metadata = parquet_file(content).metadata
        schema = metadata.schema.to_arrow_schema().remove_metadata()
        told = metadata.metadata or {}
        header = _Header.model_validate_json(told.get(METADATA, b""))
        lines = told.get(ENTRIES, b"").splitlines()
        entries = StoredEntries(dict(zip(header.entry_ids, lines, strict=True)))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(_first_line(error)) from error
    if _renamed(schema) != SCHEMA:
        raise _damaged(f"its columns are {ascii(schema.names)[:300]}")
    current = header.ranked_by == RANKED_BY
    return Snapshot(
        built_at=header.built_at,
        entries=entries,
        boards={
            part.card.name: Board(part.card, load=partial(_table, content, part.first, part.groups))
            for part in header.boards
        },
        built_from=header.built_from,
        # Without origins nothing is taken over from it.
        origins=header.origins if current else {},
    )


def parse_old_snapshot(content: bytes) -> Snapshot:
    """The snapshot in a file of version 1."""
    try:
        found = _OldSnapshot.model_validate_json(content)
    except ValidationError as error:
        raise _damaged(_first_line(error), OLD_PATH) from error
    boards = {name: Board(board.card, board.cells) for name, board in found.boards.items()}
    return Snapshot(found.built_at, found.entries, boards)


def known_and_shown(public: Repository, known: Mapping[str, Card]) -> dict[str, Card]:
    """The cards of the benchmarks known here, and of those on the boards of a store."""
    shown = read_snapshot(public)
    return {**known, **({name: b.card for name, b in shown.boards.items()} if shown else {})}


def read_snapshot(repository: Repository) -> Snapshot | None:
    """The published snapshot; None while nothing was published."""
    try:
        return parse_snapshot(repository.read(PATH))
    except NotFoundError:
        pass
    try:
        return parse_old_snapshot(repository.read(OLD_PATH))
    except NotFoundError:
        return None


def snapshot_changes(repository: Repository, snapshot: Snapshot) -> dict[str, bytes | None]:
    """What to commit so that a repository shows a snapshot, and no older form of one."""
    changes: dict[str, bytes | None] = {PATH: snapshot_bytes(snapshot)}
    return {**changes, OLD_PATH: None} if repository.has(OLD_PATH) else changes


def _table(content: bytes, first: int, groups: int) -> Any:
    file = parquet_file(content, list(TEXTS))
    if not groups:
        return SCHEMA.empty_table()
    try:
        table = file.read_row_groups(range(first, first + groups), use_threads=False)
    except (pa.ArrowException, OSError, IndexError) as error:
        raise _damaged(_first_line(error)) from error
    table = table.replace_schema_metadata(None).unify_dictionaries().combine_chunks()
    return table.rename_columns(_renamed(table.schema).names)


def _renamed(schema: pa.Schema) -> pa.Schema:
    """A schema with the names that its columns have now."""
    return pa.schema([field.with_name(_EARLIER.get(field.name, field.name)) for field in schema])


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _damaged(what: str, path: str = PATH) -> PlatformError:
    return PlatformError(
        "snapshot_damaged",
        f"The boards in {path} cannot be read: {what}.",
        "Build them again from the results: python -m evaluator doctor --repair",
    )
