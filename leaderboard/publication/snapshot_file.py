"""The file of the snapshot: Parquet, one row for each cell, the rest as JSON in its metadata.

Anyone reads the table with pandas or `datasets`. Opening it here reads the metadata alone; a board
is read when it is looked at.
"""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from benchmarks.errors import PlatformError
from benchmarks.parquet import parquet_file
from benchmarks.schema import Card
from leaderboard.publication.boards import Board, Snapshot
from leaderboard.publication.cell_columns import SCHEMA, TEXTS
from leaderboard.publication.entries import Entry, StoredEntries, stored
from leaderboard.publication.origins import RANKED_BY, Origin
from leaderboard.ranking.cells import Cell
from leaderboard.store.interface import NotFoundError, Repository

PATH = "snapshot.parquet"
OLD_PATH = "snapshot.json"
"""Where snapshots of version 1 are, all of one in JSON; the next publication replaces it."""
METADATA, ENTRIES = b"assay", b"assay.entries"
"""Keys of the metadata of the file: one JSON value, and the entries, one as JSON a line."""
_ROWS = 1 << 16
"""Of a row group; a board begins a new one."""
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
    """The snapshot in a file; its boards are read from these bytes when they are looked at.

    Raises:
        PlatformError: `snapshot_damaged`.
    """
    try:
        metadata = parquet_file(content).metadata
        schema = metadata.schema.to_arrow_schema().remove_metadata()
        told = metadata.metadata or {}
        header = _Header.model_validate_json(told.get(METADATA, b""))
        lines = told.get(ENTRIES, b"").splitlines()
        entries = StoredEntries(dict(zip(header.entry_ids, lines, strict=True)))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(_first_line(error)) from error
    if schema != SCHEMA:
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
    """The snapshot in a file of version 1.

    Raises:
        PlatformError: `snapshot_damaged`.
    """
    try:
        found = _OldSnapshot.model_validate_json(content)
    except ValidationError as error:
        raise _damaged(_first_line(error), OLD_PATH) from error
    boards = {name: Board(board.card, board.cells) for name, board in found.boards.items()}
    return Snapshot(found.built_at, found.entries, boards)


def old_bytes(snapshot: Snapshot) -> bytes:
    """The file of version 1, for comparisons; no store is given one any more."""
    boards = {n: _OldBoard(card=b.card, cells=b.cells) for n, b in snapshot.boards.items()}
    old = _OldSnapshot(built_at=snapshot.built_at, entries=dict(snapshot.entries), boards=boards)
    return old.model_dump_json().encode()


def read_snapshot(repository: Repository) -> Snapshot | None:
    """The published snapshot; None while nothing was published.

    Raises:
        PlatformError: `snapshot_damaged`.
    """
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
    return table.replace_schema_metadata(None).unify_dictionaries().combine_chunks()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _damaged(what: str, path: str = PATH) -> PlatformError:
    return PlatformError(
        "snapshot_damaged",
        f"The boards in {path} cannot be read: {what}.",
        "Build them again from the results: python -m evaluator doctor --repair",
    )
