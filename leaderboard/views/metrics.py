"""Metrics place: its state in the address, the rows of its first tab, and of the tab of a skill."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from urllib.parse import quote, unquote

from leaderboard.publication.entries import Entry, Identity, shown_account
from leaderboard.publication.index import IndexBase, Ranked
from leaderboard.publication.metric_facts import metric_title
from leaderboard.publication.reader import View, known_group
from leaderboard.ranking.index import IndexRank
from leaderboard.text import clean, count
from leaderboard.views.addresses import ROWS_PAGE, items_address, page_number, query_of
from leaderboard.views.figures import by_value
from leaderboard.views.index import IndexChoice, resolve_index
from leaderboard.views.metric_table import (
    BEST_SHARE,
    BORDA,
    Key,
    MetricColumn,
    MetricRow,
    MetricTable,
)
from leaderboard.views.rankings import INDEX, MEAN, Ranking, index_ranking, skill_ranking
from leaderboard.views.skills import (
    COSTS,
    FLOPS,
    GIGA,
    SECONDS,
    Placed,
    SkillData,
    SkillsChoice,
    SkillsQuery,
    found_for,
    resolve,
)
from leaderboard.views.skills import Prepared as PreparedSkills

SKILL, BENCHMARK = "skill", "benchmark"  # Kinds of tabs beside the first one, as `skill:counting`
MOST_OPEN = 20
CHARTS = {"": "Cost", "ranks": "Ranks", "skills": "Skills"}
"""Drawings of the first tab: accuracy against cost, ranks over benchmarks, values over skills."""
_MOST_COLUMNS = 60
_LONGEST, _LONGEST_WORDS = 4_000, 200
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?(?:e[+-]?[0-9]{1,2})?", re.ASCII)
_WEIGHT = "w."  # Before the name of a benchmark: its weight, as the fields of a form give it


@dataclass(frozen=True)
class MetricsQuery:
    """The state of the Metrics place. Everything is as asked for, and may not exist."""

    # empty for the first, `skill:KEY,KEY`, `skill:` for the choice of one, or
    # `benchmark:NAME`
    tab: str = ""
    # key of a column, after `-` for the highest first; empty: best first by the ranking
    # that leads
    sort: str = ""
    # text in names of metrics, backbones, submitters or accounts; of several parted by
    # commas, any
    words: str = ""
    method: str = ""  # as `MetricFacts.method`; empty: any
    access: str = ""  # likewise
    by: str = ""  # which cost, a key of `COSTS`; empty: the one that is known of most metrics
    cost: float | None = None  # the highest that is shown, in FLOPs, seconds for 1,000 pairs or GiB
    columns: tuple[str, ...] = ()  # keys of the columns that are shown; empty: those to begin with
    weights: str = ""  # as `ts2:1,gecko:2`, of benchmarks and skills; empty: those to begin with
    open: tuple[str, ...] = ()  # entry ids of the rows that are unfolded
    chart: str = ""  # a key of `CHARTS`
    ratings: str = ""  # the group of boards, a key of `GROUPS`
    page: int = 1  # of the rows, from 1

    @classmethod
    def from_params(cls, params: Mapping[str, str]) -> MetricsQuery:
        """Read the parameters of an address, also of those that the index and skills had."""

        def text(name: str, limit: int = _LONGEST) -> str:
            return clean(params.get(name, "")[:limit]).strip()

        tab, words, by = text("tab"), text("skill", _LONGEST_WORDS), text("by", 20)
        by = by if by in COSTS else ""
        sort = text("sort", _LONGEST_WORDS)
        order = text("order", _LONGEST_WORDS)
        # A budget is in thousands of millions of operations, as the page of skills had it.
        bound = _positive(text("cost", 20))
        budget = _positive(text("budget", 20))
        if bound is None and budget is not None:
            bound = budget * GIGA if by == FLOPS else budget
        chart = text("chart", 10)
        return cls(
            tab=f"{SKILL}:{words}" if words and tab in {"", f"{SKILL}:"} else tab,
            sort=sort or ("name" if order == "name" else f"-{order}" if order else ""),
            words=text("q", _LONGEST_WORDS),
            method=text("method", _LONGEST_WORDS),
            access=text("access", _LONGEST_WORDS),
            by=by,
            cost=bound,
            columns=tuple(unquote(one) for one in _parts(text("cols")))[:_MOST_COLUMNS],
            weights=text("w") or _weights(params),
            open=tuple(unquote(one) for one in _parts(text("open")))[:MOST_OPEN],
            chart=chart if chart in CHARTS else "",
            ratings=known_group(text("ratings")),
            page=page_number(params, ROWS_PAGE),
        )

    def to_query(self) -> str:
        """The query string of exactly this state, with its question mark; empty at the start."""
        named: dict[str, str | int] = {
            "tab": self.tab,
            "ratings": self.ratings,
            "sort": self.sort,
            "q": self.words,
            "method": self.method,
            "access": self.access,
            "by": self.by,
            "cost": "" if self.cost is None else f"{self.cost:.6g}".replace("+", ""),
            "cols": ",".join(quote(one, safe="~:/") for one in self.columns),
            "w": self.weights,
            "chart": self.chart,
            "open": ",".join(quote(one, safe="~:/") for one in self.open),
            ROWS_PAGE: self.page,
        }
        return query_of(named)

    def link(self, **changes: object) -> str:
        """The address of a state that differs from this one, from its first page."""
        asked = replace(self, **{"page": 1, **changes})  # type: ignore[arg-type]
        return f"./{asked.to_query()}"

    @property
    def kind(self) -> str:
        """`skill`, `benchmark`, or empty for the first tab."""
        kind = self.tab.partition(":")[0]
        return kind if kind in {SKILL, BENCHMARK} else ""

    @property
    def named(self) -> str:
        """Which skill or benchmark."""
        return self.tab.partition(":")[2]

    @property
    def sorted_by(self) -> str:
        """Key of the column that rows are sorted by; empty: by the ranking that leads."""
        return self.sort.removeprefix("-")

    @property
    def terms(self) -> tuple[str, ...]:
        """What is searched for, each without regard to case."""
        return tuple(part.strip().casefold() for part in self.words.split(",") if part.strip())

    @property
    def filters(self) -> bool:
        """Whether anything may be left out."""
        return bool(self.terms or self.method or self.access or self.cost is not None)


def _parts(given: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in given.split(",") if part))


def _weights(params: Mapping[str, str]) -> str:
    """The weights that the fields of a form give; an emptied field is 0."""
    given = {
        clean(name.removeprefix(_WEIGHT)): value
        for name, value in params.items()
        if name.startswith(_WEIGHT)
    }
    return ",".join(f"{name}:{value or 0}" for name, value in given.items())[:_LONGEST]


def _positive(given: str) -> float | None:
    if not _NUMBER.fullmatch(given):
        return None
    value = float(given)
    return value if math.isfinite(value) and value > 0 else None


PAGE_ROWS = 50  # Rows sent at a time; whatever is ranked, searched or sorted is all of them
NAME = "name"  # Key of the column of names
IN_FILTER = "in_filter"


@dataclass(frozen=True)
class Weighing:
    """The index as it is asked for."""

    base: IndexBase  # benchmarks and resamples
    choice: IndexChoice  # the weights
    standings: Mapping[Identity, IndexRank]  # metric to where it stands
    ranking: Ranking


@dataclass(frozen=True)
class RowGroup:
    """Rows under one heading."""

    tier: int | None  # its number; None for those that are in no tier
    title: str  # of rows without a tier where others have one; empty for none
    rows: tuple[MetricRow, ...]  # in their order
    size: int  # how many metrics the group has on all pages
    whole: int = 0  # how many its tier has without filters; 0 where it is no tier


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
        groups = [RowGroup(None, "", _sorted(kept, key, known, weighing, down=down), len(kept))]
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
    if table.has_index or {query.sorted_by, *query.columns} & {INDEX, BORDA, BEST_SHARE}:
        return True
    asked = resolve_index(query.weights, table.index_boards, table.left_out)
    return bool(asked.remarks or asked.changed_weights(table.index_boards))


def _weighing(
    query: MetricsQuery, table: MetricTable, base: IndexBase | None, remarks: list[str]
) -> Weighing | None:
    if base is None or base.comparison is None:
        return None
    choice = resolve_index(query.weights, base.boards, base.left_out)
    remarks += choice.remarks
    if not any(choice.weights.values()):
        remarks.append("All weights are 0. Give a weight to at least one benchmark.")
        return None
    found: Sequence[Ranked] = table.weighed(base, choice.weights)
    standings = {one.who: one.standing for one in found}
    ranking = index_ranking(found, base, choice.weights)
    if not ranking.ranked:
        weighty = [base.titles[name] for name, weight in choice.weights.items() if weight]
        remarks.append(
            f"No metric has results on all of {', '.join(weighty)}, so there is no index."
        )
    return Weighing(base, choice, standings, ranking)


def _lead(table: MetricTable, weighing: Weighing | None) -> Ranking | None:
    """The index where it orders anybody and is asked for or there to begin with; else a board."""
    if weighing is not None and len(weighing.ranking.ranked) > 1:
        return weighing.ranking
    return table.ranking(table.lead) if table.lead else None


def _every_column(table: MetricTable, weighing: Weighing | None) -> tuple[MetricColumn, ...]:
    return (*(table.index_columns if weighing else ()), *table.columns)


def _first_columns(table: MetricTable, weighing: Weighing | None) -> tuple[str, ...]:
    return ((INDEX, BEST_SHARE) if weighing else ()) + table.first_columns


def _known(
    query: MetricsQuery, table: MetricTable, known: Mapping[str, MetricColumn], remarks: list[str]
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
    whole: Counter[int | None] = Counter()
    level: int | None = None
    for place in ranking.ranked_metrics:
        level = place.tier if place.tier is not None else level
        whole[level] += 1
        if place.who in rows:
            levels.setdefault(level, []).append(rows.pop(place.who))
    tested = ranking.tested > 1
    found = [
        RowGroup(tier if tested else None, "", tuple(of), len(of), whole[tier])
        for tier, of in levels.items()
    ]
    if rows:
        on = "in the index" if ranking.key == INDEX else f"on {ranking.title}"
        heading = f"Not ranked {on}" if found else ""
        found.append(RowGroup(None, heading, tuple(rows.values()), len(rows)))
    return found


def _sorted(
    kept: Sequence[MetricRow], key: str, known: Mapping[str, MetricColumn],
    weighing: Weighing | None, *, down: bool,
) -> tuple[MetricRow, ...]:  # fmt: skip
    """The rows by a column; text without regard to case."""

    def value(row: MetricRow) -> Key:
        if key == NAME:
            return metric_title(row.entry)[0].casefold()
        if key in {INDEX, BORDA, BEST_SHARE}:
            return _of_index(row, key, weighing)
        column = known.get(key)
        found = column.value(row) if column and column.value else None
        return found.casefold() if isinstance(found, str) else found

    return by_value(kept, value, down=down)


def _of_index(row: MetricRow, key: str, weighing: Weighing | None) -> float | None:
    standing = weighing.standings.get(row.who) if weighing else None
    if standing is None or standing.rank is None:
        return None
    value = {INDEX: standing.index.value, BORDA: standing.borda.value}.get(key, standing.best_share)
    return None if math.isnan(value) else value


def _ranks_among(ranking: Ranking, kept: set[Identity]) -> dict[Identity, int]:
    """The order of those kept by their rank on the whole board; nothing is tested anew."""
    there = sorted(
        (one for one in ranking.ranked_metrics if one.who in kept),
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


@dataclass(frozen=True)
class SkillView:
    """What the tab of a skill shows."""

    query: MetricsQuery  # the exact state
    choice: SkillsChoice  # skills, weights and budget
    found: SkillData | None  # what is known of them; None where no skill is chosen
    ranking: Ranking | None  # the weighted means
    ranked: tuple[Placed, ...]  # rows with a rank, in the order that is asked for
    lacking: tuple[Placed, ...]  # rows that lack a benchmark, likewise
    by: str  # the cost that is looked at
    everyone: int  # how many metrics there are before the filter

    @property
    def sort(self) -> tuple[str, bool]:
        """Key of the column that rows are sorted by, and whether the highest come first."""
        if not self.query.sort:
            return MEAN, True
        return self.query.sorted_by, self.query.sort.startswith("-")

    @property
    def best_affordable(self) -> Placed | None:
        """The best within the bound; without one, the cheapest that may be as good as the best."""
        return self.found.affordable(self.choice.bound) if self.found else None


def skill_view(query: MetricsQuery, view: View, prepared: PreparedSkills) -> SkillView:
    """Find what a query asks for."""
    by = query.by or SECONDS
    bound = query.cost
    budget = "" if bound is None else f"{bound / (GIGA if by == FLOPS else 1.0):.12g}"
    asked = SkillsQuery(query.named, query.weights, by, budget, query.ratings)
    choice = resolve(asked, view.boards)
    exact = MetricsQuery(
        tab=f"{SKILL}:{','.join(one.key for one in choice.skills)}",
        sort=query.sort,
        words=query.words,
        by="" if choice.cost == SECONDS else choice.cost,
        cost=bound if choice.budget is not None else None,
        weights=choice.query.weights,
        open=query.open,
        ratings=choice.ratings,
    )
    if not choice.skills:
        return SkillView(exact, choice, None, None, (), (), choice.cost, 0)
    found = found_for(choice, prepared.of(view, choice.parts))
    keys = {MEAN, NAME, BEST_SHARE, *COSTS, *found.base.measured}
    if query.sorted_by not in keys or query.sort == f"-{MEAN}":
        exact = replace(exact, sort="")
    kept = [one for one in found.placed if _is_named(one.entry, exact.terms)]
    ranked = [one for one in kept if one.standing.rank is not None]
    lacking = [one for one in kept if one.standing.rank is None]
    return SkillView(
        exact, choice, found, skill_ranking(found, choice.title.lower()),
        _in_order(ranked, exact, found), _in_order(lacking, exact, found), choice.cost, len(found.placed),
    )  # fmt: skip


def fails_at(placed: Placed, found: SkillData) -> tuple[tuple[str, str], ...]:
    """Title of a benchmark and the address of the images where a metric fails there.

    Those with a weight come first; benchmarks whose answers are not public are left out.
    """
    links: list[tuple[bool, str, str]] = []
    for name in sorted(found.base.measured, key=lambda one: not found.weights.get(one)):
        one = found.base.measured[name]
        cell = one.able.get(placed.who)
        if cell is not None and one.card.answers_public and name in found.weights:
            to = items_address(one.card.name, skill=one.part.key, a=cell.entry_id, show="failures")
            links.append((found.weights[name] > 0, one.card.title, to))
    return tuple((title, to) for _, title, to in links)


def _is_named(entry: Entry, terms: Sequence[str]) -> bool:
    words = [clean(one).casefold() for one in (entry.metric, *metric_title(entry), entry.submitter)]
    return not terms or any(term in word for term in terms for word in words)


def _in_order(rows: Sequence[Placed], query: MetricsQuery, found: SkillData) -> tuple[Placed, ...]:
    """By the column that is asked for."""
    if not query.sort:
        return tuple(rows)
    key = query.sorted_by
    return by_value(rows, lambda one: _value(one, key, found), down=query.sort.startswith("-"))


def _value(one: Placed, key: str, found: SkillData) -> float | str | None:
    if key == NAME:
        return metric_title(one.entry)[0].casefold()
    if key in COSTS:
        return one.cost(key)
    if key in {BEST_SHARE, MEAN}:
        value = one.standing.best_share if key == BEST_SHARE else one.value
        return None if math.isnan(value) else value
    cell = found.base.measured[key].able.get(one.who)
    return cell.value if cell is not None else None
