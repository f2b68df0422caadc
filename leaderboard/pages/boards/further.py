"""The further columns of a ranking as HTML: heads that sort, cells that lead to items, meanings."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.pages.shown.markup import text
from leaderboard.text import MISSING, interval, number, rate
from leaderboard.views.boards import Column, Layout, Values


def better(higher_is_better: bool) -> str:
    """An arrow that says which way is better."""
    word, arrow = ("higher", "↑") if higher_is_better else ("lower", "↓")
    return (
        f'<span class="as-arrow" title="{word} is better" role="img" '
        f'aria-label="{word} is better">{arrow}</span>'
    )


def head(column: Column, layout: Layout) -> str:
    """The head of a column: its name sorts by it, its meaning is on hover and below the table."""
    arranged = layout.arranged
    sort = ""
    if arranged.sorted_by == column.key:
        rises = column.higher_is_better is arranged.worst_first
        sort = f' aria-sort="{"ascending" if rises else "descending"}"'
    name = text(column.title)
    if layout.address is not None:
        there = text(layout.address(arranged.sorting(column.key)))
        name = f'<a href="{there}" data-go="sort {text(column.key)}">{name}</a>'
    return (
        f'<th scope="col" role="columnheader" class="as-c-more"{sort} '
        f'title="{text(column.meaning)}">{name} {better(column.higher_is_better)}</th>'
    )


class FurtherCells:
    """Writes the cells of the further columns, row by row.

    Args:
        layout: has the columns.
    """

    def __init__(self, layout: Layout) -> None:
        self._items = layout.items
        self._columns = [
            (values, f'<td role="cell" class="as-c-more" data-label="{text(values.column.title)}"',
             self._address(values.column))
            for values in layout.columns
        ]  # fmt: skip

    def row(self, entry_id: str) -> str:
        """All further cells of one entry."""
        linked = self._items.entry(entry_id) if self._items is not None else ""
        return "".join(
            f"{start}{self._cell(values, address, entry_id, linked)}</td>"
            for values, start, address in self._columns
        )

    def _address(self, column: Column) -> str:
        if self._items is None or column.selector is None:
            return ""
        return text(self._items.column(column.skill, column.selector.split))

    def _cell(self, values: Values, address: str, entry_id: str, linked: str) -> str:
        cell = values.cells.get(entry_id)
        value = values.of(entry_id)
        if value is None:
            why = f' title="{text(cell.note, limit=200)}"' if cell is not None and cell.note else ""
            return f"{why}>{MISSING}"
        if cell is None:
            return f">{rate(value) if value >= 0.05 else number(value, 2)}"
        within = interval(cell.ci_low, cell.ci_high)
        few = "" if cell.orderable else "; too few items to order"
        shown = number(value)
        if address and self._items is not None:
            shown = f'<a href="{self._items.of_entry(address, linked)}">{shown}</a>'
        return f' title="{within}{few}">{shown}'


def meanings(columns: Sequence[Values]) -> str:
    """What the further columns mean, to be unfolded; empty where there are none."""
    if not columns:
        return ""
    listed = "".join(
        f"<dt>{text(one.column.title)} {better(one.column.higher_is_better)}</dt>"
        f"<dd>{text(one.column.meaning)}</dd>"
        for one in columns
    )
    return (
        '<details class="as-meanings"><summary>What the further columns mean</summary>'
        f'<dl class="as-terms">{listed}</dl><p class="as-legend">Intervals are on hover. Ranks and '
        "tiers are those of the ranked measure, however rows are sorted.</p></details>"
    )
