"""Ranking as an HTML table: rank range, P(best), metric, value on a common axis, cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card, MeasureInfo
from leaderboard.pages.boards.further import FurtherCells, better, head, meanings
from leaderboard.pages.boards.legend import legend, order_notice
from leaderboard.pages.boards.rows_shown import PinLinks, pager, pinned_bar, rank_by_link
from leaderboard.pages.shown.flags import flag_badges, flags_legend, origin_badge
from leaderboard.pages.shown.marks import Axis, axis_for, axis_header, rank_bar, rank_text, whisker
from leaderboard.pages.shown.markup import badge, scroll_box, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.publication.flags import flags_of, is_trained_on
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.tiers import Basis
from leaderboard.text import MISSING, count, interval, number, rate
from leaderboard.views.boards import Layout, Part, window

_BUNDLED = ("not isolated", "our own code")
"""How the layers of a run begin in which code of this project ran without walls."""
_HEAD = (
    '<thead role="rowgroup"><tr role="row">'
    '<th scope="col" role="columnheader" class="as-c-rank">Rank range</th>'
    '<th scope="col" role="columnheader" class="as-c-best" title="Share of the resamples in which '
    'it comes first; a tie is shared out">P(best)</th>'
    '<th scope="col" role="columnheader" class="as-c-metric">Metric</th>'
    '<th scope="col" role="columnheader" class="as-c-axis">{axis}</th>'
    '<th scope="col" role="columnheader" class="as-c-value">{arrow}</th>'
    '<th scope="col" role="columnheader" class="as-c-n">{items}</th>'
    '<th scope="col" role="columnheader" class="as-c-cost">Pairs/s</th>{further}'
    "</tr></thead>"
)
_COLUMNS = 7
_METHODS = {"bca": "BCa (bias-corrected and accelerated)", "percentile": "percentile"}


def board_table(
    cells: Sequence[Cell],
    entries: Mapping[str, Entry],
    card: Card,
    info: MeasureInfo,
    caption: str,
    *,
    basis: Basis | None = None,
    layout: Layout | None = None,
) -> str:
    """The ranking of one slice.

    Args:
        cells: the cells of the slice, in the order of `tiers.in_tiers`.
        entries: the entries they belong to, by id.
        card: the benchmark.
        info: what the measure means.
        caption: what the table shows, for those who cannot see the page around it.
        basis: what ranks and tiers were made from.
        layout: further columns, pins, sorting and page; None: the plain ranking, without links.
    """
    layout = layout or Layout()
    axis = axis_for(cells, info.chance)
    rows = window(cells, layout)
    shown = [entries[cell.entry_id] for part in rows.parts for cell in part.cells]
    board = _Board.of(cells, entries, card, axis, layout)
    bodies = "".join(_body(part, board) for part in rows.parts)
    top = _HEAD.format(
        axis=f'<span class="as-sr">Dot and 95 % interval</span>{axis_header(axis)}',
        arrow=f"{rank_by_link(text(info.title), layout)} {direction(info)}",
        items=text(card.cluster.capitalize() + "s"),
        further="".join(head(one.column, layout) for one in layout.columns),
    )
    flags = flags_legend(shown, {card.name})
    wide = " as-wide" if layout.columns else ""
    return (
        f"{order_notice(cells, card)}{pinned_bar(layout, entries, card)}"
        f'{scroll_box(caption)}<table class="as-table as-board{wide}" role="table">'
        f'<caption class="as-sr">{text(caption)}</caption>'
        f"{top}{bodies}</table></div>{pager(rows, layout)}"
        f"{legend(axis, cells, card, basis or Basis(), flags)}{meanings(layout.columns)}"
    )


def direction(info: MeasureInfo) -> str:
    """An arrow that says which way is better."""
    return better(info.higher_is_better)


def badges(entry: Entry, cell: Cell, card: Card) -> str:
    """What a reader must know before trusting a value."""
    found: list[str] = []
    if origin := origin_badge(entry):
        found.append(origin)
    else:
        layers = entry.isolation.get(card.name, ())
        if any(layer.startswith(_BUNDLED) for layer in layers):
            found.append(badge("not isolated: bundled code", "plain", "; ".join(layers)))
        elif not layers:
            found.append(badge("not isolated", "warn"))
    if is_trained_on(entry, card):
        found.append(
            badge(
                "trained on this benchmark", "warn", "Its author says so, of all or a part of it."
            )
        )
    if cell.n_missing:
        found.append(
            badge(
                f"{cell.n_missing:,} missing",
                "warn",
                f"{count(cell.n_missing, 'pair')} of this slice got no score.",
            )
        )
    return "".join((*found, flag_badges(flags_of([entry], {card.name}))))


@dataclass(frozen=True)
class _Board:
    """What all rows of a ranking share."""

    entries: Mapping[str, Entry]
    card: Card
    axis: Axis
    ranked: int
    layout: Layout
    further: FurtherCells
    pins: PinLinks
    items: str

    @classmethod
    def of(
        cls,
        cells: Sequence[Cell],
        entries: Mapping[str, Entry],
        card: Card,
        axis: Axis,
        layout: Layout,
    ) -> _Board:
        # The items of a mean over skills are those of all skills.
        one = cells[0] if cells else None
        skill = one.skill if one and one.row >= 0 else None
        items = text(layout.items.column(skill, one.split)) if layout.items and one else ""
        ranked = sum(cell.rank is not None for cell in cells)
        further, pins = FurtherCells(layout), PinLinks(layout)
        return cls(entries, card, axis, ranked, layout, further, pins, items)


def _body(part: Part, board: _Board) -> str:
    """Rows with their label; without one where nothing has a tier."""
    rows = "".join(_row(cell, board) for cell in part.cells)
    if not part.label:
        return f'<tbody role="rowgroup">{rows}</tbody>'
    span = _COLUMNS + len(board.layout.columns)
    return (
        '<tbody role="rowgroup"><tr role="row" class="as-tier">'
        f'<th scope="rowgroup" role="rowheader" colspan="{span}"><span>{part.label}</span></th></tr>'
        f"{rows}</tbody>"
    )


def _row(cell: Cell, board: _Board) -> str:
    entry, card = board.entries[cell.entry_id], board.card
    note = f'<span class="as-note">{text(cell.note, limit=200)}</span>' if cell.note else ""
    cost = entry.cost.get(card.name)
    speed = rate(cost.pairs_per_s) if cost else MISSING
    few = "" if cell.orderable else ' class="as-few"'
    pin = board.pins.link(entry)
    value = f"<b>{number(cell.value)}</b>"
    if board.items and board.layout.items and cell.value is not None:
        items = board.layout.items
        there = items.of_entry(board.items, items.entry(cell.entry_id))
        value = f'<a class="as-to" href="{there}" title="The items behind it">{value}</a>'
    return (
        f'<tr role="row"{few}>'
        f'<td role="cell" class="as-c-rank">{_rank(cell, board.ranked)}{pin}</td>'
        f'<td role="cell" class="as-c-best">{_chance(cell)}</td>'
        f'<th scope="row" role="rowheader" class="as-c-metric">{metric_name(entry)}{signed_by(entry)}'
        f' <span class="as-badges">{badges(entry, cell, card)}</span>{note}</th>'
        f'<td role="cell" class="as-c-axis">{whisker(cell, board.axis)}</td>'
        f'<td role="cell" class="as-c-value">{value}'
        f' <span class="as-ci" title="{_method(cell)}">'
        f"{interval(cell.ci_low, cell.ci_high)}</span></td>"
        f'<td role="cell" class="as-c-n" data-label="{text(card.cluster)}s" '
        f'title="{count(cell.n_items, "item")}">'
        f"{cell.n_clusters:,}</td>"
        f'<td role="cell" class="as-c-cost">{speed}</td>{board.further.row(cell.entry_id)}</tr>'
    )


def _method(cell: Cell) -> str:
    """How the interval was made, where that is stored."""
    if cell.ci_low is None:
        return "no interval"
    return f"95 % interval, {_METHODS.get(cell.ci_method or '', 'method not stored')}"


def _chance(cell: Cell) -> str:
    if cell.p_best is None:
        return f'<span class="as-none">{MISSING}</span>'
    return percent(cell.p_best)


def percent(share: float) -> str:
    """A share in whole percent; what is almost nothing or almost all is never rounded to it."""
    if 0.0 < share < 0.005:
        return "&lt;1 %"
    if 0.995 < share < 1.0:
        return "&gt;99 %"
    return f"{100 * share:.0f} %"


def _rank(cell: Cell, ranked: int) -> str:
    if cell.rank is None or cell.rank_low is None or cell.rank_high is None:
        why = cell.why_unranked
        return f'<span class="as-range as-none" title="{why}">–<span class="as-sr"> {why}</span></span>'
    untested = "" if cell.tier is not None else "; not tested, so without a tier"
    return (
        f'<span class="as-range" title="Rank {cell.rank} of {ranked}; '
        f'{cell.rank_low} to {cell.rank_high} in 95 % of the resamples{untested}">'
        f"{rank_text(cell)}</span>"
        f"{rank_bar(cell.rank_low, cell.rank, cell.rank_high, ranked)}"
    )
