"""Page of the Metrics place: all metrics, a skill, or a benchmark, by the tab of its address."""

from __future__ import annotations

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.rendering import render
from leaderboard.views.metrics_query import BENCHMARK, SKILL, MetricsQuery
from leaderboard.web.benchmark_tab import benchmark_below, benchmark_tab
from leaderboard.web.copying import COPY_AND_GO, root_of
from leaderboard.web.live import Shown, live_view
from leaderboard.web.metrics_tab import activity_part, metrics_tab
from leaderboard.web.page import Context, Page
from leaderboard.web.skill_tab import skill_parts, skill_tab
from leaderboard.web.widgets import run_on_load


def _build(context: Context) -> None:
    def answer(params: QueryParams, _: gr.Request) -> Shown:
        query = MetricsQuery.from_params(params)
        if query.kind == BENCHMARK:
            return benchmark_tab(context, params)
        if query.kind == SKILL:
            return skill_tab(context, query)
        return metrics_tab(context, query)

    def below(params: QueryParams, request: gr.Request) -> Shown:
        query = MetricsQuery.from_params(params)
        if query.kind == BENCHMARK:
            return benchmark_below(context, params, root_of(request.headers))
        if query.kind == SKILL:
            return skill_parts(context, query)
        return activity_part(context, query)

    live_view(answer, skeleton=render("metrics/skeleton.html"), below=below)
    run_on_load(COPY_AND_GO)


PAGE = Page("Metrics", "", 0, _build)
