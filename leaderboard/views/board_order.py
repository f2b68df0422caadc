"""Order of the rows of a ranking, and the page of them that is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from leaderboard.ranking.cells import Cell
from leaderboard.ranking.tiers import Group, groups
from leaderboard.views.boards import OWN, Layout

PAGE_ROWS = 100  # Rows sent at a time; whatever is ranked, searched or sorted is all of them


@dataclass(frozen=True)
class Part:
    """Rows under one label."""

    label: str  # `Tier 1`, `Pinned`; empty for none
    cells: tuple[Cell, ...]  # its rows


@dataclass(frozen=True)
class Window:
    """The rows that are sent."""

    parts: tuple[Part, ...]  # with their labels
    first: int  # place of the first of them, from 1; 0 where there are none
    last: int
    total: int  # rows of the ranking without those pinned
    page: int  # which of
    pages: int  # so many


def window(cells: Sequence[Cell], layout: Layout, rows: int = PAGE_ROWS) -> Window:
    """The pinned rows, and one page of the others in tiers or sorted by a column."""
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
    """All rows as they are shown where nothing is pinned."""
    return tuple(cell for _, cell in _in_order(cells, layout))


def _in_order(cells: Sequence[Cell], layout: Layout) -> list[tuple[str, Cell]]:
    """Every row with its label, in the order in which rows are shown."""
    keys, down = _sort_keys(layout)
    if keys is None:
        found = groups(cells)
        tiered = any(group.tier is not None for group in found)
        return [(_label(group) if tiered else "", cell) for group in found for cell in group.cells]
    known: Mapping[str, float | str] = {
        cell.entry_id: key for cell in cells if (key := keys(cell)) is not None
    }
    # Sorting is stable, so equal values keep the order of the board; those without come last.
    best = sorted(
        (cell for cell in cells if cell.entry_id in known),
        key=lambda cell: known[cell.entry_id],
        reverse=down,
    )
    return [("", cell) for cell in (*best, *(c for c in cells if c.entry_id not in known))]


_SortKey = Callable[[Cell], float | str | None]


def _sort_keys(layout: Layout) -> tuple[_SortKey | None, bool]:
    """What rows are sorted by, and whether it falls; None: by rank."""
    key, turned = layout.arranged.sorted_by, layout.arranged.worst_first
    own: dict[str, _SortKey] = {
        "metric": lambda cell: cell.entry_id.partition("/")[2].casefold(),
        "value": lambda cell: cell.value,
        "p_best": lambda cell: cell.p_best,
        "n": lambda cell: cell.n_clusters,
    }
    if key in own:
        falls = layout.higher_is_better if key == "value" else OWN[key].higher_is_better
        return own[key], falls is not turned
    column = next((one for one in layout.columns if one.column.key == key), None)
    if column is None:
        return None, False
    found = column
    if column.words:
        return (lambda cell: found.words.get(cell.entry_id, "").casefold() or None), turned
    return (lambda cell: found.of(cell.entry_id)), column.column.higher_is_better is not turned


def _label(group: Group) -> str:
    return "Without a rank" if group.tier is None else f"Tier {group.tier}"
