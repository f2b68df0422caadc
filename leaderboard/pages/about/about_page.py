"""Page of methods: the meaning of every figure."""

from __future__ import annotations

from leaderboard.pages.about.methods import methods_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import html


def _build(context: Context) -> None:
    html(methods_view(context.cards.values()))


PAGE = Page("Methods", "about", 40, _build)
