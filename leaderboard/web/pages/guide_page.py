"""Page of one guide; without a name, or by one that no guide has, that of the first."""

from __future__ import annotations

import gradio as gr

from leaderboard.rendering import render
from leaderboard.web.copying import COPY_AND_GO
from leaderboard.web.guides import FIRST, Guide, guides
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import html, on_load, run_on_load


def guide_of(name: str) -> Guide | None:
    """The guide that an address names; the first where it names none; None without documents."""
    known = guides()
    return known.get(name) or known.get(FIRST)


def _build(_: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        guide = guide_of(str(request.query_params.get("name", "")))
        if guide is None:
            return render("pages/no_guide.html")
        return render("pages/guide.html", guide=guide)

    on_load(open_page, shown)
    run_on_load(COPY_AND_GO)


PAGE = Page("Guide", "guide", 37, _build, in_navigation=False)
