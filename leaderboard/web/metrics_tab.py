"""First tab of the Metrics place: every metric over all benchmarks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.errors import TransientError
from benchmarks.schema import Card
from leaderboard.ledger.audit_log import Line as LogLine
from leaderboard.publication.entries import MEANINGS, Identity
from leaderboard.publication.index import NO_RESULTS
from leaderboard.publication.measure_names import info
from leaderboard.publication.metric_facts import metric_name
from leaderboard.publication.reader import Revision
from leaderboard.rendering import render
from leaderboard.text import count, number
from leaderboard.views.addresses import compare_address, items_address, metric_address
from leaderboard.views.audit_log import recent_activity
from leaderboard.views.changes import with_earlier
from leaderboard.views.citation import Citation
from leaderboard.views.figures import Option, Verdict
from leaderboard.views.metric_table import BEST_SHARE, BORDA, MetricColumn, MetricRow, flag_labels
from leaderboard.views.metrics import (
    CHARTS,
    IN_FILTER,
    NAME,
    MetricsQuery,
    MetricsView,
    RowGroup,
    metrics_view,
    needs_index,
)
from leaderboard.views.rankings import (
    INDEX,
    Place,
    Ranking,
    also,
    cheapest_of_first_tier,
    cost_words,
    picks,
    verdict,
)
from leaderboard.views.skills import COSTS, FLOPS, USD
from leaderboard.web.components import (
    Column,
    Link,
    Pick,
    Row,
    Scale,
    TextCell,
    Tier,
    ValueCell,
    Values,
)
from leaderboard.web.live import LiveContent
from leaderboard.web.metric_parts import (
    PAID,
    column_scale,
    cost_cell,
    cost_chart,
    cut,
    flag_links,
    flops_source,
    heading,
    kinds_of_data,
    measure_cell,
    metric_row,
    metric_tabs,
    names_met_twice,
    place_cell,
    place_words,
    rank_chart,
    share,
    size_cell,
    skill_chart,
    tags_of,
    who_facts,
)
from leaderboard.web.page import Context

MOST_DRAWN = 4
"""Headlines that are drawn beside their numbers, the leading ones."""
_BOUNDS = {
    FLOPS: (("1 GFLOP", "1e9"), ("10 GFLOPs", "1e10"), ("100 GFLOPs", "1e11"), ("1 TFLOP", "1e12"),
            ("10 TFLOPs", "1e13"), ("100 TFLOPs", "1e14")),
    "seconds": (("1 s", "1"), ("10 s", "10"), ("100 s", "100"), ("1,000 s", "1000")),
    "memory": (("1 GiB", "1"), ("4 GiB", "4"), ("16 GiB", "16"), ("80 GiB", "80")),
    USD: (("0.1 USD", "0.1"), ("1 USD", "1"), ("10 USD", "10")),
}  # fmt: skip
Cells = Sequence[ValueCell | TextCell]


@dataclass(frozen=True)
class WeightField:
    """The weight of a benchmark: its field, its title, and why it does not begin with 1."""

    name: str
    title: str
    value: str
    why: str = ""


@dataclass(frozen=True)
class BoardParts:
    """The table: its columns, and its rows under headings."""

    columns: tuple[Column, ...]
    groups: tuple[tuple[Tier | None, tuple[Row, ...]], ...]


def verdict_of(view: MetricsView) -> Verdict:
    """What the page says first."""
    lead = view.lead
    if lead is None:
        return Verdict("No metric has been published yet.", "Submit the first one.")
    costs = view.table.costs(view.by)
    cheap = cheapest_of_first_tier(lead, costs)
    said = verdict(lead, (cheap, cost_words(costs[cheap.who], view.by)) if cheap else None)
    others = [name for name in view.table.benchmarks if name != lead.key]
    second = next((told for name in others if (told := also(view.table.ranking(name)))), "")
    return Verdict(said.sentence, f"{said.detail} {second}".strip())


def picks_of(view: MetricsView) -> tuple[Pick, ...]:
    """Answers to the questions most visitors have."""
    if view.lead is None:
        return ()
    costs = view.table.costs(view.by)
    return tuple(
        Pick(one.question, metric_name(one.place.entry), one.place.figure,
             metric_address(one.place.entry.entry_id))
        for one in picks(view.lead, costs, view.by, view.query.cost)
    )  # fmt: skip


def board_of(view: MetricsView) -> BoardParts:
    """The table of the page."""
    table = view.table
    ranking = view.ordered or view.lead
    drawn = dict(_headlines(view))
    places = {name: table.ranking(name).by_metric for name in table.benchmarks}
    index = {one.who: one for one in view.weighing.ranking.places} if view.weighing else {}
    twice = names_met_twice(row.entry for row in table.rows)
    shared = _Shared(view, drawn, places, index, _bests(view, places, index), ranking, twice)
    return BoardParts(
        _columns(view, ranking), tuple(_group(group, shared) for group in view.groups)
    )


def controls_of(view: MetricsView) -> Values:
    """The controls above the table."""
    query, table = view.query, view.table
    hidden = {"tab": query.tab, "ratings": query.ratings, "sort": query.sort, "chart": query.chart}
    every = view.every_column
    shown = {column.key for column in view.columns}
    groups = dict.fromkeys(column.group for column in every)
    weights = []
    if view.weighing or len(table.indexed) > 1:
        weights = _weights(view)
    known = [by for by in COSTS if table.costs(by)]
    bound = f"{query.cost:g}" if query.cost is not None else ""
    bounds = [Option(value, f"under {label}", float(value) == query.cost)
              for label, value in _BOUNDS[view.by]]  # fmt: skip
    if query.cost is not None and not any(one.chosen for one in bounds):
        bounds.append(Option(bound, f"under {cost_words(query.cost, view.by)}", chosen=True))
    chips = _chips(view)
    clear = query.link(words="", method="", access="", cost=None) if chips else ""
    return {
        "hidden": tuple((name, value) for name, value in hidden.items() if value),
        "words": query.words,
        "methods": tuple(Option(one, one, one == query.method) for one in table.stated("method")),
        "accesses": tuple(Option(one, one, one == query.access) for one in table.stated("access")),
        "kinds": tuple(Option(by, COSTS[by], by == view.by) for by in known) if len(known) > 1 else (),
        "bounds": tuple(bounds) if known else (),
        "columns": tuple(
            (group, tuple(Option(c.key, ", ".join(filter(None, (c.title, c.note))), c.key in shown) for c in every if c.group == group))
            for group in groups
        ),
        "weights": tuple(weights),
        "chosen": len(view.columns),
        "chips": chips,
        "clear_href": clear,
    }  # fmt: skip


def charts_of(view: MetricsView) -> tuple[Link, ...]:
    """Links to the other drawings; that of the present one is empty."""
    return tuple(
        Link(title, "" if key == view.query.chart else view.query.link(chart=key),
             go=f"chart-{key or 'cost'}")
        for key, title in CHARTS.items()
    )  # fmt: skip


def legend_of(view: MetricsView) -> tuple[str, ...]:
    """What the flags of the rows mean, a sentence each."""
    flags = flag_labels(row for group in view.groups for row in group.rows)
    return tuple(f"{label}: {meaning}" for label, meaning in MEANINGS.items() if label in flags)


def pages_of(view: MetricsView) -> tuple[Link, ...]:
    """Links to the pages of the rows; that of the present one is empty."""
    if view.pages < 2:
        return ()
    return tuple(
        Link(f"{page}", "" if page == view.query.page else view.query.link(page=page),
             go=f"page-{page}")
        for page in range(1, view.pages + 1)
    )  # fmt: skip


@dataclass(frozen=True)
class _Shared:
    """What all rows of a table share."""

    view: MetricsView
    drawn: Mapping[str, Scale | None]
    places: Mapping[str, Mapping[Identity, Place]]
    index: Mapping[Identity, Place]
    bests: Mapping[str, float]
    ranking: Ranking | None
    twice: frozenset[str] = frozenset()

    @property
    def cards(self) -> dict[str, Card]:
        """The benchmarks with results."""
        boards = self.view.table.view.boards
        return {name: boards[name].card for name in self.view.table.benchmarks}


def _headlines(view: MetricsView) -> list[tuple[str, Scale | None]]:
    """The axes of the headlines that are drawn."""
    found: list[tuple[str, Scale | None]] = []
    for column in view.columns:
        if len(found) == MOST_DRAWN:
            break
        ranking = None
        if column.key == INDEX and view.weighing:
            ranking = view.weighing.ranking
        elif column.key in view.table.benchmarks:
            ranking = view.table.ranking(column.key)
        if ranking is not None:
            ends = (end for one in ranking.places for end in (one.value, one.low, one.high))
            found.append((column.key, column_scale(ends, ranking.chance)))
    return found


def _bests(
    view: MetricsView,
    places: Mapping[str, Mapping[Identity, Place]],
    index: Mapping[Identity, Place],
) -> dict[str, float]:
    """The best value of each column of measures."""
    found: dict[str, float] = {}
    for column in view.columns:
        if not column.benchmark and column.key != INDEX:
            continue
        if column.key in places or column.key == INDEX:
            of = index if column.key == INDEX else places[column.key]
            values = [one.value for one in of.values() if one.ranks]
            rises = column.key == INDEX or view.table.ranking(column.key).higher_is_better
        else:
            card = view.table.view.boards[column.benchmark].card
            assert column.selector is not None
            rises = card.higher_is_better(column.selector.measure)
            cells = view.table.cells(column).values()
            values = [cell.value for cell in cells if cell.value is not None and cell.fit]
        if values:
            found[column.key] = max(values) if rises else min(values)
    return found


def _columns(view: MetricsView, ranking: Ranking | None) -> tuple[Column, ...]:
    key, down = view.sort
    by = ""
    if ranking:
        titles = {column.key: column.title for column in view.table.columns}
        short = "the index" if ranking.key == INDEX else titles[ranking.key]
        by = f"ranks that tests leave open {ranking.on} {short}"
    first = Column(NAME, "Rank range · Metric", note=by, first=True)
    found = [heading(first, sorted_by=key, down=down)]
    drawn = {name for name, _ in _headlines(view)}
    if view.in_filter:
        found.append(
            Column(IN_FILTER, "Rank in filter", f"of {len(view.in_filter):,}", right=True,
                   hint="Order by the rank on the whole board; nothing is tested anew",
                   sortable=False)
        )  # fmt: skip
    for column in view.columns:
        right = not column.words and column.key not in drawn
        one = Column(column.key, column.title, column.note, right=right, hint=_hint(column, view))
        found.append(heading(one, sorted_by=key, down=down))
    return tuple(found)


def _hint(column: MetricColumn, view: MetricsView) -> str:
    if not column.benchmark:
        return ""
    card = view.table.view.boards[column.benchmark].card
    assert column.selector is not None
    better = "higher" if card.higher_is_better(column.selector.measure) else "lower"
    return f"{card.title}: {better} is better"


def _group(group: RowGroup, shared: _Shared) -> tuple[Tier | None, tuple[Row, ...]]:
    ranking = shared.ranking
    tier: Tier | None = None
    if group.tier is not None and ranking is not None:
        n = group.whole
        many = "no two differ significantly" if n > 1 else ""
        kept = f"{count(group.size, 'metric')} of {n:,}" if group.size != n else count(n, "metric")
        text = ", ".join(filter(None, (kept, many)))
        detail = ""
        if group.tier == 1:
            pairs = ranking.tested * (ranking.tested - 1) // 2
            detail = f"(joint sign-flip tests over {count(pairs, 'pair')}, 5%)"
        tier = Tier(f"Tier {group.tier}", text, detail)
    elif group.title:
        tier = Tier(group.title, count(group.size, "metric"))
    return tier, tuple(_row(row, shared) for row in group.rows)


def _row(row: MetricRow, shared: _Shared) -> Row:
    view = shared.view
    ranking = shared.ranking
    place = None
    if ranking is not None:
        of = shared.index if ranking.key == INDEX else shared.places[ranking.key]
        place = of.get(row.who)
    cells: list[ValueCell | TextCell] = []
    if view.in_filter:
        rank = view.in_filter.get(row.who)
        cells.append(TextCell("" if rank is None else f"{rank:,}", right=True))
    cells += [_cell(column, row, shared) for column in view.columns]
    return metric_row(
        row.entry, place, cells,
        twice=shared.twice, last=len(view.table.rows), opened=view.query.open,
        tags=tags_of(row.sent),
        facts=(_results(row, shared), who_facts(row.sent, shared.cards) + _costs(row)),
        links=_links(row, shared),
    )  # fmt: skip


def _cell(column: MetricColumn, row: MetricRow, shared: _Shared) -> ValueCell | TextCell:
    view, key = shared.view, column.key
    if key in {INDEX, BEST_SHARE, BORDA}:
        return _index_cell(key, row, shared)
    if key in shared.places:
        place = shared.places[key].get(row.who)
        ranks = shared.ranking is None or shared.ranking.key != key
        best = place is not None and place.value == shared.bests.get(key)
        return place_cell(place, shared.drawn.get(key), ranks=ranks, best=best, why="not run there")
    if column.benchmark:
        cell = view.table.cells(column).get(row.who)
        card = view.table.view.boards[column.benchmark].card
        best = cell is not None and cell.value == shared.bests.get(key)
        return measure_cell(cell, card, row.entry, best=best)
    assert column.value is not None
    value = column.value(row)
    if key in COSTS:
        return cost_cell(row.cost(key), key, _source(row, key))
    if key == "parameters":
        return size_cell(row.facts.parameters)
    of_orders = key == "orders" and isinstance(value, float)
    said = "" if value is None else share(float(value)) if of_orders else f"{value}"
    return TextCell(said, right=not column.words, title="" if said else "Not stated")


def _index_cell(key: str, row: MetricRow, shared: _Shared) -> ValueCell | TextCell:
    standing = shared.view.weighing.standings.get(row.who) if shared.view.weighing else None
    if standing is None or standing.rank is None:
        why = standing.note if standing else "none of the benchmarks of the index"
        return (
            ValueCell(None, reason=why)
            if key != BEST_SHARE
            else TextCell("", right=True, title=why)
        )
    if key == BEST_SHARE:
        return TextCell(share(standing.best_share), sort=f"{standing.best_share:g}", right=True)
    if key == BORDA:
        one, rank = standing.borda, standing.borda_rank
        return ValueCell(one.value, one.low, one.high, digits=2, rank=str(rank or ""))
    place = shared.index[row.who]
    ranks_shown = shared.ranking is None or shared.ranking.key != INDEX
    best = place.value == shared.bests.get(INDEX)
    return place_cell(place, shared.drawn.get(INDEX), ranks=ranks_shown, best=best)


def _results(row: MetricRow, shared: _Shared) -> list[tuple[str, str]]:
    """Its place on every benchmark, and in the index."""
    found = []
    if (place := shared.index.get(row.who)) is not None and shared.view.weighing:
        standing = shared.view.weighing.standings[row.who]
        lacks = [shared.view.weighing.base.titles[name] for name in standing.missing]
        said = place_words(place, shared.view.weighing.ranking.n_ranked)
        if lacks:
            said = f"{number(place.value)} without {', '.join(lacks)}: not compared with others"
        found.append(("Index", said))
    for name in shared.view.table.benchmarks:
        if (place := shared.places[name].get(row.who)) is not None:
            ranking = shared.view.table.ranking(name)
            said = f"{ranking.measure} {place_words(place, ranking.n_ranked)}"
            found.append((ranking.title, said))
    return found


def _costs(row: MetricRow) -> list[tuple[str, str]]:
    found = []
    for by in COSTS:
        if (cost := row.cost(by)) is not None:
            source = _source(row, by).lower()
            found.append(("Cost", f"{cost_words(cost, by)}{f', {source}' if source else ''}"))
    return found or [("Cost", "not stated")]


def _source(row: MetricRow, by: str) -> str:
    """Where a cost is from."""
    if by == USD:
        return PAID
    return flops_source(row.sent) if by == FLOPS else _devices(row)


def _devices(row: MetricRow) -> str:
    devices = row.used.devices if row.used else ()
    return f"Measured on {', '.join(devices)}"[:200] if devices else "Measured"


def _links(row: MetricRow, shared: _Shared) -> tuple[Link, ...]:
    """To a comparison on its first benchmark, to images where it fails, and to its paper."""
    found = []
    on = [name for name in shared.view.table.benchmarks if name in row.cells]
    lead = shared.view.table.lead
    on.sort(key=lambda name: name != lead)
    if on:
        found.append(Link("Compare", compare_address(on[0], row.cells[on[0]].entry_id)))
    public = next((name for name in on if shared.cards[name].answers_public), None)
    if public is not None:
        fails = items_address(public, a=row.cells[public].entry_id, show="failures")
        found.append(Link("Images where it fails", fails))
    found += [Link("Paper", row.facts.link)] if row.facts.link else []
    return (*found, *flag_links(row.sent))


def _chips(view: MetricsView) -> tuple[Link, ...]:
    query, found = view.query, []
    if query.words:
        found.append(Link(f"Name: {query.words[:60]}", query.link(words=""), go="un-q"))
    if query.method:
        found.append(Link(f"Method: {query.method}", query.link(method=""), go="un-method"))
    if query.access:
        found.append(Link(f"Access: {query.access}", query.link(access=""), go="un-access"))
    if query.cost is not None:
        said = f"Cost: under {cost_words(query.cost, view.by)}"
        found.append(Link(said, query.link(cost=None), go="un-cost"))
    return tuple(found)


def _weights(view: MetricsView) -> list[WeightField]:
    if view.weighing is None:
        boards = view.table.view.boards
        return [
            WeightField(f"w.{name}", boards[name].card.title, "1") for name in view.table.indexed
        ]
    base = view.weighing.base
    return [
        WeightField(
            f"w.{name}", base.boards[name].card.title, f"{weight:g}", base.boards[name].why_weight
        )
        for name, weight in view.weighing.choice.weights.items()
        if math.isfinite(weight)
    ]


def metrics_tab(context: Context, query: MetricsQuery) -> LiveContent:
    """What the tab shows."""
    view = context.reader.view()
    group = view.group(query.ratings)
    table = context.prepared_metrics.of(group)
    base = context.prepared.of(group) if needs_index(query, table) else None
    found = metrics_view(query, table, base)
    state = _canonical(found)
    chart = found.query.chart
    html = render(
        "metrics/overall.html",
        verdict=verdict_of(found),
        picks=picks_of(found),
        tabs=metric_tabs(view, "", ratings=query.ratings),
        data=kinds_of_data(view, query),
        simulated=any(board.card.simulated for board in group.boards.values()),
        chart=chart,
        charts=charts_of(found),
        cost=cost_chart(found.lead, table.costs(found.by), found.by) if not chart else None,
        cut=cut(found.lead) if not chart else "",
        lines=_lines(found),
        controls=controls_of(found),
        board=board_of(found),
        caption=_caption(found),
        shown=_row_counts(found),
        pages=pages_of(found),
        remarks=found.remarks,
        warnings=_warnings(found),
        data_href=_data(found),
        legend=legend_of(found),
        empty=not table.rows,
        nothing=table.rows and not found.kept,
        cite=cite(found, context.reader.revision()),
        scales=_scales(found),
        left_out=_left_out(found),
        how=bool(table.indexed),
        query=state,
    )
    return LiveContent(html, state.to_query(), "Metrics")


def activity_part(context: Context, query: MetricsQuery) -> LiveContent:
    """What stands below the table and takes a look at the audit log."""
    view = context.reader.view().group(query.ratings)
    lines, earlier = _log(context)
    return LiveContent(
        render("metrics/activity.html", lines=recent_activity(view, lines, earlier),
               now=context.clock())
    )  # fmt: skip


def cite(found: MetricsView, revision: Revision) -> Citation:
    """How the table of all metrics is cited."""
    boards = found.table.view.boards
    revisions = ", ".join(
        f"{boards[name].card.title} {boards[name].card.revision[:12]}"
        for name in found.table.benchmarks
    )
    title = "Metrics for text-to-image models"
    return Citation("assay-metrics", title, revision, work=f"Revisions: {revisions}.")


def _log(context: Context) -> tuple[Sequence[LogLine], Iterable[str]]:
    """The audit log and which earlier boards are kept; nothing during an outage."""
    view = context.reader.view()
    try:
        lines = context.audit_log.read().lines
        return lines, with_earlier(view, context.cards, context.earlier.tags)
    except TransientError:
        return (), ()


def _canonical(found: MetricsView) -> MetricsQuery:
    """The state with weights named as soon as one differs from those to begin with."""
    if found.weighing is None:
        return replace(found.query, weights="")
    weighing = found.weighing
    return replace(found.query, weights=weighing.choice.changed_weights(weighing.base.boards))


def _data(found: MetricsView) -> str:
    query = _canonical(found)
    given = [f"w={query.weights}"] if query.weights else []
    given += [f"ratings={query.ratings}"] if query.ratings else []
    return f"./v1/index{'?' + '&'.join(given) if given else ''}"


def _caption(found: MetricsView) -> str:
    key, down = found.sort
    ranking = found.ordered
    if ranking is not None:
        return f"Metrics by benchmark, in the order of {ranking.title}"
    titles = {column.key: column.title for column in found.every_column}
    return f"Metrics by benchmark, sorted by {titles.get(key, 'name')}, {'highest' if down else 'lowest'} first"


def _row_counts(found: MetricsView) -> str:
    """`26 metrics · 12 ranked`; with a filter how many are left."""
    n = len(found.table.rows)
    if found.query.filters:
        return f"{found.kept:,} of {count(n, 'metric')}"
    ranked = len(found.lead.ranked_metrics) if found.lead else 0
    return f"{count(n, 'metric')} · {ranked:,} ranked"


def _lines(found: MetricsView) -> object:
    if found.query.chart == "ranks":
        return rank_chart(found.table, found.lead)
    return skill_chart(found.table, found.lead) if found.query.chart == "skills" else None


def _warnings(found: MetricsView) -> tuple[tuple[str, str], ...]:
    """What misleads in the index under these weights."""
    if found.weighing is None:
        return ()
    base = found.weighing.base
    chosen = [base.boards[name] for name, weight in found.weighing.choice.weights.items() if weight]
    said = [
        (f"{board.card.title} shares its images with another benchmark.",
         "With a weight for both they count twice, and the intervals are too narrow.")
        for board in chosen if not board.card.simulated and board.why_weight
    ]  # fmt: skip
    said += [
        (f"No joint resamples of {board.card.title}.",
         f"{base.unjoined[board.card.name].capitalize()}, so metrics that have it are shown without an interval.")
        for board in chosen if board.card.name in base.unjoined
    ]  # fmt: skip
    return tuple(said)


def _scales(found: MetricsView) -> tuple[tuple[str, ...], ...]:
    """Scales of the benchmarks of the index: title, headline, chance, ceiling, what, source, note."""
    boards = found.table.index_boards
    base = found.weighing.base if found.weighing else None
    rows = []
    for name, board in boards.items():
        remark = base.unjoined.get(name, "") if base else ""
        notes = "; ".join(part for part in (board.why_weight, remark) if part)
        rows.append(
            (
                name, board.card.title, info(board.card, board.card.headline.measure).title,
                exact(board.scale.chance), exact(board.scale.ceiling), board.scale.ceiling_is,
                board.scale.source, f"Weight {board.weight:g}: {notes}." if notes else "",
            )
        )  # fmt: skip
    return tuple(rows)


def _left_out(found: MetricsView) -> tuple[tuple[str, str], ...]:
    """Benchmarks that are not in the index, with the reason; those without results last."""
    boards = found.table.view.boards
    pairs = [(boards[name].card.title, why) for name, why in found.table.left_out.items()]
    return tuple(sorted(pairs, key=lambda pair: pair[1] == NO_RESULTS))


def exact(value: float) -> str:
    """As a card states it: 0.696412 is not 0.696."""
    return f"{value:.6g}".replace("-", "−")
