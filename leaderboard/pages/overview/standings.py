"""Standings of metrics over all benchmarks, as one matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leaderboard.pages.overview.leaders import board_address, leader_cards
from leaderboard.pages.shown.flags import flag_badges, flags_legend, origin_badge
from leaderboard.pages.shown.marks import rank_text
from leaderboard.pages.shown.markup import text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.publication.flags import flags_of
from leaderboard.publication.identities import Identity
from leaderboard.publication.index import index_boards
from leaderboard.publication.reader import View, headline_cells
from leaderboard.ranking.cells import Cell
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.standings import Standing, standings

__all__ = ["Identity", "Standing", "headline_cells", "leader_cards", "matrix", "standings"]  # fmt: skip

MOST_ROWS = 200


def matrix(view: View) -> str:
    """Metrics by benchmarks, a rank range in each cell."""
    rows = standings(view)
    boards = {name: board for name, board in view.boards.items() if not board.empty}
    if not rows or not boards:
        return '<div class="as-empty"><p>No metric has been published yet.</p></div>'
    heads = "".join(
        f'<th scope="col"><a href="{board_address(name)}">{text(board.card.title)}</a></th>'
        for name, board in boards.items()
    )
    totals = {
        name: sum(cell.rank is not None for cell in headline_cells(board))
        for name, board in boards.items()
    }
    indexed = sum(board.weight > 0 for board in index_boards(view)[0].values())
    body = "".join(_matrix_row(row, totals, indexed) for row in rows[:MOST_ROWS])
    index_head = '<th scope="col"><a href="./index">Index</a></th>' if indexed else ""
    cut = f" The first {MOST_ROWS} of {len(rows):,} metrics." if len(rows) > MOST_ROWS else ""
    return (
        '<div class="as-scroll" tabindex="0" role="region" aria-label="Metrics by benchmarks">'
        '<table class="as-table as-matrix"><caption class="as-sr">Rank ranges of every metric on '
        "every benchmark</caption>"
        f'<thead><tr><th scope="col" class="as-c-metric">Metric</th>{index_head}{heads}'
        f'<th scope="col">Coverage</th></tr></thead><tbody>{body}</tbody></table></div>'
        '<p class="as-legend">Large: the rank range on the headline measure, beside it the tier (T1: '
        "not significantly behind the first). Small: its value. "
        f"–: not ranked there (on hover: why). {MISSING}: not run there. {_order_note(indexed)}{cut}</p>{_flags_note(rows)}"
    )


def _order_note(indexed: int) -> str:
    if not indexed:
        return (
            "Metrics on the same boards stand together, the best mean place first; metrics on "
            "different boards were never compared."
        )
    return (
        'Ordered by the <a href="./index">index</a> with equal weights (0 a guess, 1 the ceilings), '
        "most benchmarks of it first; over different benchmarks it is not compared."
    )


def _matrix_row(row: Standing, totals: Mapping[str, int], indexed: int) -> str:
    cells = "".join(_matrix_cell(row.cells.get(name), total) for name, total in totals.items())
    origin = f" {origin_badge(row.entry)}"
    flags = flag_badges(flags_of(row.sent))
    return (
        f'<tr><th scope="row" class="as-c-metric">{metric_name(row.entry)}{origin} {flags}</th>'
        f"{_index_cell(row, indexed) if indexed else ''}{cells}"
        f'<td class="as-muted">{len(row.cells)} of {count(len(totals), "board")}</td></tr>'
    )


def _flags_note(rows: Sequence[Standing]) -> str:
    said = flags_legend(entry for row in rows[:MOST_ROWS] for entry in row.sent)
    return f'<p class="as-legend">{" ".join(said)}</p>' if said else ""


def _index_cell(row: Standing, indexed: int) -> str:
    if row.index is None:
        hover = "It has no benchmark of the index"
        return f'<td class="as-m-index as-blank" title="{hover}">{MISSING}</td>'
    has = len(row.index.boards)
    if has == indexed:
        return f'<td class="as-m-index"><b>{number(row.index.value)}</b></td>'
    hover = "Over the benchmarks it has: not compared with the others"
    return (
        f'<td class="as-m-index as-muted" title="{hover}">{number(row.index.value)}'
        f"<small>{has} of {indexed}</small></td>"
    )


def _matrix_cell(cell: Cell | None, total: int) -> str:
    if cell is None:
        return f'<td class="as-blank">{MISSING}<span class="as-sr"> not run</span></td>'
    hover = f"{number(cell.value)} {interval(cell.ci_low, cell.ci_high)}".strip()
    if cell.rank is None:
        why = cell.note or cell.why_unranked
        shown = "undefined" if cell.value is None else number(cell.value)
        return (
            f'<td title="{text(f"{hover}; {why}")}"><span class="as-range as-none">–</span>'
            f"<small>{shown}</small></td>"
        )
    best = " as-best" if cell.rank_low == 1 else ""
    hover += f", rank {cell.rank} of {total}"
    tier = ""
    if cell.tier is not None:
        hover += f", tier {cell.tier}"
        tier = f'<span class="as-m-tier">T{cell.tier}</span>'
    return (
        f'<td class="as-place{best}" title="{text(hover)}">'
        f'<span class="as-range">{rank_text(cell)}{tier}</span>'
        f"<small>{number(cell.value)}</small></td>"
    )
