"""The tables of the skill explorer: the list, the front, and each benchmark by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaderboard.pages.index.marks import index_axis, index_whisker
from leaderboard.pages.shown.flags import flag_badges, origin_badge
from leaderboard.pages.shown.marks import Axis, axis_header, rank_bar, rank_text
from leaderboard.pages.shown.markup import badge, scroll_box, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.shown.signatures import signed_by
from leaderboard.pages.skills.scatter import cost_text
from leaderboard.publication.flags import flags_of, is_trained_on
from leaderboard.publication.measure_names import skill_title, token
from leaderboard.publication.reader import View
from leaderboard.ranking.rank_ranges import RankRange
from leaderboard.ranking.tiers import in_tiers
from leaderboard.text import MISSING, count, interval, number
from leaderboard.views.addresses import board_address, items_address
from leaderboard.views.skill_choice import (
    COSTS,
    DECLARED,
    FLOPS,
    MEMORY,
    NOT_DECLARED,
    SECONDS,
    Found,
    Point,
    Spent,
    gigaflops_text,
)
from leaderboard.views.skills import Measured, Placed

MOST_ROWS = 100
MOST_OF_A_PART = 5
_AT_CHANCE = "Not significantly above chance: its 95 % interval reaches 0, so it is not recommended"


def list_table(placed: Sequence[Placed], spent: Sequence[Spent | None], found: Found) -> str:
    """Metrics by the weighted mean of their rescaled values.

    Args:
        placed: of the list, in its order.
        spent: of each of them.
        found: everything around it.
    """
    axis = index_axis(one.standing.index for one in placed)
    ranked = len(found.ranked)
    rows = "".join(
        _list_row(one, used, found, axis, ranked)
        for one, used in zip(placed[:MOST_ROWS], spent[:MOST_ROWS], strict=True)
    )
    head = "".join(
        f'<th scope="col" class="{kind}">{label}</th>'
        for kind, label in (
            ("as-s-rank", "Rank range"),
            ("as-s-metric", "Metric"),
            ("as-s-axis", f'<span class="as-sr">Mean and interval</span>{axis_header(axis)}'),
            ("as-s-value", "Weighted mean"),
            ("as-s-cost", "Seconds per 1,000 pairs"),
            ("as-s-cost as-s-flops", "FLOPs per pair, declared"),
            ("as-s-cost as-s-memory", "Peak memory"),
            ("as-s-items", "Where it fails"),
        )
    )
    cut = (
        f'<p class="as-legend">The first {MOST_ROWS} of {count(len(placed), "metric")}; the '
        "download has them all.</p>"
        if len(placed) > MOST_ROWS
        else ""
    )
    return (
        f'{scroll_box("All metrics")}<table class="as-table as-skill-list">'
        '<caption class="as-sr">Metrics by the weighted mean over benchmarks</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{cut}"
    )


def front_table(front: Sequence[Point], found: Found, cost: str, best: Point | None) -> str:
    """The points of the front, the cheapest first; the chosen one is marked."""
    rows = "".join(
        f'<tr{" class=as-chosen" if point is best else ""}><th scope="row">'
        f"{metric_name(point.placed.entry)}{_mark(point, best)}</th>"
        f"<td>{cost_text(point.cost, cost)}</td><td><b>{number(point.value)}</b> "
        f'<span class="as-ci">{_interval(point.placed)}</span></td>'
        f"<td>{_range(point.placed.standing.rank)}</td>"
        f"<td>{failures(point.placed, found)}</td></tr>"
        for point in front
    )
    heads = ("Metric", COSTS[cost], "Weighted mean", "Rank range", "Where it fails")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f'{scroll_box("Pareto front")}<table class="as-table as-front">'
        '<caption class="as-sr">Metrics that nothing cheaper beats</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def failures(placed: Placed, found: Found) -> str:
    """Links to the cases in which a metric fails, one for each benchmark that shows its answers."""
    links = []
    for name in found.weights:
        one = found.base.measured[name]
        cell = one.able.get(placed.who)
        if cell is None or not one.card.answers_public:
            continue
        to = items_address(
            one.card.name, skill=one.part.key, a=cell.entry_id, show="failures"
        )  # fmt: skip
        links.append((found.weights[name] > 0, f'<a href="{text(to)}">{text(one.card.title)}</a>'))
    # Those that count come first; the order among them is that of the benchmarks.
    return ", ".join(link for _, link in sorted(links, key=lambda pair: not pair[0])) or MISSING


def first_failures(placed: Placed, found: Found) -> str:
    """The address of the cases of the first benchmark that counts; empty where none shows any."""
    for name, weight in found.weights.items():
        one = found.base.measured[name]
        cell = one.able.get(placed.who)
        if cell is not None and weight and one.card.answers_public:
            return items_address(
                one.card.name, skill=one.part.key, a=cell.entry_id, show="failures"
            )
    return ""


def part_table(one: Measured, view: View) -> str:
    """The first of one benchmark by this skill, with rank ranges and tiers among all of them."""
    ranked = in_tiers(view.orders.ranked(one.card, [one.cells]))
    among = sum(cell.rank is not None for cell in ranked.cells)
    rows = "".join(
        f'<tr><td class="as-p-rank"><span class="as-range{_none(cell.rank)}" '
        f'title="{text(cell.why_unranked)}">{rank_text(cell)}</span>'
        f"{_bar(cell.rank_low, cell.rank, cell.rank_high, among)}</td>"
        f"<td>{_tier(cell.tier)}</td>"
        f'<th scope="row">{metric_name(view.entries[cell.entry_id])}{_missing(cell.n_missing)}</th>'
        f"<td><b>{number(cell.value)}</b> "
        f'<span class="as-ci">{interval(cell.ci_low, cell.ci_high)}</span></td>'
        f"<td>{_items(one, cell.entry_id)}</td></tr>"
        for cell in ranked.cells[:MOST_OF_A_PART]
    )
    heads = ("Rank range", "Tier", "Metric", "Value", "Where it fails")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    to = board_address(one.card.name, skill=one.part.key, measure=token(one.selector))
    more = count(len(ranked.cells), "metric")
    clusters = max((cell.n_clusters for cell in ranked.cells), default=0)
    return (
        f'{scroll_box(f"{one.card.title}, first metrics")}<table class="as-table as-part">'
        f'<caption class="as-sr">{text(one.card.title)}, '
        f"{text(skill_title(one.card, one.part.key))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<p class="as-legend"><a href="{text(to)}">All {more} on the board</a>; '
        f"{count(clusters, one.card.cluster)} lie behind a value.</p>"
    )


def _list_row(one: Placed, used: Spent | None, found: Found, axis: Axis, ranked: int) -> str:
    index = one.standing.index
    rank = one.standing.rank
    bar = rank_bar(rank.low, rank.rank, rank.high, ranked) if rank else ""
    return (
        f'<tr><td class="as-s-rank"><span class="as-range{_none(rank)}">{_range(rank)}</span>'
        f"{bar}{_coverage(one)}</td>"
        f'<th scope="row" class="as-s-metric">{metric_name(one.entry)}{signed_by(one.entry)} '
        f'<span class="as-badges">{_badges(one, found)}</span></th>'
        f'<td class="as-s-axis">{index_whisker(index, axis)}</td>'
        f'<td class="as-s-value"><b>{number(index.value)}</b> '
        f'<span class="as-ci">{_interval(one)}</span></td>'
        f'<td class="as-s-cost">{_cost(used, SECONDS)}</td>'
        f'<td class="as-s-cost as-s-flops">{_flops(used)}</td>'
        f'<td class="as-s-cost as-s-memory">{_cost(used, MEMORY)}</td>'
        f'<td class="as-s-items">{failures(one, found)}</td></tr>'
    )


def _badges(one: Placed, found: Found) -> str:
    marks = []
    if origin := origin_badge(one.entry):
        marks.append(origin)
    cards = {found.base.measured[name].card.name: found.base.measured[name].card
             for name in one.standing.present}  # fmt: skip
    trained = [card.title for card in cards.values() if is_trained_on(one.entry, card)]
    if trained:
        hover = f"Its author says so, of all or a part of {', '.join(trained)}."
        marks.append(
            badge(f"trained on {count(len(trained), 'benchmark')} of these", "warn", hover)
        )
    if not math.isfinite(one.standing.index.low):
        marks.append(badge("no interval", "warn", one.standing.note))
    elif not one.above_chance:
        marks.append(badge("at chance", "warn", _AT_CHANCE))
    return "".join((*marks, flag_badges(flags_of(found.base.sent[one.who], set(cards)))))


def _coverage(one: Placed) -> str:
    if not one.standing.missing:
        return ""
    has = len(one.standing.present)
    hover = f"Lacks {', '.join(one.standing.missing)}"
    return (
        f'<span class="as-note" title="{text(hover)}">{has} of '
        f"{has + len(one.standing.missing)} parts</span>"
    )


def _cost(used: Spent | None, cost: str) -> str:
    figure = used.by(cost) if used else None
    if used is None or figure is None:
        return f'<span class="as-none" title="Not recorded">{MISSING}</span>'
    where = "on other benchmarks" if used.elsewhere else "on these benchmarks"
    on = f" on {', '.join(used.devices)}" if used.devices else ""
    return (
        f'<span title="{text(f"Measured {where}{on}", limit=200)}">{cost_text(figure, cost)}</span>'
    )


def _flops(used: Spent | None) -> str:
    figure = used.by(FLOPS) if used else None
    if figure is None:
        return f'<span class="as-none">{NOT_DECLARED}</span>'
    return f'<span title="{DECLARED.capitalize()}">{gigaflops_text(figure)}</span>'


def _items(one: Measured, entry_id: str) -> str:
    if not one.card.answers_public:
        return f'<span class="as-none" title="Its answers are not public">{MISSING}</span>'
    to = items_address(one.card.name, skill=one.part.key, a=entry_id, show="failures")
    return f'<a href="{text(to)}">Images</a>'


def _mark(point: Point, best: Point | None) -> str:
    return f" {badge('best affordable', 'good')}" if point is best else ""


def _interval(one: Placed) -> str:
    return interval(one.standing.index.low, one.standing.index.high)


def _range(rank: RankRange | None) -> str:
    if rank is None:
        return MISSING
    return str(rank.low) if rank.low == rank.high else f"{rank.low}–{rank.high}"


def _none(rank: object) -> str:
    return "" if rank is not None else " as-none"


def _bar(low: int | None, rank: int | None, high: int | None, among: int) -> str:
    return rank_bar(low, rank, high, among) if low and rank and high else ""


def _tier(tier: int | None) -> str:
    if tier is None:
        return f'<span class="as-none" title="Not tested">{MISSING}</span>'
    return f"{tier}"


def _missing(n_missing: int) -> str:
    return f" {badge(f'{n_missing:,} missing', 'warn')}" if n_missing else ""
