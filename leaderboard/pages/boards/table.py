"""One ranking as an HTML table: rank range, P(best), metric, value on a common axis, cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card, MeasureInfo
from leaderboard.pages.boards.legend import legend, order_notice
from leaderboard.pages.shown.flags import flag_badges, flags_legend, flags_of
from leaderboard.pages.shown.marks import Axis, axis_for, axis_header, rank_bar, rank_text, whisker
from leaderboard.pages.shown.markup import (
    MISSING,
    badge,
    count,
    interval,
    number,
    rate,
    submitted,
    text,
)
from leaderboard.pages.shown.signatures import signature_text, signed_by
from leaderboard.pages.shown.tiers import Basis, Group, groups
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.records import Kind

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
    '<th scope="col" role="columnheader" class="as-c-cost">Pairs/s</th>'
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
) -> str:
    """The ranking of one slice.

    Args:
        cells: the cells of the slice, in the order of `tiers.in_tiers`.
        entries: the entries they belong to, by id.
        card: the benchmark.
        info: what the measure means.
        caption: what the table shows, for those who cannot see the page around it.
        basis: what ranks and tiers were made from.
    """
    axis = axis_for(cells, info.chance)
    found = groups(cells)
    shown = [entries[cell.entry_id] for cell in cells]
    board = _Board(entries, card, axis, sum(cell.rank is not None for cell in cells))
    tiered = any(group.tier is not None for group in found)
    bodies = "".join(_body(group, board, tiered=tiered) for group in found)
    head = _HEAD.format(
        axis=f'<span class="as-sr">Dot and 95 % interval</span>{axis_header(axis)}',
        arrow=f"{text(info.title)} {direction(info)}",
        items=text(card.cluster.capitalize() + "s"),
    )
    return (
        f"{order_notice(cells, card)}"
        '<div class="as-scroll"><table class="as-table as-board" role="table">'
        f'<caption class="as-sr">{text(caption)}</caption>'
        f"{head}{bodies}</table></div>"
        f"{legend(axis, cells, card, basis or Basis(), flags_legend(shown, {card.name}))}"
    )


def direction(info: MeasureInfo) -> str:
    """An arrow that says which way is better."""
    word, arrow = ("higher", "↑") if info.higher_is_better else ("lower", "↓")
    return (
        f'<span class="as-arrow" title="{word} is better" role="img" '
        f'aria-label="{word} is better">{arrow}</span>'
    )


def is_trained_on(entry: Entry, card: Card) -> bool:
    """Whether the author declared this benchmark, or the one it is modelled on."""
    return bool({name.casefold() for name in entry.trained_on} & {card.name, card.family})


def badges(entry: Entry, cell: Cell, card: Card) -> str:
    """What a reader must know before trusting a value."""
    found: list[str] = []
    if entry.kind is Kind.SCORES:
        found.append(badge("scores as submitted, not re-run", "plain"))
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


def metric_name(entry: Entry) -> str:
    """Name and version, with submitter, account and description on hover."""
    hover = f"{entry.metric} by {signature_text(entry)}"
    if entry.description:
        hover = f"{hover}: {entry.description}"
    version = f' <span class="as-version">{submitted(entry.version, limit=20)}</span>'
    return (
        f'<span class="as-name" title="{text(hover, limit=300)}">{submitted(entry.metric)}</span>'
        f"{version if entry.version else ''}"
    )


@dataclass(frozen=True)
class _Board:
    """What all rows of a ranking share."""

    entries: Mapping[str, Entry]
    card: Card
    axis: Axis
    ranked: int


def _body(group: Group, board: _Board, *, tiered: bool) -> str:
    """A tier with its label; the label is left out where nothing has a tier."""
    rows = "".join(_row(cell, board) for cell in group.cells)
    if not tiered:
        return f'<tbody role="rowgroup">{rows}</tbody>'
    label = "Without a rank" if group.tier is None else f"Tier {group.tier}"
    return (
        '<tbody role="rowgroup"><tr role="row" class="as-tier">'
        f'<th scope="rowgroup" role="rowheader" colspan="{_COLUMNS}"><span>{label}</span></th></tr>'
        f"{rows}</tbody>"
    )


def _row(cell: Cell, board: _Board) -> str:
    entry, card = board.entries[cell.entry_id], board.card
    note = f'<span class="as-note">{text(cell.note, limit=200)}</span>' if cell.note else ""
    cost = entry.cost.get(card.name)
    speed = rate(cost.pairs_per_s) if cost else MISSING
    few = "" if cell.orderable else ' class="as-few"'
    return (
        f'<tr role="row"{few}>'
        f'<td role="cell" class="as-c-rank">{_rank(cell, board.ranked)}</td>'
        f'<td role="cell" class="as-c-best">{_chance(cell)}</td>'
        f'<th scope="row" role="rowheader" class="as-c-metric">{metric_name(entry)}{signed_by(entry)}'
        f' <span class="as-badges">{badges(entry, cell, card)}</span>{note}</th>'
        f'<td role="cell" class="as-c-axis">{whisker(cell, board.axis)}</td>'
        f'<td role="cell" class="as-c-value"><b>{number(cell.value)}</b>'
        f' <span class="as-ci" title="{_method(cell)}">'
        f"{interval(cell.ci_low, cell.ci_high)}</span></td>"
        f'<td role="cell" class="as-c-n" data-label="{text(card.cluster)}s" '
        f'title="{count(cell.n_items, "item")}">'
        f"{cell.n_clusters:,}</td>"
        f'<td role="cell" class="as-c-cost">{speed}</td></tr>'
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
