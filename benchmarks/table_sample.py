"""First rows of a table in a file, or in a data set of the Hub, of which little is fetched."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from python_calamine import CalamineError

from benchmarks.errors import SubmitterError
from benchmarks.parsing import parse_json
from benchmarks.sources.pins import sha256_of
from benchmarks.sources.remote import Hub, translate_errors
from benchmarks.tables import read_table

MOST_ROWS = 2000
_LARGEST_FILE = 1 << 30
_LARGEST_JSON = 256 << 20
_WHERE = re.compile(r"hub:(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
_FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "xlsx")


@dataclass(frozen=True)
class SampledTable:
    """The first rows of a table, and where it is."""

    name: str  # what a card may be named for
    rows: pd.DataFrame
    n_rows: int  # of the whole table; of the sample where nobody tells
    origin: Mapping[str, Any]  # keys of the file's declaration
    revision: str
    file: Path | None  # on this machine; None: on the Hub
    records: str = ""  # where the records of a JSON file lie


def sample_file(place: str) -> SampledTable:
    """A file on this machine.

    Raises:
        SubmitterError: `no_table`: there is none, it cannot be read, or it is too large.
    """
    path = Path(place)
    form = path.suffix.lstrip(".").lower()
    if not path.is_file() or form not in _FORMATS:
        raise _no_table(place, f"is no file of {', '.join(_FORMATS)}")
    size = path.stat().st_size
    if size > (_LARGEST_JSON if form == "json" else _LARGEST_FILE):
        raise _no_table(place, f"has {size:,} bytes")
    records = ""
    try:
        if form == "json":
            content = parse_json(path.read_bytes())
            records, found = _records(content)
            rows, n = pd.json_normalize(found[:MOST_ROWS], max_level=1), len(found)
        elif form == "jsonl":
            with path.open("rb") as file:
                lines = list(itertools.islice((line for line in file if line.strip()), MOST_ROWS))
                n = len(lines) + sum(1 for line in file if line.strip())
            rows = pd.json_normalize([parse_json(line) for line in lines], max_level=1)
        elif form == "parquet":
            with path.open("rb") as file:
                rows, n = _parquet_rows(file)
        elif form == "xlsx":
            whole = pd.read_excel(path, engine="calamine", dtype=object)
            rows, n = whole.head(MOST_ROWS), len(whole)
        else:
            whole = read_table(path, separator="\t" if form == "tsv" else ",")
            rows, n = whole.head(MOST_ROWS).replace("", None), len(whole)
    except (ValueError, KeyError, AttributeError, CalamineError, pa.ArrowException) as error:
        raise _no_table(place, f"cannot be read: {str(error).splitlines()[0][:200]}") from error
    if rows.empty:
        raise _no_table(place, "holds no rows")
    sha256 = sha256_of(path)
    origin = {"sha256": sha256, "size": size}
    return SampledTable(path.stem, rows, n, origin, sha256[:12], path, records)


def sample_hub(place: str, hub: Hub, config: str, split: str) -> SampledTable:
    """A Parquet table of a data set: its columns and first rows come, by range, and no images.

    Raises:
        SubmitterError: `no_table`: it has none for this configuration and split.
    """
    match = _WHERE.fullmatch(place)
    if match is None:
        raise _no_table(place, "names no data set; write hub:OWNER/NAME")
    repo = match["repo"]
    commit = hub.commit(repo, match["revision"] or "main")
    files = [name for name, _, _ in hub.folder(repo, ".", commit)]
    wanted = [name for name in files if _fits(name, config, split)]
    if len(wanted) != 1:
        said = (
            f"has {len(wanted)} Parquet files of configuration {config or 'any'} and split {split}"
        )
        shown = (
            ", ".join([name for name in files if name.endswith(".parquet")][:20]) or "none at all"
        )
        raise _no_table(place, f"{said}; Parquet files: {shown}")
    (name,) = wanted
    with translate_errors(f"{repo}/{name}", repo, commit):
        path = f"datasets/{repo}@{commit}/{name}"
        with hub.files().open(path, "rb", block_size=1 << 20) as file:
            rows, n = _parquet_rows(file)
    origin = {"repo": repo, "name": name, "revision": commit}
    return SampledTable(repo.rpartition("/")[2], rows, n, origin, commit, None)


def _fits(name: str, config: str, split: str) -> bool:
    path = PurePosixPath(name)
    in_config = not config or config in path.parts[:-1]
    named = path.stem == split or path.stem.startswith((f"{split}-", f"{split}."))
    return path.suffix == ".parquet" and in_config and named


def _parquet_rows(file: Any) -> tuple[pd.DataFrame, int]:
    """The first rows without encoded images, of which the name is enough."""
    opened = pq.ParquetFile(file, pre_buffer=False)
    light = [field.name for field in opened.schema_arrow if not _is_heavy(field.type)]
    batches = opened.iter_batches(MOST_ROWS, columns=light, use_threads=False)
    first = next(batches, None)
    rows = pd.DataFrame(columns=light) if first is None else first.to_pandas()
    return rows, opened.metadata.num_rows


def _is_heavy(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_is_heavy(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _records(content: Any) -> tuple[str, list[Any]]:
    """Where the records of a JSON file lie, and the records."""
    if isinstance(content, list):
        return "", content
    lists = {key: one for key, one in content.items() if isinstance(one, list) and one}
    plain = [key for key in lists if re.fullmatch(r"[\w-]+", key)]
    if plain:
        return f"{plain[0]}[*]", lists[plain[0]]
    if content and all(isinstance(one, dict) for one in content.values()):
        return "*", [{"@1": key, **one} for key, one in content.items()]
    raise ValueError("it holds no list of records")


def _no_table(place: str, what: str) -> SubmitterError:
    return SubmitterError(
        "no_table",
        f"{place[:200]} {what}.",
        "Name a CSV, TSV, JSON, JSON Lines, Parquet or xlsx file, or hub:OWNER/NAME.",
    )
