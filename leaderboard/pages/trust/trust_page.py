"""Trust checks and cost of every metric that was run."""

from __future__ import annotations

import gradio as gr

from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import html, on_load
from leaderboard.pages.trust.cards import trust_page


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        asked = str(request.query_params.get("page", "1"))
        number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 7 else 1
        return trust_page(context.reader.view().entries.values(), context.cards, number)

    on_load(open_page, shown)


PAGE = Page("Trust", "trust", 35, _build)
"""The page."""
