"""Pages of the models: the place with its six views, and one model."""

from __future__ import annotations

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.rendering import render
from leaderboard.service.address import root_of
from leaderboard.views.citation import CitedAt
from leaderboard.views.models import ModelQuery, PlaceQuery
from leaderboard.web.live import LiveContent, live_view
from leaderboard.web.model_detail import model_html
from leaderboard.web.model_place import place_html
from leaderboard.web.page import Context, Page


def cited_at(context: Context, request: gr.Request) -> CitedAt:
    """The state of the store that is shown, and the address of the site."""
    return CitedAt(context.reader.revision(), root_of(request.headers))


def _build_models(context: Context) -> None:
    def answer(params: QueryParams, request: gr.Request) -> LiveContent:
        asked, at = PlaceQuery.from_params(params), cited_at(context, request)
        shown, exact, title = place_html(asked, context.model_reader, context.reader.view(), at)
        return LiveContent(shown, exact.query, title)

    live_view(answer, skeleton=render("models/skeleton.html"))


MODELS = Page("Models", "models", 11, _build_models)


def _build_model(context: Context) -> None:
    def answer(params: QueryParams, request: gr.Request) -> LiveContent:
        asked, at = ModelQuery.from_params(params), cited_at(context, request)
        shown, query, title = model_html(asked, context.model_reader, context.reader.view(), at)
        return LiveContent(shown, query, title)

    live_view(answer, skeleton=render("models/skeleton.html"))


MODEL = Page("Model", "model", 17, _build_model, in_navigation=False)
