"""The best of the index on the first page, with intervals and rank ranges."""

from __future__ import annotations

from leaderboard.pages.index.marks import index_axis, index_whisker
from leaderboard.pages.index.tiers_said import IN_SHORT, about_tiers, is_tested, tier_cell
from leaderboard.pages.shown.flags import origin_badge
from leaderboard.pages.shown.marks import Axis, axis_header, rank_bar
from leaderboard.pages.shown.markup import page, scroll_box, section
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.publication.index import IndexBase, Ranked
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.text import count, interval, number

MOST_ROWS = 8
_MEANS = (
    '<p class="as-lead">The mean of each benchmark’s headline, 0 for a guess and 1 for its ceiling. '
    "Metrics whose rank ranges overlap are not told apart by the data.{tiers}</p>"
)


def index_first(base: IndexBase) -> str:
    """The metrics with every benchmark of the index, best first; empty where there is none."""
    weights = {name: board.weight for name, board in base.boards.items()}
    ranked = [one for one in base.standings(weights) if one.standing.rank is not None]
    if not ranked:
        return ""
    shown = ranked[:MOST_ROWS]
    axis = index_axis(one.standing.index for one in shown)
    rows = "".join(_row(one, axis, len(ranked)) for one in shown)
    table = (
        f'{scroll_box("Best of the index")}<table class="as-table as-first">'
        '<caption class="as-sr">The best metrics by the index, with intervals</caption>'
        '<thead><tr><th scope="col" class="as-i-rank">Rank range</th>'
        '<th scope="col" class="as-i-tier">Tier</th><th scope="col">Metric</th>'
        f'<th scope="col" class="as-i-axis"><span class="as-sr">Index and 95 % interval</span>'
        f'{axis_header(axis)}</th><th scope="col">Index</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    means = _MEANS.format(tiers=f" {IN_SHORT if is_tested(ranked) else about_tiers(ranked)}")
    on = sum(weight > 0 for weight in weights.values())
    aside = (
        f"<span>{count(len(ranked), 'metric')} on {'the' if on == 1 else 'all'} "
        f"{count(on, 'benchmark')}</span>"
        '<a href="./index">Whole index, other weights</a>'
    )
    return page([section("Index over benchmarks", means + table, aside=aside)])


def waiting() -> str:
    """What stands in its place until it is made."""
    wait = '<p class="as-wait" role="status">Weighing the benchmarks…</p>'
    return page([section("Index over benchmarks", wait)])


def _row(one: Ranked, axis: Axis, ranked: int) -> str:
    index, entry = one.standing.index, one.entry
    origin = f" {origin_badge(entry)}"
    return (
        f'<tr><td class="as-i-rank">{_rank(one.standing.rank, ranked)}</td>{tier_cell(one)}'
        f'<th scope="row">{metric_name(entry)}{signed_by(entry)}{origin}</th>'
        f'<td class="as-i-axis">{index_whisker(index, axis)}</td>'
        f'<td class="as-c-value"><b>{number(index.value)}</b> '
        f'<span class="as-ci">{interval(index.low, index.high)}</span></td></tr>'
    )


def _rank(rank: RankRange | None, ranked: int) -> str:
    if rank is None:
        return "–"
    shown = str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"
    return (
        f'<span class="as-range">{shown}</span>{rank_bar(rank.low, rank.rank, rank.high, ranked)}'
    )
