"""What is on screen as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence

from leaderboard.pages.boards.pair_matrix import Pair
from leaderboard.pages.reading import BoardIndex
from leaderboard.pages.shown.markup import clean, text
from leaderboard.pages.shown.measures import token
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell

COLUMNS = (
    "rank_low", "rank", "rank_high", "metric", "version", "submitter", "kind", "benchmark",
    "revision", "measure", "variant", "split", "facet", "skill", "value", "ci_low", "ci_high",
    "n_items", "n_clusters", "n_missing", "pairs_per_s", "note", "submission_id",
    "p_best", "tier_holm_5_percent", "ci_method", "seed", "n_resamples", "plan", "versions",
    "account",
)  # fmt: skip
PAIR_COLUMNS = (
    "metric_a", "metric_b", "difference", "p_value", "p_holm", "n_units", "n_patterns", "exact",
    "entry_a", "entry_b",
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


def pairs_csv(found: Iterable[Pair], entries: Mapping[str, Entry]) -> str:
    """One line per test between two metrics: p-values as computed, and after Holm's correction."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PAIR_COLUMNS)
    found = tuple(found)
    ids = {entry_id for pair in found for entry_id in (pair.a, pair.b)}
    names = {entry_id: harmless(entries[entry_id].metric) for entry_id in ids}
    shown = {entry_id: harmless(entry_id) for entry_id in ids}
    writer.writerows(
        (
            names[a], names[b], difference, p_value, p_holm, n_units, n_patterns,
            "true" if exact else "false", shown[a], shown[b],
        )
        for a, b, difference, p_value, p_holm, n_units, n_patterns, exact in found
    )  # fmt: skip
    return out.getvalue()


def download_link(content: str, file_name: str, label: str = "Download CSV") -> str:
    """A link that carries the file itself, so that nothing is kept on the server for it."""
    # Base 64 is a hundred times faster to make than percent signs, and shorter for most tables.
    carried = b64encode(content.encode()).decode("ascii")
    return (
        f'<a class="as-button" download="{text(file_name)}" '
        f'href="data:text/csv;charset=utf-8;base64,{carried}">{text(label)}</a>'
    )


def file_name(cells: Sequence[Cell], board: BoardIndex, ending: str = "") -> str:
    """A file name that says what is inside."""
    if not cells:
        return f"{board.card.name}.csv"
    parts = (board.card.name, cells[0].skill, token(cells[0].selector), ending)
    plain = "-".join(part for part in parts if part)
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in plain) + ".csv"


def _record(cell: Cell, entry: Entry, board: BoardIndex) -> dict[str, object]:
    cost = entry.cost.get(board.card.name)
    return {
        **cell.model_dump(),
        "metric": entry.metric,
        "version": entry.version,
        "submitter": entry.submitter,
        "account": entry.account,
        "kind": entry.kind.value,
        "benchmark": board.card.name,
        "revision": board.card.revision,
        "pairs_per_s": cost.pairs_per_s if cost else None,
        "submission_id": entry.submission_id,
        "tier_holm_5_percent": cell.tier,
        **_provenance(entry, board.card.name),
    }


def _provenance(entry: Entry, benchmark: str) -> dict[str, object]:
    stated = entry.provenance.get(benchmark)
    if stated is None:
        return dict.fromkeys(("seed", "n_resamples", "plan", "versions"))
    return {
        "seed": stated.seed,
        "n_resamples": stated.n_resamples,
        "plan": stated.plan,
        "versions": stated.versions,
    }


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
