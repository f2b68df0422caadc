"""Page: its contract, the context it is given, and its place in the navigation."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from benchmarks.errors import PlatformError
from leaderboard.accounts import Account
from leaderboard.api.source import Source
from leaderboard.governance.authentication import Authentication
from leaderboard.governance.rights import Own
from leaderboard.publication.reader import PerView
from leaderboard.service.pictures import Pictures
from leaderboard.service.polling import HealthWatch
from leaderboard.store.live.interface import Live
from leaderboard.submission_service import SubmissionServiceProtocol
from leaderboard.views.metric_table import MetricTable

MOST_VISITORS = 64
"""Whose submissions are kept in memory between two looks."""

_PACKAGE = "leaderboard.web.pages"
_SUFFIX = "_page"


@dataclass(frozen=True, kw_only=True)
class Context(Source):
    """What every page may use: all that programs read, and what visitors act with.

    Handlers act on its store only for an account that may.
    """

    desk: SubmissionServiceProtocol  # takes submissions
    sign_in: Authentication = field(default_factory=Authentication)  # how visitors are told apart
    # the images of benchmarks that are on this machine; none by default
    pictures: Pictures = field(default_factory=lambda: Pictures({}, None))
    hub: str = ""  # `OWNER/NAME` of a store on the Hub; empty for any other
    # the table of all metrics before a choice
    prepared_metrics: PerView[MetricTable] = field(default_factory=lambda: PerView(MetricTable.of))
    # looks at the health of the installation; None: who shows it looks itself
    watch: HealthWatch | None = None

    @property
    def live(self) -> Live:
        """The workers' pulses."""
        return self.store.live

    @cached_property
    def own(self) -> Callable[[Account], Own]:
        """What an account may see of its own; kept for the latest visitors, who look again."""
        store = self.store
        return lru_cache(maxsize=MOST_VISITORS)(lambda account: Own(store, account))


@dataclass(frozen=True)
class Page:
    """One page of the site."""

    title: str  # name in the navigation
    path: str  # address below the root; empty for the first page
    order: int  # place in the navigation
    build: Callable[[Context], object]  # makes its components and events, inside a Blocks context
    in_navigation: bool = True  # False where other pages link to it and the navigation need not


def all_pages() -> tuple[Page, ...]:
    """Every page: those of each module of `leaderboard.web.pages` whose name ends in `_page`."""
    found: list[Page] = []
    home = importlib.import_module(_PACKAGE)
    for module in pkgutil.iter_modules(home.__path__, f"{_PACKAGE}."):
        if not module.name.endswith(_SUFFIX):
            continue
        named = vars(importlib.import_module(module.name)).values()
        pages = [one for one in named if isinstance(one, Page)]
        if not pages:
            raise PlatformError("invalid_page", f"{module.name} does not define a Page.")
        found += pages
    return tuple(sorted(found, key=lambda page: page.order))


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
        NavigationLink(known[one].title, one, "page" if one == path else "") for one in listed
    )
    return Navigation(places, here.title, within if len(within) > 1 else ())


def _current(place: Place, here: Place | None, path: str | None) -> str:
    if place is not here:
        return ""
    return "page" if place.path == path else "true"
