"""Page of the place of models: skills, gallery, seeds, two models, one prompt, judges."""

from __future__ import annotations

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.models.reading import ModelReader
from leaderboard.rendering import render
from leaderboard.views.models import PlaceQuery
from leaderboard.web.copying import COPY_AND_GO
from leaderboard.web.live import Shown, live_view
from leaderboard.web.model_place import place_html
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import run_on_load


def reader_of(context: Context) -> ModelReader:
    """What reads the models; without prompt sets where the installation has none."""
    return context.models or ModelReader(context.store, {}, None)


def _build(context: Context) -> None:
    def answer(params: QueryParams, _: gr.Request) -> Shown:
        asked = PlaceQuery.from_params(params)
        shown, exact, title = place_html(asked, reader_of(context), context.reader.view())
        return Shown(shown, exact.query, title)

    live_view(answer, skeleton=render("models/skeleton.html"))
    run_on_load(COPY_AND_GO)


PAGE = Page("Models", "models", 11, _build)
