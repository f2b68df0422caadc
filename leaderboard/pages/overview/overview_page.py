"""The first page: who leads where, how metrics stand over all boards, what changed lately."""

from __future__ import annotations

from datetime import datetime

from leaderboard.pages.overview.standings import leader_cards, matrix, publications
from leaderboard.pages.page import Context, Page
from leaderboard.pages.reading import View
from leaderboard.pages.shown.markup import page, section
from leaderboard.pages.shown.widgets import html_on_load

_OPENING = """
<header class="as-hero"><h1>Which text-to-image metrics can be trusted?</h1>
<p>Assay tests metrics that score how well an image follows its prompt, each against the same data
and protocols. A <b>rank range</b> such as 2–5 holds the places a metric takes in 95 % of the redrawn
data: where ranges overlap, the data do not tell the metrics apart; even where they do not, a tier
may hold several.</p></header>
"""


def overview(view: View, now: datetime) -> str:
    """The HTML of the page."""
    parts = [
        _OPENING,
        section("Leaders", leader_cards(view), aside='<a href="./boards">All boards</a>'),
        section("All metrics, all boards", matrix(view)),
    ]
    latest = publications(view, now)
    if latest:
        parts.append(section("Lately published", latest))
    return page(parts)


def _build(context: Context) -> None:
    html_on_load(lambda: overview(context.reader.view(), context.clock()))


PAGE = Page("Overview", "", 0, _build)
