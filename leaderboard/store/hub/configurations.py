"""Dataset configurations: the tables that `datasets.load_dataset` finds in a repository, by its card.

A configuration whose files have no rows does not load, so that each is named by the commit which
brings its first rows.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from huggingface_hub import DatasetCard

from leaderboard.store.interface import Changes

_WHOLE = (
    "boards",
    "pairs",
    "scores",
    "submissions",
)  # The first that is there loads without a name
_SCORES = ".scores.parquet"
_NEVER_EMPTY = ("results/", "cases/")
Tables = Mapping[str, str]  # Name of a configuration to the pattern of its files


def tables_of(path: str) -> dict[str, str]:
    """The configurations that a file is part of."""
    match path.split("/"):
        case ["queue.parquet"]:
            return {"submissions": path}
        case ["snapshot.parquet"]:
            return {"boards": path}
        case ["boards", name] if name.endswith(".pairs.parquet"):
            return {"pairs": "boards/*.pairs.parquet"}
        case ["cases", benchmark, name] if name.endswith(".parquet"):
            return {f"cases_{benchmark}": f"cases/{benchmark}/*.parquet"}
        case ["results", _, name] if name.endswith(_SCORES):
            benchmark = name.removesuffix(_SCORES)
            # Of a benchmark that has the name of a whole table, the scores are among `scores`.
            own = {} if benchmark in _WHOLE else {benchmark: f"results/*/{name}"}
            return {"scores": f"results/*/*{_SCORES}", **own}
    return {}


def may_be_empty(path: str) -> bool:
    """Whether a table may be written without rows."""
    return not path.startswith(_NEVER_EMPTY)


def has_rows(content: bytes | Path) -> bool:
    """Whether a file is a table with rows."""
    try:
        source = io.BytesIO(content) if isinstance(content, bytes) else content
        return bool(pq.read_metadata(source).num_rows > 0)
    except pa.ArrowInvalid:
        return False


def tables_written(changes: Changes) -> dict[str, str]:
    """The configurations to which changes bring rows."""
    return {
        name: files
        for path, content in changes.items()
        if content is not None and (found := tables_of(path)) and has_rows(content)
        for name, files in found.items()
    }


def configurations(tables: Tables) -> list[dict[str, Any]]:
    """As the front matter of a card has them."""
    order = [name for name in _WHOLE if name in tables]
    order += sorted(tables.keys() - set(order))
    found: list[dict[str, Any]] = [
        {"config_name": name, "data_files": [{"split": "train", "path": tables[name]}]}
        for name in order
    ]
    if order and order[0] in _WHOLE:
        found[0]["default"] = True
    return found


def tables_in(card: bytes) -> dict[str, str] | None:
    """The configurations that a card names; None where it cannot be read."""
    try:
        configs = DatasetCard(card.decode()).data.get("configs") or []
        return {one["config_name"]: one["data_files"][0]["path"] for one in configs}
    except (ValueError, KeyError, TypeError, yaml.YAMLError):
        return None


def with_tables(card: bytes, tables: Tables) -> bytes:
    """A card that can be read, with these configurations and all else as it was."""
    changed = DatasetCard(card.decode())
    changed.data["configs"] = configurations(tables)
    return str(changed).encode()
