"""Dataset configurations: the tables that `datasets.load_dataset` finds in a repository, by its card.

The tables of the whole store are named from its beginning, those of one benchmark by the commit that
brings their first rows. Each has a file without rows beside its own, so that its columns are known
before there are any rows, and after the last are gone.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from huggingface_hub import DatasetCard

from leaderboard.store.hub.layout import COLUMNS, Part
from leaderboard.store.interface import Changes

Tables = Mapping[str, str]  # Name of a configuration to the pattern of its files
_SCORES = ".scores.parquet"
WHOLE: Mapping[Part, Tables] = {
    Part.REQUESTS: {"submissions": "queue*.parquet"},
    Part.RESULTS: {
        "boards": "snapshot*.parquet",
        "pairs": "boards/*.pairs.parquet",
        "scores": f"results/*/*{_SCORES}",
    },
    Part.SUBMISSIONS: {},
}
"""The tables that each store has, empty or not; patterns, since a file may not be there yet."""
_NAMES = [name for tables in WHOLE.values() for name in tables]
_OF_COLUMNS = {
    Part.REQUESTS: ("submissions",),
    Part.RESULTS: ("boards", "pairs", "scores", "cases"),
}


def tables_of(path: str) -> dict[str, str]:
    """The configurations of one benchmark that a file is part of."""
    match path.split("/"):
        case ["cases", benchmark, name] if name.endswith(".parquet"):
            return {f"cases_{benchmark}": f"cases/{benchmark}/*.parquet"}
        case ["results", _, name] if name.endswith(_SCORES):
            benchmark = name.removesuffix(_SCORES)
            # Of a benchmark that has the name of a whole table, the scores are among `scores`.
            return {} if benchmark in _NAMES else {benchmark: f"results/*/{name}"}
    return {}


def tables_written(changes: Changes) -> dict[str, str]:
    """The configurations to which changes bring rows."""
    return {
        name: files
        for path, content in changes.items()
        if content is not None
        for name, files in tables_of(path).items()
    }


def columns_files(part: Part, schemas: Mapping[str, pa.Schema]) -> dict[str, bytes]:
    """The files without rows that say which columns the tables of a repository have."""
    return {
        f"{COLUMNS}/{name}.parquet": _without_rows(schemas[name])
        for name in _OF_COLUMNS.get(part, ())
    }


def configurations(tables: Tables) -> list[dict[str, Any]]:
    """As the front matter of a card has them."""
    order = [name for name in _NAMES if name in tables]
    order += sorted(tables.keys() - set(order))
    found: list[dict[str, Any]] = [
        {
            "config_name": name,
            "data_files": [{"split": "train", "path": _files(name, tables[name])}],
        }
        for name in order
    ]
    if order and order[0] in _NAMES:
        found[0]["default"] = True
    return found


def tables_in(card: bytes) -> dict[str, str] | None:
    """The configurations that a card names; None where it cannot be read."""
    try:
        configs = DatasetCard(card.decode()).data.get("configs") or []
        paths = {one["config_name"]: one["data_files"][0]["path"] for one in configs}
        return {name: path if isinstance(path, str) else path[-1] for name, path in paths.items()}
    except (ValueError, KeyError, TypeError, IndexError, yaml.YAMLError):
        return None


def with_tables(card: bytes, tables: Tables) -> bytes:
    """A card that can be read, with these configurations and all else as it was."""
    changed = DatasetCard(card.decode())
    changed.data["configs"] = configurations(tables)
    return str(changed).encode()


def _files(name: str, pattern: str) -> list[str]:
    """What holds the columns comes first, as a pattern too: an older repository has it not yet."""
    columns = "cases" if pattern.startswith("cases/") else name if name in _NAMES else "scores"
    return [f"{COLUMNS}/{columns}*.parquet", pattern]


def _without_rows(schema: pa.Schema) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema.remove_metadata()):
        pass  # not even an empty group of rows, which `datasets` does not load
    return sink.getvalue()
