"""Trust checks and cost of every metric that was run."""

from __future__ import annotations

from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import html_on_load
from leaderboard.pages.trust.cards import trust_page


def _build(context: Context) -> None:
    def shown() -> str:
        return trust_page(context.reader.view().entries.values(), context.cards)

    html_on_load(shown)


PAGE = Page("Trust", "trust", 35, _build)
"""The page."""
