"""Chips of active filters, each undone on its own."""

from __future__ import annotations

from dataclasses import replace

from leaderboard.pages.boards.rows_shown import chip
from leaderboard.pages.shown.markup import text
from leaderboard.text import count
from leaderboard.views.boards import KINDS, BoardQuery, Choice, Filters, view_address


def without(filters: Filters) -> tuple[tuple[str, Filters], ...]:
    """Each part of a filter in words, with the filter that is left when it is taken away."""
    found = [
        (f"“{term}”", replace(filters, search=", ".join(t for t in filters.terms if t != term)))
        for term in dict.fromkeys(filters.terms)
    ]
    if filters.kind in KINDS:
        found.append((KINDS[filters.kind], replace(filters, kind="")))
    if filters.untrained:
        found.append(("not trained on this benchmark", replace(filters, untrained=False)))
    return tuple(found)


def filter_chips(choice: Choice, shown: int, everyone: int) -> str:
    """How many of all are shown, each active filter, and a way to show all; empty without any.

    Args:
        choice: the view.
        shown: entries that the filter keeps.
        everyone: entries of the board.
    """
    if not choice.filters.active:
        return ""
    query = _first_page(choice)
    chips = "".join(
        chip(text(label), view_address(replace(query, filters=left)), f"filter {label}", label)
        for label, left in without(choice.filters)
    )
    whole = text(view_address(replace(query, filters=Filters())))
    return (
        '<div class="as-chips" role="group" aria-label="Filters">'
        f"<span><b>{shown:,} of {count(everyone, 'metric')}</b> shown, ranked among themselves</span>"
        f'{chips}<a href="{whole}" data-go="reset">reset</a></div>'
    )


def _first_page(choice: Choice) -> BoardQuery:
    return replace(choice.query, arranged=replace(choice.arranged, page=1))
