"""Page of the documentation: the guides, the benchmarks, and where the rest is."""

from __future__ import annotations

from leaderboard.rendering import render
from leaderboard.web.guides import FIRST, guides
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import html_on_load


def _build(context: Context) -> None:
    def shown() -> str:
        index = guides().get(FIRST)
        return render("pages/docs.html", index=index, cards=tuple(context.cards.values()))

    html_on_load(shown)


PAGE = Page("Docs", "docs", 36, _build)
