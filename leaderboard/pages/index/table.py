"""The index as two tables: metrics with every benchmark, and those that lack some."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaderboard.pages.index.marks import Strips, index_axis, index_whisker, strip_header
from leaderboard.pages.index.tiers_said import tier_cell
from leaderboard.pages.shown.flags import flag_badges, origin_badge
from leaderboard.pages.shown.marks import Axis, axis_header, rank_bar
from leaderboard.pages.shown.markup import badge, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.publication.flags import flags_of, is_trained_on
from leaderboard.publication.index import IndexBase, Ranked
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.index import IndexChoice

MOST_ROWS = 200
_SCROLL = '<div class="as-scroll" tabindex="0" role="region" aria-label="{label}">'


def ranked_table(
    rows: Sequence[Ranked], choice: IndexChoice, base: IndexBase, strips: Strips
) -> str:
    """Metrics that have every benchmark with a weight."""
    axis = index_axis(row.standing.index for row in rows)
    heads = (
        ("as-i-rank", "Rank range"),
        ("as-i-tier", "Tier"),
        ("as-i-metric", "Metric"),
        ("as-i-axis", f'<span class="as-sr">Index and 95 % interval</span>{axis_header(axis)}'),
        ("as-i-value", "Index"),
        ("as-i-strip", _strip_head(choice, base)),
        ("as-i-borda", "Borda"),
        ("as-i-best", "P(best)"),
    )
    ranked = len(rows)
    body = "".join(
        "<tr>"
        f'<td class="as-i-rank">{_rank(row.standing.rank, ranked)}</td>{tier_cell(row)}'
        f"{_common(row, axis, choice, base, strips)}"
        f'<td class="as-i-borda" title="Share of the comparisons won: '
        f'{text(_span(row.standing.borda))}"><span class="as-range">'
        f"{_range(row.standing.borda_rank)}</span> "
        f"<small>{number(row.standing.borda.value, 2)}</small></td>"
        f'<td class="as-i-best">{_share(row.standing.p_best)}</td></tr>'
        for row in rows[:MOST_ROWS]
    )
    return _table("Metrics on every benchmark", heads, body) + _cut(ranked)


def partial_table(
    rows: Sequence[Ranked], choice: IndexChoice, base: IndexBase, strips: Strips
) -> str:
    """Metrics that lack a benchmark with a weight: a value, and no rank."""
    axis = index_axis(row.standing.index for row in rows)
    heads = (
        ("as-i-rank", "Coverage"),
        ("as-i-metric", "Metric"),
        ("as-i-axis", f'<span class="as-sr">Index and 95 % interval</span>{axis_header(axis)}'),
        ("as-i-value", "Over what it has"),
        ("as-i-strip", _strip_head(choice, base)),
        ("as-i-lacks", "Lacks"),
    )
    body = "".join(
        "<tr>"
        f'<td class="as-i-rank">{_coverage(row)}</td>{_common(row, axis, choice, base, strips)}'
        f'<td class="as-i-lacks">{_lacks(row, base)}</td></tr>'
        for row in rows[:MOST_ROWS]
    )
    return _table("Metrics that lack a benchmark", heads, body) + _cut(len(rows))


def _common(row: Ranked, axis: Axis, choice: IndexChoice, base: IndexBase, strips: Strips) -> str:
    """The cells that both tables have."""
    origin = f" {origin_badge(row.entry)}"
    index = row.standing.index
    no_interval = (
        "" if math.isfinite(index.low) else badge("no interval", "warn", row.standing.note)
    )
    return (
        f'<th scope="row" class="as-i-metric">{metric_name(row.entry)}'
        f"{signed_by(row.entry)}{origin}{_trained_on(row, base)} {_flags(row, base)}</th>"
        f'<td class="as-i-axis">{index_whisker(index, axis)}</td>'
        f'<td class="as-i-value"><b>{number(index.value)}</b> '
        f'<span class="as-ci">{interval(index.low, index.high)}</span>{no_interval}</td>'
        f'<td class="as-i-strip">{strips.strip(row.who, choice.weights)}</td>'
    )


def _table(caption: str, heads: Sequence[tuple[str, str]], body: str) -> str:
    head = "".join(f'<th scope="col" class="{kind}">{label}</th>' for kind, label in heads)
    return (
        f'{_SCROLL.format(label=caption)}<table class="as-table as-index">'
        f'<caption class="as-sr">{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _strip_head(choice: IndexChoice, base: IndexBase) -> str:
    return strip_header(
        [(base.boards[name].card.title, weight) for name, weight in choice.weights.items()]
    )


def _rank(rank: RankRange | None, ranked: int) -> str:
    if rank is None:
        return f'<span class="as-range as-none">{MISSING}</span>'
    return (
        f'<span class="as-range" title="Rank {rank.rank} of {ranked}; {rank.low} to {rank.high} in '
        f'95 % of the resamples">{_range(rank)}</span>'
        f"{rank_bar(rank.low, rank.rank, rank.high, ranked)}"
    )


def _range(rank: RankRange | None) -> str:
    if rank is None:
        return MISSING
    return str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"


def _coverage(row: Ranked) -> str:
    has, lacks = len(row.standing.present), len(row.standing.missing)
    return f'<span class="as-range as-none">{has} of {has + lacks}</span>'


def _trained_on(row: Ranked, base: IndexBase) -> str:
    """A mark for metrics whose author says that they have seen data of the index."""
    cards = [base.boards[name].card for name in row.standing.present]
    titles = [card.title for card in cards if is_trained_on(row.entry, card)]
    if not titles:
        return ""
    hover = f"Its author says so, of all or a part of {', '.join(titles)}."
    mark = badge(f"trained on {count(len(titles), 'benchmark')} of these", "warn", hover)
    return f" {mark}"


def _flags(row: Ranked, base: IndexBase) -> str:
    return flag_badges(flags_of(base.sent[row.who], row.standing.present))


def _lacks(row: Ranked, base: IndexBase) -> str:
    found = []
    for name in row.standing.missing:
        board = base.boards[name]
        why = board.unfit.get(row.who, "")
        found.append(badge(board.card.title, "warn" if why else "plain", why or "not run there"))
    return " ".join(found)


def _share(share: float) -> str:
    if math.isnan(share):
        return MISSING
    if 0.0 < share < 0.005:
        return "&lt; 1 %"
    return "&gt; 99 %" if 0.995 <= share < 1.0 else f"{share:.0%}".replace("%", " %")


def _span(value: tuple[float, float, float]) -> str:
    return f"{number(value[0])} {interval(value[1], value[2])}".strip()


def _cut(rows: int) -> str:
    if rows <= MOST_ROWS:
        return ""
    left = count(rows, "metric")
    return f'<p class="as-legend">The first {MOST_ROWS} of {left}; the download has them all.</p>'
