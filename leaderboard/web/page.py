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
from leaderboard.governance.own import Own
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
from leaderboard.views.skill_choice import Prepared as PreparedSkills

MOST_VISITORS = 64
"""Whose submissions are kept in memory between two looks."""

_SUFFIX = "_page"


@dataclass(frozen=True)
class Context:
    """What every page may use.

    Attributes:
        reader: the published boards and the submissions.
        live: the workers' pulses.
        desk: takes submissions.
        cards: the benchmarks, in the order of display.
        clock: the current time, with a time zone.
        store: where everything is kept; handlers act on it only for an account that may.
        sign_in: how visitors are told apart.
        pictures: the images of benchmarks that are on this machine; none by default.
        items: reads cases and scores, where others read with it; None: the item browser alone does.
        hub: `OWNER/NAME` of a store on the Hub; empty for any other.
        prepared: the index before its weights; one for all that show or answer it.
        prepared_skills: the skills before their weights, likewise.
        prepared_metrics: the table of all metrics before a choice.
        watch: looks at the health of the installation; None: who shows it looks itself.
        models: reads the models, their prompts and scores; None: there are no prompt sets here.
    """

    reader: Reader
    live: Live
    desk: Desk
    cards: Mapping[str, Card]
    clock: Callable[[], datetime]
    store: Store
    sign_in: SignIn = field(default_factory=SignIn)
    pictures: Pictures = field(default_factory=lambda: Pictures({}, None))
    items: ItemReader | None = None
    hub: str = ""
    prepared: Prepared = field(default_factory=Prepared)
    prepared_skills: PreparedSkills = field(default_factory=PreparedSkills)
    prepared_metrics: PreparedMetrics = field(default_factory=PreparedMetrics)
    watch: HealthWatch | None = None
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
    """One page of the site.

    Attributes:
        title: name in the navigation.
        path: address below the root; empty for the first page.
        order: place in the navigation.
        build: makes its components and events, inside a Blocks context.
        in_navigation: False where other pages link to it and the navigation need not.
    """

    title: str
    path: str
    order: int
    build: Callable[[Context], None]
    in_navigation: bool = True


def all_pages(
    packages: Sequence[str] = ("leaderboard.web.pages",),
) -> tuple[Page, ...]:
    """Every page: the `PAGE` of each module below the packages whose name ends in `_page`.

    Raises:
        PlatformError: `invalid_page` where such a module defines none.
    """
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
