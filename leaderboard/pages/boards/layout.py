"""Inputs of a ranking's rows beside the ranking: columns, pins, links, and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from urllib.parse import quote

from benchmarks.schema import Card
from leaderboard.pages.boards.arrangement import Arrangement
from leaderboard.pages.boards.columns import Values
from leaderboard.pages.shown.addresses import items_address
from leaderboard.pages.shown.markup import text
from leaderboard.pages.shown.tiers import Group, groups
from leaderboard.ranking.cells import Cell

PAGE_ROWS = 100
"""Rows sent at a time; whatever is ranked, searched or sorted is all of them."""
_ENTRY = "0ENTRY0"


@dataclass(frozen=True)
class Layout:
    """How a ranking is laid out; without arguments it is the plain ranking without links.

    Attributes:
        arranged: what was asked for.
        columns: the further columns with their values.
        address: of the same view laid out otherwise; None where it cannot be (a kept board).
        compared: skill and measure of the view, for the page that compares.
        items: HTML address of the items behind a value of an entry, by skill and split; None
            where a benchmark's answers are not public, so that there is nothing to look at.
    """

    arranged: Arrangement = field(default_factory=Arrangement)
    columns: tuple[Values, ...] = ()
    address: Callable[[Arrangement], str] | None = None
    compared: Mapping[str, str] = field(default_factory=dict)
    items: ItemLinks | None = None


@dataclass(frozen=True)
class ItemLinks:
    """Addresses of the items behind values, made once for a column and filled in for each row."""

    benchmark: str

    @classmethod
    def of(cls, card: Card) -> ItemLinks | None:
        """Those of a benchmark; None where its items are not public."""
        return cls(card.name) if card.answers_public else None

    def column(self, skill: str | None, split: str | None) -> str:
        """The address for one column, to be given to `of_entry`; escaped for HTML."""
        return text(items_address(self.benchmark, skill=skill or "", split=split or "", a=_ENTRY))

    def entry(self, entry_id: str) -> str:
        """An entry as it stands in an address; made once for all columns of its row."""
        return quote(entry_id, safe="~:/")

    def of_entry(self, column: str, entry: str) -> str:
        """The address for one row of a column, of the entry as `entry` gives it."""
        return column.replace(_ENTRY, entry)


@dataclass(frozen=True)
class Part:
    """Rows under one label.

    Attributes:
        label: `Tier 1`, `Pinned`; empty for none.
        cells: its rows.
    """

    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Window:
    """The rows that are sent.

    Attributes:
        parts: with their labels.
        first: place of the first of them, from 1; 0 where there are none.
        last: of the last.
        total: rows of the ranking without those pinned.
        page: which of
        pages: so many.
    """

    parts: tuple[Part, ...]
    first: int
    last: int
    total: int
    page: int
    pages: int


def window(cells: Sequence[Cell], layout: Layout, rows: int = PAGE_ROWS) -> Window:
    """The pinned rows, and one page of the others in tiers or sorted by a column.

    Args:
        cells: of the ranking, in the order of `tiers.in_tiers`.
        layout: pins, sorting and page.
        rows: most rows of a page; all of them where there could be no link to another.
    """
    rows = rows if layout.address is not None else max(1, len(cells))
    by_id = {cell.entry_id: cell for cell in cells}
    pins = tuple(by_id[entry] for entry in layout.arranged.pins if entry in by_id)
    pinned = frozenset(layout.arranged.pins)
    labelled = [
        (label, cell) for label, cell in _in_order(cells, layout) if cell.entry_id not in pinned
    ]
    pages = max(1, ceil(len(labelled) / rows))
    page = min(layout.arranged.page, pages)
    start = (page - 1) * rows
    shown = labelled[start : start + rows]
    parts = [Part("Pinned", pins)] if pins else []
    labels = dict.fromkeys(label for label, _ in shown)
    parts += [Part(label, tuple(cell for of, cell in shown if of == label)) for label in labels]
    if pins and len(parts) > 1 and not parts[1].label:
        parts[1] = Part("Others", parts[1].cells)
    first = start + 1 if shown else 0
    return Window(tuple(parts), first, start + len(shown), len(labelled), page, pages)


def in_shown_order(cells: Sequence[Cell], layout: Layout) -> tuple[Cell, ...]:
    """All rows as they are shown where nothing is pinned.

    Args:
        cells: of the ranking, in the order of `tiers.in_tiers`.
        layout: has what they are sorted by.
    """
    return tuple(cell for _, cell in _in_order(cells, layout))


def _in_order(cells: Sequence[Cell], layout: Layout) -> list[tuple[str, Cell]]:
    """Every row with its label, in the order in which rows are shown."""
    column = next(
        (one for one in layout.columns if one.column.key == layout.arranged.sorted_by), None
    )
    if column is None:
        found = groups(cells)
        tiered = any(group.tier is not None for group in found)
        return [(_label(group) if tiered else "", cell) for group in found for cell in group.cells]
    known: Mapping[str, float] = {
        cell.entry_id: value for cell in cells if (value := column.of(cell.entry_id)) is not None
    }
    down = column.column.higher_is_better is not layout.arranged.worst_first
    # Sorting is stable, so equal values keep the order of the board; those without come last.
    best = sorted(
        (cell for cell in cells if cell.entry_id in known),
        key=lambda cell: -known[cell.entry_id] if down else known[cell.entry_id],
    )
    return [("", cell) for cell in (*best, *(c for c in cells if c.entry_id not in known))]


def _label(group: Group) -> str:
    return "Without a rank" if group.tier is None else f"Tier {group.tier}"
