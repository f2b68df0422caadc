"""Parquet files that are in memory, read by this thread alone.

Arrow's own threads, and what they fetch ahead, may outlive the interpreter and end a program that
has done its work with an abort; whatever is read here is small enough for one thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


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
