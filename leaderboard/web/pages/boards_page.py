"""Page of the boards: one benchmark, chosen by a tab or by the link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.copying import COPY_AND_GO, root_of
from leaderboard.pages.shown.widgets import run_on_load
from leaderboard.publication.reader import View
from leaderboard.views.boards import BoardQuery, Filters, benchmark_of, resolve, view_address
from leaderboard.web.benchmark_tab import benchmark_below, benchmark_tab, board_skeleton
from leaderboard.web.components import Tab
from leaderboard.web.live import Shown, live_view
from leaderboard.web.rendering import render


def benchmark_tabs(view: View, params: Mapping[str, str]) -> tuple[Tab, ...]:
    """A tab for every benchmark, those with results first; a filter goes along."""
    shown = resolve(BoardQuery(benchmark_of(params)), view.boards).board.card.name
    filters = replace(Filters.from_params(params), within=False)
    found = sorted(view.boards.items(), key=lambda one: one[1].empty)
    return tuple(
        Tab(board.card.title, view_address(BoardQuery(name, filters=filters)), name == shown,
            note="no results" if board.empty else "", go=f"benchmark {name}")
        for name, board in found
    )  # fmt: skip


def _build(context: Context) -> None:
    def shown(params: QueryParams, _: gr.Request) -> Shown:
        tab = benchmark_tab(context, params)
        tabs = benchmark_tabs(context.reader.view(), params)
        html = render("metrics/boards_page.html", tabs=tabs)
        return replace(tab, html=html + tab.html)

    def below(params: QueryParams, request: gr.Request) -> Shown:
        return benchmark_below(context, params, root_of(request.headers))

    live_view(shown, skeleton=board_skeleton(), below=below)
    run_on_load(COPY_AND_GO)


PAGE = Page("Boards", "boards", 10, _build)
