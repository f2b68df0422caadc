"""Compare: two to four metrics on a benchmark, with examples, all pairs and skills."""

from __future__ import annotations

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.rendering import render
from leaderboard.views.compare_query import CompareQuery
from leaderboard.views.comparison import Behind, ClusterReader, PairScoreReader
from leaderboard.views.examples import lower_is_better
from leaderboard.web.compare import ComparePlace
from leaderboard.web.live import LiveContent, live_view
from leaderboard.web.page import Context, Page


def compare_place(context: Context) -> ComparePlace:
    """The place over what every page may use."""
    public = context.store.public

    def lower() -> dict[str, tuple[str, ...]]:
        return lower_is_better(context.reader.statuses())

    behind = Behind(
        context.items, context.pictures, context.cards, lower, ClusterReader(public),
        PairScoreReader(public),
    )  # fmt: skip
    return ComparePlace(context.reader.view, behind)


def _build(context: Context) -> None:
    place = compare_place(context)

    def answer(params: QueryParams, _: gr.Request) -> LiveContent:
        return place.answer(CompareQuery.from_params(params))

    live_view(answer, skeleton=render("compare/skeleton.html"))


PAGE = Page("Compare", "compare", 15, _build)
