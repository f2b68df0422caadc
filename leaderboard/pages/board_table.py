"""One ranking as an HTML table: rank range, metric, value on a common axis, cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from benchmarks.schema import Card, MeasureInfo
from leaderboard.cells import Cell
from leaderboard.pages.marks import Axis, axis_for, axis_header, rank_bar, rank_text, whisker
from leaderboard.pages.markup import (
    MISSING,
    badge,
    count,
    interval,
    notice,
    number,
    rate,
    submitted,
    text,
)
from leaderboard.ranking import MIN_CLUSTERS
from leaderboard.records import Kind
from leaderboard.snapshot import Entry

_BUNDLED = ("not isolated", "our own code")
"""How the layers of a run begin in which code of this project ran without walls."""

_HEAD = (
    '<thead role="rowgroup"><tr role="row">'
    '<th scope="col" role="columnheader" class="as-c-rank">Rank range</th>'
    '<th scope="col" role="columnheader" class="as-c-metric">Metric</th>'
    '<th scope="col" role="columnheader" class="as-c-axis">{axis}</th>'
    '<th scope="col" role="columnheader" class="as-c-value">{arrow}</th>'
    '<th scope="col" role="columnheader" class="as-c-n">{items}</th>'
    '<th scope="col" role="columnheader" class="as-c-cost">Pairs/s</th>'
    "</tr></thead>"
)


def board_table(
    cells: Sequence[Cell], entries: Mapping[str, Entry], card: Card, info: MeasureInfo, caption: str
) -> str:
    """The ranking of one slice.

    Args:
        cells: the cells of the slice, in board order.
        entries: the entries they belong to, by id.
        card: the benchmark.
        info: what the measure means.
        caption: what the table shows, for those who cannot see the page around it.
    """
    axis = axis_for(cells, info.chance)
    ranked = sum(cell.rank is not None for cell in cells)
    ends = tier_ends(cells)
    rows = "".join(
        _row(cell, entries[cell.entry_id], card, axis, ranked, tier_end=place in ends)
        for place, cell in enumerate(cells)
    )
    head = _HEAD.format(
        axis=f'<span class="as-sr">Dot and 95 % interval</span>{axis_header(axis)}',
        arrow=f"{text(info.title)} {direction(info)}",
        items=text(card.cluster.capitalize() + "s"),
    )
    return (
        f"{_order_notice(cells, card)}"
        '<div class="as-scroll"><table class="as-table as-board" role="table">'
        f'<caption class="as-sr">{text(caption)}</caption>'
        f'{head}<tbody role="rowgroup">{rows}</tbody></table></div>'
        f"{_legend(axis, bool(ends))}"
    )


def direction(info: MeasureInfo) -> str:
    """An arrow that says which way is better."""
    word, arrow = ("higher", "↑") if info.higher_is_better else ("lower", "↓")
    return (
        f'<span class="as-arrow" title="{word} is better" role="img" '
        f'aria-label="{word} is better">{arrow}</span>'
    )


def tier_ends(cells: Sequence[Cell]) -> frozenset[int]:
    """Places after which no rank range reaches from one side to the other."""
    ends: set[int] = set()
    worst = 0
    for place, (cell, after) in enumerate(pairwise(cells)):
        if cell.rank_high is None or after.rank_low is None:
            break
        worst = max(worst, cell.rank_high)
        if after.rank_low > worst:
            ends.add(place)
    return frozenset(ends)


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
    return "".join(found)


def metric_name(entry: Entry) -> str:
    """Name and version, with submitter and description on hover."""
    hover = f"{entry.metric} by {entry.submitter}"
    if entry.description:
        hover = f"{hover}: {entry.description}"
    version = f' <span class="as-version">{submitted(entry.version, limit=20)}</span>'
    return (
        f'<span class="as-name" title="{text(hover, limit=300)}">{submitted(entry.metric)}</span>'
        f"{version if entry.version else ''}"
    )


def _row(cell: Cell, entry: Entry, card: Card, axis: Axis, ranked: int, *, tier_end: bool) -> str:
    note = f'<span class="as-note">{text(cell.note, limit=200)}</span>' if cell.note else ""
    cost = entry.cost.get(card.name)
    speed = rate(cost.pairs_per_s) if cost else MISSING
    few = "" if cell.orderable else " as-few"
    return (
        f'<tr role="row" class="{"as-tier-end" if tier_end else ""}{few}">'
        f'<td role="cell" class="as-c-rank">{_rank(cell, ranked)}</td>'
        f'<th scope="row" role="rowheader" class="as-c-metric">{metric_name(entry)}'
        f' <span class="as-badges">{badges(entry, cell, card)}</span>{note}</th>'
        f'<td role="cell" class="as-c-axis">{whisker(cell, axis)}</td>'
        f'<td role="cell" class="as-c-value"><b>{number(cell.value)}</b>'
        f' <span class="as-ci">{interval(cell.ci_low, cell.ci_high)}</span></td>'
        f'<td role="cell" class="as-c-n" data-label="{text(card.cluster)}s" '
        f'title="{count(cell.n_items, "item")}">'
        f"{cell.n_clusters:,}</td>"
        f'<td role="cell" class="as-c-cost">{speed}</td></tr>'
    )


def _rank(cell: Cell, ranked: int) -> str:
    if cell.rank is None or cell.rank_low is None or cell.rank_high is None:
        why = cell.why_unranked
        return f'<span class="as-range as-none" title="{why}">–<span class="as-sr"> {why}</span></span>'
    return (
        f'<span class="as-range" title="Rank {cell.rank} of {ranked}; '
        f'{cell.rank_low} to {cell.rank_high} in 95 % of the resamples">{rank_text(cell)}</span>'
        f"{rank_bar(cell.rank_low, cell.rank, cell.rank_high, ranked)}"
    )


def _order_notice(cells: Sequence[Cell], card: Card) -> str:
    few = sum(not cell.orderable for cell in cells)
    if not few:
        return ""
    whose = "" if few == len(cells) else f" for {few} of {len(cells)} metrics"
    return notice(
        f"<b>Too few items to order{whose}.</b> Fewer than {MIN_CLUSTERS} {text(card.cluster)}s lie "
        "behind the values, so they are shown without ranks.",
        "warn",
    )


def _legend(axis: Axis, tiers: bool) -> str:
    parts = ["Dot: value. Line: 95 % interval."]
    if axis.chance is not None:
        parts.append(f"Dashes: chance ({number(axis.chance, 2)}).")
    if tiers:
        parts.append("Heavier rule: no rank range crosses it.")
    return f'<p class="as-legend">{" ".join(parts)}</p>'
