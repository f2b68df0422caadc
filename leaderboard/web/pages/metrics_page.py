"""Page of the Metrics place: all metrics, a skill, or a benchmark, by the tab of its address."""

from __future__ import annotations

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.pages.page import Context, Page
from leaderboard.views.metrics_query import SKILL, MetricsQuery
from leaderboard.web.live import Shown, live_view
from leaderboard.web.metrics_tab import activity_part, metrics_tab
from leaderboard.web.rendering import render
from leaderboard.web.skill_tab import skill_parts, skill_tab


def _build(context: Context) -> None:
    def answer(params: QueryParams, _: gr.Request) -> Shown:
        query = MetricsQuery.from_params(params)
        if query.kind == SKILL:
            return skill_tab(context, query)
        return metrics_tab(context, query)

    def below(params: QueryParams, _: gr.Request) -> Shown:
        query = MetricsQuery.from_params(params)
        if query.kind == SKILL:
            return skill_parts(context, query)
        return activity_part(context, query)

    live_view(answer, skeleton=render("metrics/skeleton.html"), below=below)


PAGE = Page("Metrics", "", 0, _build)
