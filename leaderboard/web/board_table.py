"""Table of one ranking: its columns and rows as the templates print them, and its legend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.schema import Card, MeasureInfo
from leaderboard.publication.entries import (
    MEANINGS,
    Entry,
    RankCount,
    count_ranked,
    flags_of,
    is_trained_on,
    origin,
    signature_text,
)
from leaderboard.publication.metric_facts import metric_name, metric_title
from leaderboard.ranking.cells import Cell, cell_at_or_below_chance, cell_beats_chance, chance_of
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from leaderboard.ranking.slices import Basis
from leaderboard.rendering import escaped
from leaderboard.text import count, interval, number, rate, usd
from leaderboard.views.addresses import compare_address, metric_address
from leaderboard.views.badges import badges_of
from leaderboard.views.benchmark_board import window
from leaderboard.views.boards import FLOPS, MOST_PINS, OWN, USD, Layout, Values, pin_in_query
from leaderboard.views.figures import estimate, rank_range
from leaderboard.views.skills import GIGA
from leaderboard.web.components import Link, Scale, Sorted, ValueCell
from leaderboard.web.components import Values as Printed
from leaderboard.web.metric_parts import share

METHODS = {"bca": "BCa (bias-corrected and accelerated)", "percentile": "percentile"}
SPEED = "cost:pairs_per_s"
"""Key of the one cost that every table shows."""
_ENTRY = "0ENTRY0"


@dataclass(frozen=True)
class Heading:
    """A heading of a column that sorts by it."""

    title: str  # its name
    note: str = ""  # a second line
    hint: str = ""  # on hover
    href: str = ""  # address of the view sorted by it; empty where it cannot be sorted
    go: str = ""  # name of that link
    sorted: Sorted = ""  # how the table is sorted by it
    right: bool = True  # whether its values stand at the right


Figure = tuple[str, str, str, bool]
"""A cell of a chosen column: text, what is said on hover, address of its items, whether words."""


def board_table(
    cells: Sequence[Cell],
    entries: Mapping[str, Entry],
    card: Card,
    measure: MeasureInfo,
    caption: str,
    *,
    layout: Layout | None = None,
    places: Mapping[str, int] | None = None,
    ranked: RankCount | None = None,
) -> Printed:
    """The table of a ranking."""
    layout, places = layout or Layout(), places or {}
    found = window(cells, layout)
    if ranked is None:
        ranked = count_ranked(cells, entries)
    rows = _Rows(cells, entries, card, layout, places=places, ranked=ranked)
    parts = [(label, [rows.row(cell) for cell in of]) for label, of in found.parts]
    chosen = chosen_columns(layout)
    gaps = any(cell.n_missing for cell in cells)
    arrow = f"{direction(measure.higher_is_better)} is better"
    heads = [_heading(layout, "place", "Rank in filter", sortable=False)] if places else []
    heads += [
        _heading(layout, "value", measure.title, f"95% interval, {arrow}", right=False,
                 higher=measure.higher_is_better, hint=measure.meaning),
        _heading(layout, "best_share", "Best in"),
        _heading(layout, "n", f"{card.cluster.capitalize()}s"),
        *([_heading(layout, "missing", "Missing", "scores", sortable=False)] if gaps else []),
        *(_further_heading(layout, one) for one in chosen),
        _heading(layout, SPEED, "Pairs/s", "scored here"),
    ]  # fmt: skip
    pins = layout.address is not None
    cut = found.pages > 1 and layout.address is not None

    def page_link(page: int, label: str) -> Link | None:
        if not cut or layout.address is None or not 1 <= page <= found.pages:
            return None
        return Link(label, layout.address(replace(layout.arranged, page=page)), label)

    return {
        "caption": caption,
        "by_rank": _heading(
            layout,
            "",
            "Rank",
            hint="Ranks that the tests leave open, of all metrics at once at 95%",
        ),
        "by_name": _heading(layout, "metric", "Metric", higher=False),
        "headings": heads,
        "parts": parts,
        "span": len(heads) + 1 + pins,
        "filtered": bool(places),
        "gaps": gaps,
        "pins": pins,
        "further": [(one.column.title, one.column.meaning) for one in chosen],
        "rows": f"{found.first:,}–{found.last:,} of {count(found.total, 'row')}" if cut else "",
        "earlier": page_link(found.page - 1, "Previous rows"),
        "later": page_link(found.page + 1, "Next rows"),
    }


def chosen_columns(layout: Layout) -> tuple[Values, ...]:
    """The columns beside those that every table has."""
    return tuple(one for one in layout.columns if one.column.key != SPEED)


def direction(higher_is_better: bool) -> str:
    """Which way is better, in a word."""
    return "higher" if higher_is_better else "lower"


class _Rows:
    """What all rows of a table share."""

    def __init__(
        self,
        cells: Sequence[Cell],
        entries: Mapping[str, Entry],
        card: Card,
        layout: Layout,
        *,
        places: Mapping[str, int],
        ranked: RankCount,
    ) -> None:
        chance = chance_of(card, cells[0].measure) if cells else None
        self.entries, self.card, self.layout = entries, card, layout
        self.places, self.ranked = places, ranked
        ends = (end for one in cells for end in (one.value, one.ci_low, one.ci_high))
        self.scale = Scale.around(ends, chance)
        one = cells[0] if cells else None
        # The items of a mean over skills are those of all skills.
        skill = one.skill if one and one.row >= 0 else None
        self._items = layout.items.column(skill, one.split) if layout.items and one else ""
        self._columns = [(values, self._items_of(values)) for values in chosen_columns(layout)]
        # The addresses are long where there are many columns, so they are put together once.
        address, arranged = layout.address, layout.arranged
        self._pin = address(arranged.pinned(_ENTRY)) if address else ""
        self._unfold = address(arranged.unfolding(_ENTRY)) if address else ""

    def row(self, cell: Cell) -> Printed:
        entry, card = self.entries[cell.entry_id], self.card
        name, beside = metric_title(entry)
        cost = entry.cost.get(card.name)
        hint = f"{metric_name(entry)} by {signature_text(entry)}"
        opened = cell.entry_id in self.layout.arranged.opened
        return {
            "cell": cell,
            "entry": entry,
            "name": name,
            "beside": beside,
            "hint": f"{hint}: {entry.description}" if entry.description else hint,
            "rank": rank_range(cell),
            "rank_hint": self._rank_hint(cell),
            "place": self._place(cell),
            "value": self.value(cell),
            "method": self._method(cell),
            "best_share": share(cell.best_share),
            "missing": share(cell.n_missing / max(cell.n_items + cell.n_missing, 1)),
            "figures": tuple(self._figure(values, items, cell) for values, items in self._columns),
            "speed": rate(cost.pairs_per_s) if cost else "–",
            "pin": self._pin_link(entry),
            "unfold": self._unfold_link(entry, opened),
            "details": self._details(cell, entry) if opened else None,
        }

    def value(self, cell: Cell) -> ValueCell:
        """The ranked value, marked where it is not above chance or was trained for."""
        entry, card = self.entries[cell.entry_id], self.card
        above = cell_beats_chance(card, cell)
        below = cell_at_or_below_chance(card, cell)
        return ValueCell(
            cell.value, cell.ci_low, cell.ci_high, scale=self.scale,
            trained=is_trained_on(entry, card), below=below,
            not_significant=above is False and cell.ci_low is not None and not below,
            reason=cell.note, href=self._link_of(self._items, cell),
        )  # fmt: skip

    def _place(self, cell: Cell) -> str:
        if not self.places:
            return ""
        return str(self.places[cell.entry_id]) if cell.entry_id in self.places else "–"

    def _rank_hint(self, cell: Cell) -> str:
        if cell.rank is None:
            return cell.why_unranked
        untested = "" if cell.tier is not None else "; not tested, so without a tier"
        return (
            f"Rank {cell.rank} of {self.ranked}; the tests leave {cell.rank_low} to {cell.rank_high} "
            f"open{untested}"
        )

    @staticmethod
    def _method(cell: Cell) -> str:
        if cell.ci_low is None:
            return "no interval"
        return f"95% interval, {METHODS.get(cell.ci_method or '', 'method not stored')}"

    def _items_of(self, values: Values) -> str:
        column, items = values.column, self.layout.items
        if items is None or column.selector is None:
            return ""
        return items.column(column.skill, column.selector.split)

    def _link_of(self, items: str, cell: Cell) -> str:
        of = self.layout.items
        return of.of_entry(items, of.entry(cell.entry_id)) if of is not None and items else ""

    def _figure(self, values: Values, items: str, row: Cell) -> Figure:
        if values.words:
            return escaped(values.words.get(row.entry_id, ""), limit=60), "", "", True
        cell, value = values.cells.get(row.entry_id), values.of(row.entry_id)
        if value is None:
            return "", escaped(cell.note, limit=200) if cell is not None else "", "", False
        if values.column.key == USD:
            return usd(value), "", "", False
        if cell is None:
            return rate(value) if value >= 0.05 else number(value, 2), "", "", False
        few = "" if cell.orderable else "; too few items to order"
        hint = f"95% interval {interval(cell.ci_low, cell.ci_high)}{few}"
        return number(value), hint, self._link_of(items, row), False

    def _pin_link(self, entry: Entry) -> Link | None:
        layout, entry_id = self.layout, entry.entry_id
        if layout.address is None:
            return None
        if entry_id in layout.arranged.pins:
            there = layout.address(layout.arranged.unpinned(entry_id))
            return Link("Unpin", there, f"unpin {entry_id}")
        return Link("Pin", self._pin.replace(_ENTRY, pin_in_query(entry_id)), f"pin {entry_id}")

    def _unfold_link(self, entry: Entry, opened: bool) -> Link | None:
        layout, entry_id = self.layout, entry.entry_id
        if layout.address is None:
            return None
        there = self._unfold.replace(_ENTRY, pin_in_query(entry_id))
        if opened:
            there = layout.address(layout.arranged.unfolding(entry_id))
        return Link("Details", there, f"open {entry_id}")

    def _details(self, cell: Cell, entry: Entry) -> Printed:
        card, cost = self.card, entry.cost.get(self.card.name)
        value = estimate(cell.value, cell.ci_low, cell.ci_high)
        tier = "none" if cell.tier is None else str(cell.tier)
        result = [
            ("Value", value if cell.value is not None else "–"),
            ("Interval", self._method(cell)),
            ("Rank", self._rank_hint(cell)),
            ("Best in", f"{share(cell.best_share)} of resamples"),
            ("Tier", tier),
            ("Items", f"{cell.n_items:,} in {cell.n_clusters:,} {card.cluster}s"),
        ]
        metric = [
            ("Submitter", signature_text(entry)),
            ("Version", entry.version or "not stated"),
            ("Scores", origin(entry) or "computed by Assay"),
            ("Trained on", ", ".join(entry.trained_on) or "nothing stated"),
            ("Published", f"{entry.published_at:%Y-%m-%d}"),
        ]
        flops = entry.flops_per_pair
        costs = [
            ("Speed", f"{rate(cost.pairs_per_s)} pairs per second" if cost else "not measured"),
            ("FLOPs per pair",
             "not stated" if flops is None else f"{number(flops / GIGA, 1)} G, declared"),
        ]  # fmt: skip
        if cost and cost.peak_memory_bytes:
            costs.append(("Memory", f"{cost.peak_memory_bytes / 2**30:.1f} GiB at most"))
        if cost and (price := cost.usd_per_1000_pairs) is not None:
            costs.append(("Price", f"{usd(price)} USD per 1,000 pairs"))
        links = [Link("Metric page", metric_address(entry.entry_id))]
        first = next((one for one in self.layout.arranged.pins if one != entry.entry_id), None)
        against = (entry.entry_id,) if first is None else (first, entry.entry_id)
        links.append(Link("Compare", compare_address(card.name, *against, **self.layout.compared)))
        if items := self._link_of(self._items, cell):
            links.append(Link("Items behind the value", items))
        facts = (result, (*metric, *costs))
        tags = badges_of(entry, cell, card)
        return {"facts": facts, "tags": tags, "links": links, "note": cell.note}


def pinned_links(layout: Layout, entries: Mapping[str, Entry]) -> tuple[Link, ...]:
    """Each pinned metric, with the address of the view in which it is not."""
    if layout.address is None:
        return ()
    return tuple(
        Link(
            metric_name(entries[pin]),
            layout.address(layout.arranged.unpinned(pin)),
            f"pinned {pin}",
        )
        for pin in layout.arranged.pins
    )


def compare_pinned(layout: Layout, card: Card) -> str:
    """The address of the comparison of what is pinned; empty for fewer than two."""
    pins = layout.arranged.pins[:MOST_PINS]
    return compare_address(card.name, *pins, **layout.compared) if len(pins) > 1 else ""


def flags_legend(entries: Iterable[Entry], benchmark: str) -> tuple[tuple[str, str], ...]:
    """Each flag that some of the entries have, and what it says."""
    met = flags_of(entries, {benchmark})
    return tuple((label, MEANINGS[label]) for label in MEANINGS if label in met)


def _heading(
    layout: Layout,
    key: str,
    title: str,
    note: str = "",
    *,
    hint: str = "",
    higher: bool = True,
    right: bool = True,
    sortable: bool = True,
) -> Heading:
    hint = hint or (OWN[key].meaning if key in OWN else "")
    arranged = layout.arranged
    sorted_: Sorted = ""
    if arranged.sorted_by == key and sortable:
        rises = (higher is arranged.worst_first) if key else True
        sorted_ = "ascending" if rises else "descending"
    if layout.address is None or not sortable:
        return Heading(title, note, hint, sorted=sorted_, right=right)
    there = layout.address(arranged.sorting(key))
    return Heading(title, note, hint, there, f"sort {key}", sorted_, right)


def _further_heading(layout: Layout, values: Values) -> Heading:
    column = values.column
    note = "declared" if column.key == FLOPS else ""
    return _heading(
        layout, column.key, column.title.removesuffix(", declared"),
        note or ("" if values.words else f"{direction(column.higher_is_better)} is better"),
        hint=column.meaning, higher=column.higher_is_better, right=not values.words,
    )  # fmt: skip


Line = tuple[str, str]
"""What is explained, and its explanation."""


def order_note(cells: Sequence[Cell], card: Card) -> Line | None:
    """What is said above a ranking whose values rest on too few clusters; None where none do."""
    few = sum(not cell.orderable for cell in cells)
    if not few:
        return None
    whose = "" if few == len(cells) else f" for {few} of {len(cells)} metrics"
    return (
        f"Too few items to order{whose}.",
        f"Fewer than {MIN_CLUSTERS} {card.cluster}s lie behind the values, so they are shown "
        "without ranks.",
    )


def legend(cells: Sequence[Cell], card: Card, basis: Basis, *, within: bool = False) -> list[Line]:
    """What the marks of a ranking mean, how ranges were made, and how tiers were tested."""
    chance = chance_of(card, cells[0].measure) if cells else None
    guess = "" if chance is None else f" Dashes: chance ({number(chance, 2)})."
    marks = f"dot: value; line: 95% interval (its method on hover).{guess}"
    lines: list[Line] = [("Marks", marks)]
    if any(cell.rank is not None for cell in cells):
        lines += [_ranks(card, basis, within=within), _tiers(cells, card, basis, within=within)]
    return lines


def _ranks(card: Card, basis: Basis, *, within: bool) -> Line:
    among = "among the metrics of the filter" if within else "among all metrics of the board"
    if basis.kept:
        said = f"95% range of the rank {among}, as it was when the board was kept."
    elif basis.n_pairs:
        said = f"ranks {among} that the tests leave open, all ranges at once at 95%."
    else:
        said = "nothing was tested here, so every rank is possible."
    best = (
        f" Best in: share of {basis.n_resamples:,} bootstrap resamples by {card.cluster} in which it "
        "has the best value; no probability that it is the best."
        if basis.n_resamples
        else ""
    )
    return "Rank range", f"{said}{best}"


def _tiers(cells: Sequence[Cell], card: Card, basis: Basis, *, within: bool) -> Line:
    if not basis.n_pairs:
        ranked = sum(cell.rank is not None for cell in cells)
        if ranked == 1:
            return "Tiers", "a single metric is ranked, so there is nothing to test."
        if basis.kept:
            return "Tiers", "kept for the headline of an earlier board only."
        return (
            "No tiers",
            f"these results were published without the contributions of {card.cluster}s from "
            "which metrics are tested against each other.",
        )
    if basis.kept:
        return "Tiers", "no two metrics of a tier differ significantly by the tests of that time."
    untested = sum(cell.rank is not None and cell.tier is None for cell in cells)
    left_out = (
        f" {count(untested, 'metric has', 'metrics have')} no stored contributions and "
        f"{'was' if untested == 1 else 'were'} not tested."
        if untested
        else ""
    )
    of = "of the filter" if within else "of the board"
    return (
        "Tiers",
        f"no two metrics of a tier differ significantly: paired permutation tests by "
        f"{card.cluster}, joint over the {count(basis.n_pairs, 'pair')} {of}, α = 0.05. "
        "A metric opens a new tier if it differs from one of the tier above; the first tier ends "
        f"before the first that is significantly worse than the best.{left_out}",
    )
