"""First tab of the Metrics place: which rows, in which order and groups, and what leads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from leaderboard.publication.identities import Identity, shown_account
from leaderboard.publication.index import IndexBase, Ranked
from leaderboard.ranking.index import Standing
from leaderboard.text import clean, count
from leaderboard.views.index import IndexChoice, IndexQuery, resolve_index
from leaderboard.views.metric_table import (
    BORDA,
    P_BEST,
    Key,
    MetricColumn,
    MetricRow,
    MetricTable,
)
from leaderboard.views.metrics_query import MetricsQuery
from leaderboard.views.rankings import INDEX, Ranking, index_ranking

PAGE_ROWS = 50  # Rows sent at a time; whatever is ranked, searched or sorted is all of them
NAME = "name"  # Key of the column of names
IN_FILTER = "in_filter"


@dataclass(frozen=True)
class Weighing:
    """The index as it is asked for."""

    base: IndexBase  # benchmarks and resamples
    choice: IndexChoice  # the weights
    standings: Mapping[Identity, Standing]  # metric to where it stands
    ranking: Ranking


@dataclass(frozen=True)
class RowGroup:
    """Rows under one heading."""

    tier: int | None  # its number; None for those that are in no tier
    title: str  # of rows without a tier where others have one; empty for none
    rows: tuple[MetricRow, ...]  # in their order
    size: int  # how many metrics the group has on all pages


@dataclass(frozen=True)
class MetricsView:
    """What the first tab shows."""

    query: MetricsQuery  # the exact state
    table: MetricTable  # what no choice changes
    weighing: Weighing | None  # the index; None where it is not looked at
    # the ranking that the verdict and the chart are of; None where nothing is published
    lead: Ranking | None
    # the ranking that rows are sorted by, so that its tiers hold; None for any other
    ordered: Ranking | None
    columns: tuple[MetricColumn, ...]  # those shown, after that of names
    groups: tuple[RowGroup, ...]  # of the page
    kept: int  # rows that no filter leaves out
    pages: int  # how many there are
    in_filter: Mapping[Identity, int]  # metric to its rank among those kept; empty without a filter
    by: str  # the cost that is looked at
    remarks: tuple[str, ...] = ()  # what was asked for and could not be shown

    @property
    def sort(self) -> tuple[str, bool]:
        """Key of the column that rows are sorted by, and whether the highest come first."""
        key = self.query.sorted_by or (self.lead.key if self.lead else NAME)
        if self.query.sort:
            return key, self.query.sort.startswith("-")
        return key, self.lead is not None and self.lead.higher_is_better

    @property
    def every_column(self) -> tuple[MetricColumn, ...]:
        """All that can be chosen."""
        return _every_column(self.table, self.weighing)


def metrics_view(query: MetricsQuery, table: MetricTable, base: IndexBase | None) -> MetricsView:
    """Find what a query asks for."""
    remarks: list[str] = []
    weighing = _weighing(query, table, base, remarks)
    lead = _lead(table, weighing)
    known = {column.key: column for column in _every_column(table, weighing)}
    query = _known(query, table, known, remarks)
    if set(query.columns) == set(_first_columns(table, weighing)):
        query = replace(query, columns=())
    if lead is not None and query.sort == f"{'-' if lead.higher_is_better else ''}{lead.key}":
        query = replace(query, sort="")
    by = query.by or table.by
    kept = [row for row in table.rows if _keeps(row, query, by)]
    key = query.sorted_by or (lead.key if lead else NAME)
    down = query.sort.startswith("-") if query.sort else (lead is None or lead.higher_is_better)
    ordered = _ordered(key, down=down, table=table, weighing=weighing)
    if ordered is not None:
        groups = _tiers(ordered, kept)
    else:
        groups = [
            RowGroup(None, "", tuple(_sorted(kept, key, known, weighing, down=down)), len(kept))
        ]
    pages = max(1, ceil(len(kept) / PAGE_ROWS))
    query = replace(query, page=min(query.page, pages))
    chosen = query.columns or _first_columns(table, weighing)
    in_filter: Mapping[Identity, int] = {}
    if query.filters and (ranking := ordered or lead) is not None:
        in_filter = _ranks_among(ranking, {row.who for row in kept})
    return MetricsView(
        query=query,
        table=table,
        weighing=weighing,
        lead=lead,
        ordered=ordered,
        columns=tuple(known[one] for one in chosen if one in known),
        groups=_page(groups, query.page),
        kept=len(kept),
        pages=pages,
        in_filter=in_filter,
        by=by,
        remarks=tuple(remarks),
    )


def needs_index(query: MetricsQuery, table: MetricTable) -> bool:
    """Whether the resamples of all benchmarks have to be read for a query."""
    if table.has_index or {query.sorted_by, *query.columns} & {INDEX, BORDA, P_BEST}:
        return True
    asked = resolve_index(IndexQuery(query.weights), table.index_boards, table.left_out)
    return bool(asked.remarks or asked.to_query(table.index_boards))


def _weighing(
    query: MetricsQuery, table: MetricTable, base: IndexBase | None, remarks: list[str]
) -> Weighing | None:
    if base is None or base.comparison is None:
        return None
    choice = resolve_index(IndexQuery(query.weights), base.boards, base.left_out)
    remarks += choice.remarks
    if not any(choice.weights.values()):
        remarks.append("All weights are 0. Give a weight to at least one benchmark.")
        return None
    found: Sequence[Ranked] = table.weighed(base, choice.weights)
    standings = {one.who: one.standing for one in found}
    return Weighing(base, choice, standings, index_ranking(found, base, choice.weights))


def _lead(table: MetricTable, weighing: Weighing | None) -> Ranking | None:
    """The index where it orders anybody and is asked for or there to begin with; else a board."""
    if weighing is not None and len(weighing.ranking.ranked) > 1:
        return weighing.ranking
    return table.ranking(table.lead) if table.lead else None


def _every_column(table: MetricTable, weighing: Weighing | None) -> tuple[MetricColumn, ...]:
    return (*(table.index_columns if weighing else ()), *table.columns)


def _first_columns(table: MetricTable, weighing: Weighing | None) -> tuple[str, ...]:
    return ((INDEX, P_BEST) if weighing else ()) + table.first_columns


def _known(
    query: MetricsQuery,
    table: MetricTable,
    known: Mapping[str, MetricColumn],
    remarks: list[str],
) -> MetricsQuery:
    """The query without what does not exist; what that is is said."""
    lost = [one for one in query.columns if one not in known]
    if lost:
        remarks.append(f"There is no column {_named(lost)} here.")
    if query.sort and query.sorted_by not in {*known, NAME, IN_FILTER}:
        remarks.append(f"There is no column {_named([query.sorted_by])} to sort by.")
        query = replace(query, sort="")
    for fact in ("method", "access"):
        asked = getattr(query, fact)
        if asked and asked not in table.stated(fact):
            remarks.append(f"No metric here states {fact} {_named([asked])}.")
            query = replace(query, method="") if fact == "method" else replace(query, access="")
    columns = tuple(one for one in query.columns if one in known)
    if query.by == table.by:
        query = replace(query, by="")
    here = set(table.view.entries)
    return replace(query, columns=columns, open=tuple(one for one in query.open if one in here))


def _keeps(row: MetricRow, query: MetricsQuery, by: str) -> bool:
    if query.method and row.facts.method != query.method:
        return False
    if query.access and row.facts.access != query.access:
        return False
    if query.cost is not None:
        cost = row.cost(by)
        if cost is None or cost > query.cost:
            return False
    if not query.terms:
        return True
    entry, facts = row.entry, row.facts
    named = (entry.metric, facts.title, facts.variant, facts.backbone, entry.submitter,
             shown_account(entry.account))  # fmt: skip
    words = [clean(one).casefold() for one in named]
    return any(term in word for term in query.terms for word in words)


def _ordered(
    key: str, *, down: bool, table: MetricTable, weighing: Weighing | None
) -> Ranking | None:
    """The ranking that is sorted by, best first."""
    found = None
    if key == INDEX and weighing is not None:
        found = weighing.ranking
    elif key in table.benchmarks:
        found = table.ranking(key)
    return found if found is not None and down is found.higher_is_better else None


def _tiers(ranking: Ranking, kept: Sequence[MetricRow]) -> list[RowGroup]:
    """The rows in the tiers of the whole ranking, then those without a rank in it."""
    rows = {row.who: row for row in kept}
    levels: dict[int | None, list[MetricRow]] = {}
    level: int | None = None
    for place in ranking.ranked:
        level = place.tier if place.tier is not None else level
        if place.who in rows:
            levels.setdefault(level, []).append(rows.pop(place.who))
    tested = ranking.tested > 1
    found = [
        RowGroup(tier if tested else None, "", tuple(of), len(of)) for tier, of in levels.items()
    ]
    if rows:
        on = "in the index" if ranking.key == INDEX else f"on {ranking.title}"
        heading = f"Not ranked {on}" if found else ""
        found.append(RowGroup(None, heading, tuple(rows.values()), len(rows)))
    return found


def _sorted(
    kept: Sequence[MetricRow], key: str, known: Mapping[str, MetricColumn],
    weighing: Weighing | None, *, down: bool,
) -> list[MetricRow]:  # fmt: skip
    """The rows by a column; those without a value last in both directions."""

    def value(row: MetricRow) -> Key:
        if key == NAME:
            return row.name.casefold()
        if key in {INDEX, BORDA, P_BEST}:
            return _of_index(row, key, weighing)
        column = known.get(key)
        return column.value(row) if column and column.value else None

    keyed = [(value(row), row) for row in kept]
    there = [(v, row) for v, row in keyed if v is not None and v != ""]
    missing = [row for v, row in keyed if v is None or v == ""]
    words = known[key].words if key in known else key == NAME
    there.sort(
        key=(lambda pair: str(pair[0]).casefold()) if words else (lambda pair: pair[0]),
        reverse=down,
    )
    return [*(row for _, row in there), *missing]


def _of_index(row: MetricRow, key: str, weighing: Weighing | None) -> float | None:
    standing = weighing.standings.get(row.who) if weighing else None
    if standing is None or standing.rank is None:
        return None
    value = {INDEX: standing.index.value, BORDA: standing.borda.value}.get(key, standing.p_best)
    return None if math.isnan(value) else value


def _ranks_among(ranking: Ranking, kept: set[Identity]) -> dict[Identity, int]:
    """The order of those kept by their rank on the whole board; nothing is tested anew."""
    there = sorted(
        (one for one in ranking.ranked if one.who in kept),
        key=lambda one: (one.ranks or (0, 0, 0))[1],
    )
    return {one.who: place for place, one in enumerate(there, 1)}


def _page(groups: Sequence[RowGroup], page: int) -> tuple[RowGroup, ...]:
    first, found = (page - 1) * PAGE_ROWS, []
    start = 0
    for group in groups:
        begin, end = max(first - start, 0), max(first + PAGE_ROWS - start, 0)
        if rows := group.rows[begin:end]:
            found.append(replace(group, rows=rows))
        start += len(group.rows)
    return tuple(found)


def _named(asked: Sequence[str]) -> str:
    shown = ", ".join(f"“{clean(one)[:40]}”" for one in asked[:3])
    return f"{shown} and {count(len(asked) - 3, 'more', 'more')}" if len(asked) > 3 else shown
