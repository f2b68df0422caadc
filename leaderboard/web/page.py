"""Page: its contract, and the context it is given."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache

from benchmarks.errors import PlatformError
from benchmarks.schema import Card
from leaderboard.accounts import Account
from leaderboard.desk import Desk
from leaderboard.governance.rights import Own
from leaderboard.governance.signing_in import SignIn
from leaderboard.models.reading import ModelReader
from leaderboard.publication.earlier_boards import EarlierBoards
from leaderboard.publication.index import Prepared
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.reader import Reader
from leaderboard.service.looking import HealthWatch
from leaderboard.service.pictures import Pictures
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import Live
from leaderboard.views.metric_table import PreparedMetrics
from leaderboard.views.skills import Prepared as PreparedSkills

MOST_VISITORS = 64
"""Whose submissions are kept in memory between two looks."""

_SUFFIX = "_page"


@dataclass(frozen=True)
class Context:
    """What every page may use."""

    reader: Reader  # the published boards and the submissions
    live: Live  # the workers' pulses
    desk: Desk  # takes submissions
    cards: Mapping[str, Card]  # the benchmarks, in the order of display
    clock: Callable[[], datetime]  # the current time, with a time zone
    store: Store  # where everything is kept; handlers act on it only for an account that may
    sign_in: SignIn = field(default_factory=SignIn)  # how visitors are told apart
    # the images of benchmarks that are on this machine; none by default
    pictures: Pictures = field(default_factory=lambda: Pictures({}, None))
    # reads cases and scores, where others read with it; None: the item browser alone does
    items: ItemReader | None = None
    hub: str = ""  # `OWNER/NAME` of a store on the Hub; empty for any other
    # the index before its weights; one for all that show or answer it
    prepared: Prepared = field(default_factory=Prepared)
    # the skills before their weights, likewise
    prepared_skills: PreparedSkills = field(default_factory=PreparedSkills)
    # the table of all metrics before a choice
    prepared_metrics: PreparedMetrics = field(default_factory=PreparedMetrics)
    # looks at the health of the installation; None: who shows it looks itself
    watch: HealthWatch | None = None
    # reads the models, their prompts and scores; None: there are no prompt sets here
    models: ModelReader | None = None

    @cached_property
    def own(self) -> Callable[[Account], Own]:
        """What an account may see of its own; kept for the latest visitors, who look again."""
        store = self.store
        return lru_cache(maxsize=MOST_VISITORS)(lambda account: Own(store, account))

    @cached_property
    def earlier(self) -> EarlierBoards:
        """The boards of earlier revisions."""
        return EarlierBoards(self.store.public)


@dataclass(frozen=True)
class Page:
    """One page of the site."""

    title: str  # name in the navigation
    path: str  # address below the root; empty for the first page
    order: int  # place in the navigation
    build: Callable[[Context], None]  # makes its components and events, inside a Blocks context
    in_navigation: bool = True  # False where other pages link to it and the navigation need not


def all_pages(
    packages: Sequence[str] = ("leaderboard.web.pages",),
) -> tuple[Page, ...]:
    """Every page: the `PAGE` of each module below the packages whose name ends in `_page`."""
    found: list[Page] = []
    for package in packages:
        home = importlib.import_module(package)
        for module in pkgutil.walk_packages(home.__path__, f"{package}."):
            if not module.name.endswith(_SUFFIX):
                continue
            page = getattr(importlib.import_module(module.name), "PAGE", None)
            if not isinstance(page, Page):
                raise PlatformError("invalid_page", f"{module.name} does not define PAGE.")
            found.append(page)
    return tuple(sorted(found, key=lambda page: page.order))
