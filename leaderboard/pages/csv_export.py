"""What is on screen as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from leaderboard.cells import Cell
from leaderboard.pages.markup import clean, text
from leaderboard.pages.measures import token
from leaderboard.pages.reading import BoardIndex
from leaderboard.snapshot import Entry

COLUMNS = (
    "rank_low", "rank", "rank_high", "metric", "version", "submitter", "kind", "benchmark",
    "revision", "measure", "variant", "split", "facet", "skill", "value", "ci_low", "ci_high",
    "n_items", "n_clusters", "n_missing", "pairs_per_s", "note", "submission_id",
)  # fmt: skip

_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""Some spreadsheets take the wide forms for the narrow ones."""


def harmless(value: object) -> object:
    """The value, with an apostrophe before any text that a spreadsheet would run as a formula."""
    if not isinstance(value, str):
        return value
    # Cleaned first: a formula may hide behind characters that cleaning drops.
    shown = clean(value)
    starts = value.startswith(("\t", "\r")) or shown.lstrip().startswith(_FORMULA_STARTS)
    return f"'{shown}" if starts and not _is_number(shown) else shown


def board_csv(cells: Iterable[Cell], entries: Mapping[str, Entry], board: BoardIndex) -> str:
    """One line per entry of the slice, in board order; empty fields where there is no value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in cells:
        record = _record(cell, entries[cell.entry_id], board)
        writer.writerow([harmless(record[column]) for column in COLUMNS])
    return out.getvalue()


def download_link(content: str, file_name: str) -> str:
    """A link that carries the file itself, so that nothing is kept on the server for it."""
    return (
        f'<a class="as-button" download="{text(file_name)}" '
        f'href="data:text/csv;charset=utf-8,{quote(content)}">Download CSV</a>'
    )


def file_name(cells: tuple[Cell, ...], board: BoardIndex) -> str:
    """A file name that says what is inside."""
    if not cells:
        return f"{board.card.name}.csv"
    parts = (board.card.name, cells[0].skill, token(cells[0].selector))
    plain = "-".join(part for part in parts if part)
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in plain) + ".csv"


def _record(cell: Cell, entry: Entry, board: BoardIndex) -> dict[str, object]:
    cost = entry.cost.get(board.card.name)
    return {
        **cell.model_dump(),
        "metric": entry.metric,
        "version": entry.version,
        "submitter": entry.submitter,
        "kind": entry.kind.value,
        "benchmark": board.card.name,
        "revision": board.card.revision,
        "pairs_per_s": cost.pairs_per_s if cost else None,
        "submission_id": entry.submission_id,
    }


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
