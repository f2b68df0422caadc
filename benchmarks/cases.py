"""What people said of the pairs of a benchmark, in cases small enough to look at.

A case is what a person looks at to see whether a metric fails: the images of one prompt with their
ratings, a contrast pair of prompts with its images, a semantic error graph. It is there to find
examples; the measures of a protocol are computed elsewhere and may weigh its pairs otherwise.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import PlatformError
from benchmarks.parquet import parquet_frame

BETWEEN_SKILLS = ";"
"""Joins the skills of a case."""
SCHEMA = pa.schema(
    [
        pa.field("case_id", pa.string(), nullable=False),
        pa.field("cluster", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("skills", pa.string(), nullable=False),
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("image_id", pa.string(), nullable=False),
        pa.field("prompt", pa.string(), nullable=False),
        pa.field("expected", pa.float64()),
        pa.field("said", pa.string(), nullable=False),
    ]
)
"""One row for each pair of a case. `expected` is what people say of the pair, larger where the
image follows the prompt better; null where they say nothing. It is compared within a case alone.
`said` is the same in words, e.g. `3.7 of 5`. A pair may be in several cases."""


def cases_path(benchmark: str, revision: str) -> str:
    """Where the cases of a revision are in the public store."""
    return f"cases/{benchmark}/{revision}.parquet"


def write_cases(cases: pd.DataFrame) -> bytes:
    """The file of cases; equal cases make equal bytes.

    Raises:
        PlatformError: `bad_cases` where a column is missing or of another type.
    """
    try:
        table = pa.Table.from_pandas(cases[SCHEMA.names], SCHEMA, preserve_index=False)
    except (KeyError, pa.ArrowException) as error:
        raise PlatformError("bad_cases", f"These are no cases: {error}") from error
    buffer = BytesIO()
    pq.write_table(table.replace_schema_metadata(None), buffer, compression="zstd")
    return buffer.getvalue()


def read_cases(content: bytes) -> pd.DataFrame:
    """The cases in a file.

    Raises:
        PlatformError: `bad_cases` where its columns are others.
    """
    found = parquet_frame(content)
    if list(found.columns) != SCHEMA.names:
        raise PlatformError("bad_cases", f"A file of cases has columns {list(found.columns)}.")
    return found


def agreement(cases: pd.DataFrame, scores: pd.Series) -> pd.DataFrame:
    """How far a metric orders the pairs of each case as people do.

    Two pairs of a case are compared where they share the image or the prompt, people expect
    different values of them, and the metric scored both. A comparison counts 1 where the metric
    orders them as people do, and a half where it gives both the same score.

    Args:
        cases: as `SCHEMA` says.
        scores: pair id to score, larger where the metric finds a better match; NaN is missing.

    Returns:
        One row for each case, in the order of their first pair: `case_id`, `n_compared` (int),
        `n_right` (float, halves for ties), `share` (float in 0..1, NaN where nothing is compared),
        `n_missing` (int: pairs without a score).
    """
    given = cases.assign(score=scores.reindex(cases["pair_id"]).to_numpy())
    rows = [_of_case(str(name), case) for name, case in given.groupby("case_id", sort=False)]
    return pd.DataFrame(rows, columns=["case_id", "n_compared", "n_right", "share", "n_missing"])


def _of_case(name: str, case: pd.DataFrame) -> tuple[str, int, float, float, int]:
    image, prompt = case["image_id"].to_numpy(), case["prompt"].to_numpy()
    expected, score = case["expected"].to_numpy(float), case["score"].to_numpy(float)
    a, b = np.triu_indices(len(case), 1)
    wanted, found = np.sign(expected[a] - expected[b]), np.sign(score[a] - score[b])
    shared = (image[a] == image[b]) | (prompt[a] == prompt[b])
    compared = shared & (wanted != 0) & np.isfinite(wanted) & np.isfinite(found)
    n = int(compared.sum())
    right = float((1 + wanted[compared] * found[compared]).sum() / 2)
    return name, n, right, right / n if n else float("nan"), int(np.isnan(score).sum())
