"""Parquet files, read by this thread alone, and the form of stored scores.

Arrow's own threads, and what they fetch ahead, may outlive the interpreter and end a program that
has done its work with an abort; whatever is read here is small enough for one thread.

A store keeps scores as one row for each, the same columns in every file. So the files of all
submissions are one table, which `datasets.load_dataset` reads as one. A file of this form is a scores
file as well: it is read wherever one with a column per metric is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import SubmitterError
from benchmarks.schema import ScoreTable


def parquet_file(content: bytes, texts: Sequence[str] = ()) -> pq.ParquetFile:
    """A file, opened; read it with `use_threads=False`."""
    return pq.ParquetFile(pa.BufferReader(content), read_dictionary=list(texts), pre_buffer=False)


def parquet_table(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """The table of a file."""
    wanted = None if columns is None else list(columns)
    return parquet_file(content).read(columns=wanted, use_threads=False)


def parquet_frame(content: bytes) -> pd.DataFrame:
    """The table of a file, as pandas has it."""
    frame: pd.DataFrame = parquet_table(content).to_pandas(use_threads=False)
    return frame


def parquet_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of a file on the disk, which is not read otherwise: it may hold images."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        table = file.read(columns=list(columns), use_threads=False)
    frame: pd.DataFrame = table.to_pandas(use_threads=False)
    return frame


SCHEMA = pa.schema(
    [
        pa.field("submission_id", pa.string(), nullable=False),
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("revision", pa.string(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("element_id", pa.string()),
        pa.field("score", pa.float64()),
        pa.field("element_score", pa.float64()),
    ]
)
"""A row with an element id carries an element score, one without the score of a whole pair; null
is a score that the metric did not give."""
_COLUMNS = frozenset(SCHEMA.names)
MARGINS = pa.schema(
    [
        pa.field("metric", pa.string(), nullable=False),
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("other_id", pa.string(), nullable=False),
        pa.field("margin", pa.float64()),
    ]
)
"""A row for each order in which two images were compared; see `ScoreTable.margins`."""
_OF_ONE = ("submission_id", "benchmark", "revision")


def write_stored(table: ScoreTable, *, submission_id: str, benchmark: str, revision: str) -> bytes:
    """The scores of one run as they are stored."""
    whose = {"submission_id": submission_id, "benchmark": benchmark, "revision": revision}
    tables = [
        pa.Table.from_pandas(part.assign(**whose)[SCHEMA.names], SCHEMA, preserve_index=False)
        for part in _parts(table)
    ]
    buffer = BytesIO()
    joined = pa.concat_tables([SCHEMA.empty_table(), *tables]).replace_schema_metadata(None)
    pq.write_table(joined, buffer, compression="zstd")
    return buffer.getvalue()


def write_margins(table: ScoreTable) -> bytes:
    """Margins of metrics that compare: columns `metric`, `pair_id`, `other_id`, `margin`."""
    parts = [frame.assign(metric=metric) for metric, frame in table.margins.items()]
    buffer = BytesIO()
    rows = pa.Table.from_pandas(pd.concat(parts)[MARGINS.names], MARGINS, preserve_index=False)
    pq.write_table(rows.replace_schema_metadata(None), buffer, compression="zstd")
    return buffer.getvalue()


def read_margins(content: bytes) -> dict[str, pd.DataFrame]:
    """Metric to its margins, as `ScoreTable` has them: the inverse of `write_margins`."""
    frame = parquet_frame(content)
    if list(frame.columns) != MARGINS.names:
        raise ValueError(f"its columns are {list(frame.columns)[:12]}")
    return {
        str(metric): rows.drop(columns="metric").reset_index(drop=True)
        for metric, rows in frame.groupby("metric", sort=False)
    }


def read_overall(content: bytes) -> pd.DataFrame:
    """The scores of whole pairs in a stored file, also in one of the form before.

    Returns: Index `pair_id`, one column per metric, in the order of the file.
    """
    frame = parquet_frame(content)
    if is_stored(frame.columns):
        frame = widened(frame)
    if "element_id" in frame:
        frame = frame[frame["element_id"].isna()].drop(columns=["element_id", "element_score"])
    scores: pd.DataFrame = frame.set_index("pair_id")
    return scores


def read_stored(content: bytes) -> ScoreTable:
    """All scores in a stored file: the inverse of `write_stored`, but for directions."""
    frame = parquet_frame(content)
    if not is_stored(frame.columns):
        raise ValueError(f"its columns are {list(frame.columns)[:12]}")
    metrics = list(dict.fromkeys(frame["metric"]))
    whole = frame[frame["element_id"].isna()]
    parts = frame[frame["element_id"].notna()]
    overall = {
        str(metric): rows.set_index("pair_id")["score"].astype("float64")
        for metric, rows in whole.groupby("metric", sort=False)
    }
    elements = {
        str(metric): pd.DataFrame(
            {
                "pair_id": rows["pair_id"].to_numpy(),
                "element_id": rows["element_id"].to_numpy(),
                "score": rows["element_score"].to_numpy("float64"),
            }
        )
        for metric, rows in parts.groupby("metric", sort=False)
    }
    return ScoreTable(pd.DataFrame(overall, columns=metrics), elements=elements)


def is_stored(columns: Sequence[str] | pd.Index) -> bool:
    """Whether these are the columns of a stored file."""
    return len(columns) == len(_COLUMNS) and set(columns) == _COLUMNS


def widened(frame: pd.DataFrame, name: str = "the file", most_cells: int = 1 << 30) -> pd.DataFrame:
    """The rows of a stored file as those of a scores file: one column per metric.

    A pair that stands twice does so afterwards.
    """
    if frame[["metric", "pair_id"]].isna().any(axis=None):
        raise ValueError("a row names no metric or no pair")
    runs = frame[list(_OF_ONE)].drop_duplicates()
    if len(runs) > 1:
        raise SubmitterError(
            "several_submissions",
            f"{name} holds the scores of {len(runs)} runs.",
            "Keep the rows of one submission on one benchmark.",
        )
    whole = frame[frame["element_id"].isna()]
    metrics = list(dict.fromkeys(frame["metric"]))
    whole = whole.assign(turn=whole.groupby(["metric", "pair_id"], sort=False).cumcount())
    rows = whole[["pair_id", "turn"]].drop_duplicates()
    # Few rows can be many cells: each with a pair and a metric of its own.
    if len(rows) * len(metrics) > most_cells:
        raise SubmitterError(
            "too_many_rows",
            f"{name} has {len(rows)} pairs and {len(metrics)} metrics.",
            "Send fewer metrics in one file.",
        )
    wide = whole.pivot(index=["pair_id", "turn"], columns="metric", values="score")
    wide = wide.reindex(index=pd.MultiIndex.from_frame(rows), columns=metrics)
    found = wide.reset_index().drop(columns="turn").rename_axis(columns=None)
    elements = frame[frame["element_id"].notna()]
    if elements.empty:
        return found
    parts = elements[["pair_id", "element_id", "element_score"]]
    return pd.concat([found, parts], ignore_index=True)


def _parts(table: ScoreTable) -> Iterator[pd.DataFrame]:
    """The rows of each metric: its scores of pairs, then those of elements."""
    for metric in table.metrics:
        scores = table.overall[metric]
        yield pd.DataFrame(
            {
                "metric": metric,
                "pair_id": scores.index.astype(str),
                "element_id": pd.Series([None] * len(scores), dtype="object"),
                "score": scores.to_numpy("float64"),
                "element_score": float("nan"),
            }
        )
        if metric in table.elements:
            of_elements = table.elements[metric]
            yield pd.DataFrame(
                {
                    "metric": metric,
                    "pair_id": of_elements["pair_id"].astype(str).to_numpy(),
                    "element_id": of_elements["element_id"].astype(str).to_numpy(),
                    "score": float("nan"),
                    "element_score": of_elements["score"].to_numpy("float64"),
                }
            )
