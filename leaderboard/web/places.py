"""Navigation: five places, the pages of each, and what stands in the footer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leaderboard.web.page import Page


@dataclass(frozen=True)
class Place:
    """A place of the site."""

    title: str  # its word in the bar
    path: str  # of its first page
    pages: tuple[str, ...]  # paths of its pages that are linked below the bar, in order
    details: tuple[str, ...] = ()  # paths of its pages that others lead to


PLACES = (
    Place("Metrics", "", ("",), ("metric",)),
    Place("Models", "models", ("models",), ("model",)),
    Place("Compare", "compare", ("compare",)),
    Place("Submit", "submit", ("submit",), ("operators",)),
    Place("Docs", "docs", ("docs", "about", "errata"), ("guide", "benchmark", "status", "ledger")),
)
LABELS: Mapping[str, str] = {}
"""Words of pages below the bar where those are not their titles."""


@dataclass(frozen=True)
class NavigationLink:
    """A link of the navigation. `current` is the value of `aria-current`; empty elsewhere."""

    title: str
    path: str
    current: str = ""


@dataclass(frozen=True)
class Navigation:
    """What is linked on one page: the places, and the pages of the current one."""

    places: tuple[NavigationLink, ...]
    place: str
    within: tuple[NavigationLink, ...]


def place_of(path: str) -> Place | None:
    """The place that a page belongs to; one that no place lists belongs to the last."""
    return next((place for place in PLACES if path in (*place.pages, *place.details)), None)


def navigation(pages: Iterable[Page], path: str | None) -> Navigation:
    """The navigation of one page."""
    known = {page.path: page for page in pages}
    here = None if path not in known else place_of(path or "") or PLACES[-1]
    places = tuple(
        NavigationLink(place.title, place.path, _current(place, here, path))
        for place in PLACES
        if place.path in known
    )
    if here is None:
        return Navigation(places, "", ())
    listed = [one for one in here.pages if one in known]
    if here is PLACES[-1]:
        listed += [
            one.path for one in known.values() if one.in_navigation and not place_of(one.path)
        ]
    within = tuple(
        NavigationLink(LABELS.get(one, known[one].title), one, "page" if one == path else "")
        for one in listed
    )
    return Navigation(places, here.title, within if len(within) > 1 else ())


def _current(place: Place, here: Place | None, path: str | None) -> str:
    if place is not here:
        return ""
    return "page" if place.path == path else "true"
