"""The files of the command: read as text, with errors that name the file and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.sources.output import write_whole


def read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a CSV file, all cells as text; empty cells are empty.

    Args:
        path: the file, with a header line.
        columns: what must be there; other columns are kept.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file` or `missing_columns`.
    """
    if not path.is_file():
        raise SubmitterError("file_missing", f"There is no file {path}.", "Check the path.")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:  # not CSV, not UTF-8, or empty
        raise SubmitterError(
            "unreadable_file",
            f"{path} cannot be read as CSV: {str(error).splitlines()[0]}.",
            "Save it as CSV in UTF-8, with a header line.",
        ) from error
    missing = [name for name in columns if name not in table]
    if missing:
        raise SubmitterError(
            "missing_columns",
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)}.",
            f"Needed are {', '.join(columns)}.",
        )
    return table


def write_scores(path: Path, scores: pd.Series) -> None:
    """Write a scores file: columns `pair_id` and `score`, an empty cell where there is none.

    Raises:
        SubmitterError: `cannot_write`.
    """
    write_whole(path, lambda place: scores.to_csv(place, header=["score"]))
