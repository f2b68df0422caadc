"""Table of all metrics over benchmarks: rows, columns, and what is kept of them for each view."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from benchmarks.schema import Selector
from leaderboard.publication.entries import (
    Entry,
    Identity,
    entries_of_each,
    flags_of,
    latest_cells,
    latest_entries,
)
from leaderboard.publication.index import (
    IndexBase,
    IndexBoard,
    PlainIndex,
    Ranked,
    index_boards,
    plain_index,
    rescaled,
)
from leaderboard.publication.measure_names import info, title, token
from leaderboard.publication.metric_facts import MetricFacts, facts_of
from leaderboard.publication.reader import View, headline_cells
from leaderboard.publication.skill_names import Skill, common_names, skills_of
from leaderboard.ranking.cells import Cell
from leaderboard.text import count
from leaderboard.views.rankings import Ranking, board_ranking
from leaderboard.views.skills import (
    COSTS,
    FLOPS,
    MEMORY,
    SECONDS,
    USD,
    RunCost,
    measured_part,
    spent,
)

_KEPT_WEIGHTS = 8
_MOST_SPLITS = 4
BORDA, BEST_SHARE = "borda", "best_share"
Key = float | str | None


@dataclass(frozen=True)
class MetricRow:
    """One metric over all benchmarks."""

    who: Identity  # what tells it from others
    entry: Entry  # the latest of its entries
    facts: MetricFacts  # what papers state of it
    cells: Mapping[str, Cell]  # benchmark to its headline cell
    sent: tuple[Entry, ...]  # all of its entries
    used: RunCost | None  # what its runs used; None where nothing is known
    # mean of (rank - 1/2) / metrics over its boards, 0 (best) to 1 (worst); None where it
    # has no rank
    relative: float | None = None
    # index over benchmarks with equal weights, and the benchmarks it rests on; None where
    # it has none of them
    index: PlainIndex | None = None

    def cost(self, by: str) -> float | None:
        """A cost, a key of `COSTS`: FLOPs, seconds or USD for 1,000 pairs, or GiB; None: not known."""
        if by == FLOPS:
            declared = self.used.flops if self.used else None
            return self.facts.flops_per_pair if declared is None else declared
        return self.used.by(by) if self.used else None


def metric_rows(view: View) -> list[MetricRow]:
    """Every published metric, the best first among those on the same benchmarks of the index.

    Metrics with the most benchmarks of the index come first; without any, those on the same
    boards stand together by their mean relative place. Metrics of different boards were never
    compared, so the order tells nothing between such groups. Without any rank they come last.
    """
    cells: dict[Identity, dict[str, Cell]] = {}
    places: dict[Identity, list[float]] = {}
    for name, board in view.boards.items():
        ranking = headline_cells(board)
        ranked = sum(cell.rank is not None for cell in ranking)
        for who, cell in latest_cells(ranking, view.entries).items():
            cells.setdefault(who, {})[name] = cell
            if cell.rank is not None:
                places.setdefault(who, []).append((cell.rank - 0.5) / ranked)
    sent = entries_of_each(view.entries.values())
    indices = plain_index(index_boards(view.boards, view.entries)[0])
    found = [
        MetricRow(
            who=who,
            entry=entry,
            facts=facts_of(entry),
            cells=cells.get(who, {}),
            sent=sent[who],
            used=spent(sent[who], ()),
            relative=fmean(places[who]) if who in places else None,
            index=indices.get(who),
        )
        for who, entry in latest_entries(view.entries.values()).items()
    ]
    return sorted(found, key=lambda row: _order(row, tuple(view.boards)))


_Order = tuple[bool, int, tuple[bool, ...], float, float, str]


def _order(row: MetricRow, boards: Sequence[str]) -> _Order:
    # With an index its benchmarks make the group, whatever other boards a metric is on.
    group = row.cells if row.index is None else row.index.boards
    return (
        row.relative is None,
        0 if row.index is None else -len(row.index.boards),
        tuple(name not in group for name in boards),
        0.0 if row.index is None else -row.index.value,
        row.relative or 0.0,
        row.entry.metric.casefold(),
    )


@dataclass(frozen=True)
class MetricColumn:
    """A column of the table."""

    key: str  # in addresses
    title: str  # its heading
    note: str = ""  # a second line
    benchmark: str = ""  # whose measure it is; empty for a fact of the metric
    selector: Selector | None = None  # the measure; None likewise
    words: bool = False  # whether it holds text; else numbers
    group: str = ""  # what it is listed under in the choice of columns
    # of a row, as the column is sorted by; None of the index, which depends on weights
    value: Callable[[MetricRow], Key] | None = None


FACTS = (
    MetricColumn(FLOPS, "FLOPs", "per pair, stated", group="Cost", value=lambda r: r.cost(FLOPS)),
    MetricColumn(SECONDS, "Seconds", "per 1,000 pairs", group="Cost",
                 value=lambda r: r.cost(SECONDS)),
    MetricColumn(MEMORY, "Memory", "GiB, peak", group="Cost", value=lambda r: r.cost(MEMORY)),
    MetricColumn(USD, "USD", "per 1,000 pairs", group="Cost", value=lambda r: r.cost(USD)),
    MetricColumn("access", "Access", group="Metric", words=True, value=lambda r: r.facts.access),
    MetricColumn("backbone", "Backbone", group="Metric", words=True,
                 value=lambda r: r.facts.backbone),
    MetricColumn("parameters", "Parameters", "of the backbone", group="Metric",
                 value=lambda r: r.facts.parameters),
    MetricColumn("year", "Year", group="Metric", value=lambda r: r.facts.year),
    MetricColumn("method", "Method", group="Metric", words=True, value=lambda r: r.facts.method),
    MetricColumn("orders", "Both orders", "of two images agree", group="Metric",
                 value=lambda r: r.entry.orders_alike),
    MetricColumn("paper", "Paper", group="Metric", words=True, value=lambda r: r.facts.paper),
    MetricColumn("version", "Version", group="Metric", words=True, value=lambda r: r.entry.version),
    MetricColumn("submitter", "Submitter", group="Metric", words=True,
                 value=lambda r: r.entry.submitter),
    MetricColumn("published", "Published", group="Metric", words=True,
                 value=lambda r: f"{r.entry.published_at:%Y-%m-%d}"),
)  # fmt: skip
"""Facts of metrics; a column that no row fills is not offered."""
_NOT_AT_FIRST = {MEMORY, "paper", "version", "submitter", "published"}


@dataclass(eq=False)
class MetricTable:
    """What no choice changes, of one view of boards that may be compared."""

    view: View  # boards and entries; see `View.group`
    rows: tuple[MetricRow, ...]  # in the order of `metric_rows`
    benchmarks: tuple[str, ...]  # those with results, in the order of display
    index_boards: Mapping[str, IndexBoard]  # the benchmarks of the index
    left_out: Mapping[str, str]  # those that are not in it, with the reason
    indexed: tuple[str, ...]  # benchmarks of the index that weigh something to begin with
    whole: int  # how many metrics have all of these
    _rankings: dict[str, Ranking] = field(default_factory=dict)
    _cells: dict[tuple[str, Selector], Mapping[Identity, Cell]] = field(default_factory=dict)
    _weighed: OrderedDict[tuple[tuple[str, float], ...], tuple[Ranked, ...]] = field(
        default_factory=OrderedDict
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, view: View) -> MetricTable:
        """Read the headlines of all boards."""
        rows = tuple(metric_rows(view))
        boards, left_out = index_boards(view.boards, view.entries)
        indexed = tuple(name for name, board in boards.items() if board.weight)
        whole = sum(len(one.boards) == len(indexed) for one in plain_index(boards).values())
        filled = tuple(name for name, board in view.boards.items() if headline_cells(board))
        return cls(view, rows, filled, boards, left_out, indexed, whole)

    @cached_property
    def lead(self) -> str:
        """The benchmark whose headline has most metrics ranked, of equals most clusters.

        Empty where nothing is published.
        """

        def size(name: str) -> tuple[int, int]:
            cells = headline_cells(self.view.boards[name])
            ranked = sum(cell.rank is not None for cell in cells)
            return ranked, max(cell.n_clusters for cell in cells)

        return max(self.benchmarks, key=size, default="")

    @property
    def has_index(self) -> bool:
        """Whether the index orders anybody to begin with: two metrics with two benchmarks."""
        return len(self.indexed) > 1 and self.whole > 1

    @cached_property
    def by_who(self) -> Mapping[Identity, MetricRow]:
        """Metric to its row."""
        return {row.who: row for row in self.rows}

    def ranking(self, benchmark: str) -> Ranking:
        """The headline of a benchmark as it is ordered there."""
        if benchmark not in self._rankings:
            board = self.view.boards[benchmark]
            self._rankings[benchmark] = board_ranking(board, self.view.entries)
        return self._rankings[benchmark]

    def cells(self, column: MetricColumn) -> Mapping[Identity, Cell]:
        """The cells of a measure by metric."""
        assert column.selector is not None
        key = (column.benchmark, column.selector)
        if key not in self._cells:
            found = self.view.boards[column.benchmark].cells(column.selector, None)
            self._cells[key] = latest_cells(found, self.view.entries)
        return self._cells[key]

    def weighed(self, base: IndexBase, weights: Mapping[str, float]) -> tuple[Ranked, ...]:
        """The index under weights; kept for the latest ones."""
        key = tuple(sorted(weights.items()))
        with self._lock:
            if key not in self._weighed:
                self._weighed[key] = base.index_ranks(weights)
            self._weighed.move_to_end(key)
            while len(self._weighed) > _KEPT_WEIGHTS:
                self._weighed.popitem(last=False)
            return self._weighed[key]

    @cached_property
    def columns(self) -> tuple[MetricColumn, ...]:
        """Every column that holds anything: headlines, further measures, then facts."""
        ordered = sorted(self.benchmarks, key=lambda name: name != self.lead)
        headlines = [self._headline(name) for name in ordered]
        further = [one for name in ordered for one in self._further(name)]
        facts = [one for one in FACTS if one.value and any(map(one.value, self.rows))]
        return (*headlines, *further, *facts)

    @cached_property
    def index_columns(self) -> tuple[MetricColumn, ...]:
        """The columns of the index: its value, how often it is the best, and Borda’s count."""
        return (
            MetricColumn("index", "Index", "0 chance, 1 the ceilings", group="Index"),
            MetricColumn(BEST_SHARE, "Best in", "share of resamples", group="Index"),
            MetricColumn(BORDA, "Borda", "share of comparisons", group="Index"),
        )

    @cached_property
    def first_columns(self) -> tuple[str, ...]:
        """Keys of the columns to begin with."""
        lead = [one.key for one in self._splits(self.lead)] if self.lead else []
        heads = [name for name in self.benchmarks if name != self.lead]
        facts = [one.key for one in FACTS if one in self.columns and one.key not in _NOT_AT_FIRST]
        return (self.lead, *lead, *heads, *facts) if self.lead else ()

    @cached_property
    def by(self) -> str:
        """The cost that is known of most metrics of the leading benchmark."""
        on = [row for row in self.rows if not self.lead or self.lead in row.cells]
        return max(COSTS, key=lambda by: sum(row.cost(by) is not None for row in on))

    def costs(self, by: str) -> Mapping[Identity, float]:
        """The metrics whose cost is known."""
        found = ((row.who, row.cost(by)) for row in self.rows)
        return {who: cost for who, cost in found if cost is not None}

    def stated(self, fact: str) -> tuple[str, ...]:
        """What is stated of any metric: the values of `method` or `access`."""
        return tuple(sorted({value for row in self.rows if (value := getattr(row.facts, fact))}))

    @cached_property
    def skills(self) -> tuple[Skill, ...]:
        """The skills with a common name that have results; else those of single benchmarks."""
        known = skills_of(self.view.boards)
        named = tuple(skill for key, skill in known.items() if key in common_names())
        return named or tuple(known.values())

    @cached_property
    def skill_means(self) -> Mapping[str, Mapping[Identity, float]]:
        """Skill to the mean of the rescaled values of each metric that has all of its parts."""
        return {skill.key: self._means(skill) for skill in self.skills}

    def _means(self, skill: Skill) -> Mapping[Identity, float]:
        parts = [measured_part(self.view, part) for part in skill.parts]
        weighed = [(one.able, one.scale) for one in parts if not one.why_out and one.scale]
        if not weighed:
            return {}
        whole = set.intersection(*(set(able) for able, _ in weighed))
        return {
            who: fmean(rescaled(able[who], scale).value for able, scale in weighed) for who in whole
        }

    def _headline(self, name: str) -> MetricColumn:
        board = self.view.boards[name]
        cells = headline_cells(board)
        about = info(board.card, cells[0].measure)
        n = count(max(cell.n_clusters for cell in cells), board.card.cluster)
        return MetricColumn(
            name, self.view.short_titles[name], f"{about.title} · {n}", name, cells[0].selector,
            group=board.card.title, value=lambda row: _value(row.cells.get(name)),
        )  # fmt: skip

    def _further(self, name: str) -> tuple[MetricColumn, ...]:
        board = self.view.boards[name]
        headline = self._headline(name).selector
        splits = {one.key: one for one in self._splits(name)}
        found = []
        for selector in board.selectors(None):
            key = f"{name}/{token(selector)}"
            if selector == headline:
                continue
            found.append(splits.get(key) or self._measure(name, selector))
        return tuple(found)

    def _splits(self, name: str) -> tuple[MetricColumn, ...]:
        """The headline's measure on every other split or facet; none where they are many."""
        board = self.view.boards[name]
        headline = self._headline(name).selector
        assert headline is not None
        same = [
            one
            for one in board.selectors(None)
            if (one.measure, one.variant) == (headline.measure, headline.variant)
        ]
        others = [one for one in same if one != headline]
        if len(others) > _MOST_SPLITS:
            return ()
        about = info(board.card, headline.measure).title
        found = []
        for one in others:
            named = title(board.card, one, same).removeprefix(about).strip(" ·") or about
            found.append(self._measure(name, one, named))
        return tuple(found)

    def _measure(self, name: str, selector: Selector, named: str = "") -> MetricColumn:
        board = self.view.boards[name]
        shown = named or title(board.card, selector, board.every_selector())
        column = MetricColumn(
            f"{name}/{token(selector)}", shown, self.view.short_titles[name], name, selector,
            group=board.card.title,
            value=lambda row: _value(self.cells(column).get(row.who)),
        )  # fmt: skip
        return column


def flag_labels(rows: Iterable[MetricRow]) -> dict[str, tuple[str, ...]]:
    """Flags of some metrics, as `flags_of` names them."""
    return flags_of(entry for row in rows for entry in row.sent)


def _value(cell: Cell | None) -> float | None:
    return None if cell is None else cell.value
