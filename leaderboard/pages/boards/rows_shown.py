"""Rows of a ranking as HTML: pins, the bar of pinned entries, and the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.schema import Card
from leaderboard.pages.shown.markup import submitted, text
from leaderboard.publication.snapshot import Entry
from leaderboard.text import clean, count
from leaderboard.views.addresses import compare_address
from leaderboard.views.boards import MOST_PINS, Layout, Window, pin_in_query

_LONGEST_NAME = 60
_ENTRY = "0ENTRY0"


def rank_by_link(name: str, layout: Layout) -> str:
    """The head of the ranked measure, which leads back to the order by rank; it is HTML already."""
    if not layout.arranged.sort or layout.address is None:
        return name
    there = text(layout.address(layout.arranged.sorting("")))
    return f'<a href="{there}" data-go="sort" title="Back to the order by rank">{name}</a>'


class PinLinks:
    """Links that hold a row on top, or let it go; none where a layout cannot be changed.

    Args:
        layout: what is pinned, and the addresses.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        # The address is long where there are many columns, so it is put together once.
        one = layout.address(layout.arranged.pinned(_ENTRY)) if layout.address else ""
        self._pinned = text(one)

    def link(self, entry: Entry) -> str:
        """The link of one row."""
        layout, entry_id = self._layout, entry.entry_id
        if layout.address is None:
            return ""
        if entry_id in layout.arranged.pins:
            there = text(layout.address(layout.arranged.unpinned(entry_id)))
            word, class_ = "Unpin", "as-pin as-pinned"
        else:
            there = self._pinned.replace(_ENTRY, pin_in_query(entry_id))
            word, class_ = "Pin", "as-pin"
        name = text(entry.metric, limit=_LONGEST_NAME)
        return (
            f'<a class="{class_}" href="{there}" data-go="{word.lower()} {text(entry_id)}" '
            f'title="{word} for comparison">{word}<span class="as-sr"> {name}</span></a>'
        )


def pinned_bar(layout: Layout, entries: Mapping[str, Entry], card: Card) -> str:
    """What is pinned, with the way to a comparison; empty where nothing is."""
    pins = layout.arranged.pins
    if not pins or layout.address is None:
        return ""
    names = "".join(
        _pinned_chip(entries[pin], layout.address(layout.arranged.unpinned(pin))) for pin in pins
    )
    if len(pins) > 1:
        there = text(compare_address(card.name, *pins, **layout.compared))
        act = f'<a class="as-button as-strong" href="{there}">Compare pinned</a>'
    else:
        act = f'<span class="as-muted">Pin another to compare, up to {MOST_PINS}.</span>'
    return (
        '<div class="as-chips" role="group" aria-label="Pinned">'
        f'<span class="as-muted">Pinned:</span>{names}{act}</div>'
    )


def pager(rows: Window, layout: Layout) -> str:
    """Which rows these are, with links to the others; empty where all are shown."""
    if rows.pages < 2 or layout.address is None:
        return ""
    address, arranged = layout.address, layout.arranged

    def to(page: int, word: str) -> str:
        if not 1 <= page <= rows.pages:
            return ""
        there = text(address(replace(arranged, page=page)))
        return f'<a class="as-button" href="{there}" data-go="{word}">{word}</a>'

    return (
        '<nav class="as-pager" aria-label="Rows of the ranking">'
        f"{to(rows.page - 1, 'Earlier rows')}<span>{rows.first:,}–{rows.last:,} of "
        f"{count(rows.total, 'row')}</span>{to(rows.page + 1, 'Further rows')}</nav>"
    )


def chip(label: str, address: str, key: str, of: str = "") -> str:
    """A chip that is undone by following it.

    Args:
        label: what it says, as HTML.
        address: of the view without it; not escaped yet.
        key: names it among all links of the view.
        of: the same as plain text, for those who hear it.
    """
    return (
        f'<a class="as-chip-off" href="{text(address)}" data-go="{text(key)}" '
        f'aria-label="Remove {text(of)}">{label} <span aria-hidden="true">×</span></a>'
    )


def _pinned_chip(entry: Entry, there: str) -> str:
    name = clean(entry.metric)[:_LONGEST_NAME]
    return chip(
        submitted(entry.metric, limit=_LONGEST_NAME), there, f"pinned {entry.entry_id}", name
    )
