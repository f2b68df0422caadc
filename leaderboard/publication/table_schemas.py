"""Columns of the public tables of a store, by the names under which `datasets` loads them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from benchmarks import cases, parquet
from leaderboard.ledger import queue_file
from leaderboard.publication import snapshot
from leaderboard.ranking import pairs


def table_schemas() -> Mapping[str, pa.Schema]:
    """Name of a table to its columns; each benchmark's own are those of `scores` and `cases`."""
    return {
        "submissions": queue_file.SCHEMA,
        "boards": snapshot.SCHEMA,
        "pairs": pairs.SCHEMA,
        "scores": parquet.SCHEMA,
        "cases": cases.SCHEMA,
    }
