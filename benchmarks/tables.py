"""CSV files of people: read as text, and refused where a cell may stand in the wrong column."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from benchmarks.errors import SubmitterError

_LONGEST_CELL = 1 << 30
"""Characters; a cell may list all images of a prompt."""


def read_table(
    path: Path, columns: Sequence[str] = (), *, separator: str = ",", quotes: bool = True
) -> pd.DataFrame:
    """Read a CSV file in UTF-8, all cells as text; empty cells are empty.

    Args:
        path: the file; its first line names the columns. Blank lines are passed over.
        columns: names that it must have.
        separator: between cells, one character.
        quotes: whether cells may stand in quotes.

    Raises:
        SubmitterError: `file_missing`, `unreadable_file`, `duplicate_columns`, `uneven_lines` (a
            line has more or fewer cells than the first), `missing_columns`.
    """
    if not path.is_file():
        raise SubmitterError("file_missing", f"There is no file {path}.", "Check the path.")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    try:
        _check_lines(path, separator, quoting)
        table = pd.read_csv(
            path,
            sep=separator,
            dtype=str,
            keep_default_na=False,
            quoting=quoting,
            encoding="utf-8-sig",
        )
    except (OSError, ValueError, csv.Error) as error:  # those of pandas are ValueErrors
        raise SubmitterError(
            "unreadable_file",
            f"{path} cannot be read as CSV: {str(error).splitlines()[0]}.",
            "Save it as CSV in UTF-8, with a header line.",
        ) from error
    if missing := [name for name in columns if name not in table]:
        raise SubmitterError(
            "missing_columns",
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)[:200]}.",
            f"Needed are {', '.join(columns)}.",
        )
    return table


def _check_lines(path: Path, separator: str, quoting: Literal[0, 3]) -> None:
    """Refuse what pandas lets pass: a column twice, short lines, long lines."""
    csv.field_size_limit(_LONGEST_CELL)
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter=separator, quoting=quoting)
        header = next(filter(None, lines), [])
        if twice := [name for i, name in enumerate(header) if name in header[:i]]:
            raise SubmitterError(
                "duplicate_columns",
                f"{path} has the column {twice[0]!r} more than once.",
                "Keep one of them.",
            )
        for cells in lines:
            blank = len(cells) < 2 and not "".join(cells).strip()
            if len(cells) != len(header) and not blank:
                raise SubmitterError(
                    "uneven_lines",
                    f"{path}: line {lines.line_num} has {len(cells)} cells, the header "
                    f"{len(header)}.",
                    "Write one cell for each column, empty where there is nothing; quote texts "
                    "that contain a comma.",
                )
