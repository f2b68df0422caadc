"""The file that keeps the tests behind the tiers of a board."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.parquet import parquet_table
from benchmarks.schema import Card
from leaderboard.ranking.slices import Ranked
from leaderboard.store.interface import NotFoundError, Repository

SCHEMA = pa.schema(
    [
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("revision", pa.string(), nullable=False),
        pa.field("entry_a", pa.string(), nullable=False),
        pa.field("entry_b", pa.string(), nullable=False),
        pa.field("difference", pa.float64(), nullable=False),
        pa.field("p_corrected", pa.float64(), nullable=False),
        pa.field("n_units", pa.int64(), nullable=False),
        pa.field("n_patterns", pa.int64(), nullable=False),
        pa.field("exact", pa.bool_(), nullable=False),
    ]
)
"""One row for each pair of entries; see `statistics.joint_tests`."""


def pairs_path(benchmark: str) -> str:
    """Where the tests of a board are."""
    return f"boards/{benchmark}.pairs.parquet"


def pairs_bytes(card: Card, headline: Ranked) -> bytes:
    """The tests between the entries of a ranked headline as a Parquet file."""
    tests = headline.ordering.tests
    first, second = np.triu_indices(len(headline.cells), 1)
    there = np.isfinite(headline.ordering.corrected[first, second])
    first, second = first[there], second[there]
    ids = pa.array([cell.entry_id for cell in headline.cells], pa.string())
    buffer = BytesIO()
    with pq.ParquetWriter(buffer, SCHEMA, compression="zstd") as writer:
        if tests is not None and len(first):  # `datasets` does not load an empty row group.
            n = len(first)
            columns = [
                pa.array([card.name] * n),
                pa.array([card.revision] * n),
                ids.take(pa.array(first)),
                ids.take(pa.array(second)),
                pa.array(tests.difference[first, second]),
                pa.array(tests.p_value[first, second]),
                pa.array(tests.n_units[first, second], pa.int64()),
                pa.array([tests.n_patterns] * n, pa.int64()),
                pa.array([tests.exact] * n),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
    return buffer.getvalue()


def read_tests(public: Repository, card: Card) -> list[Mapping[str, Any]]:
    """The rows of the file of a board's revision; none where it is not there or of another form."""
    try:
        table = parquet_table(public.read(pairs_path(card.name)))
    except (NotFoundError, pa.ArrowException):
        return []
    if table.schema.remove_metadata() != SCHEMA:
        return []
    return [row for row in table.to_pylist() if row["revision"] == card.revision]
