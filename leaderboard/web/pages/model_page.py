"""Page of one text-to-image model."""

from __future__ import annotations

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.rendering import render
from leaderboard.views.models import ModelQuery
from leaderboard.web.copying import COPY_AND_GO
from leaderboard.web.live import Shown, live_view
from leaderboard.web.model_detail import model_html
from leaderboard.web.page import Context, Page
from leaderboard.web.pages.models_page import reader_of
from leaderboard.web.widgets import run_on_load


def _build(context: Context) -> None:
    def answer(params: QueryParams, _: gr.Request) -> Shown:
        asked = ModelQuery.from_params(params)
        shown, query, title = model_html(asked, reader_of(context), context.reader.view())
        return Shown(shown, query, title)

    live_view(answer, skeleton=render("models/skeleton.html"))
    run_on_load(COPY_AND_GO)


PAGE = Page("Model", "model", 17, _build, in_navigation=False)
