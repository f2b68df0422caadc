"""Page of the Metrics place: all metrics, a skill, or a benchmark, by the tab of its address."""

from __future__ import annotations

import gradio as gr
from starlette.datastructures import QueryParams

from leaderboard.rendering import render
from leaderboard.service.address import root_of
from leaderboard.views.metrics import BENCHMARK, SKILL, MetricsQuery
from leaderboard.web.benchmark_tab import benchmark_below, benchmark_tab
from leaderboard.web.live import KeptAnswers, LiveContent, live_view
from leaderboard.web.metrics_tab import activity_part, metrics_tab
from leaderboard.web.page import Context, Page
from leaderboard.web.skill_tab import skill_parts, skill_tab


class MetricsPlace:
    """Both parts of the place by the parameters of an address, kept for the next visitor."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._first, self._second = KeptAnswers(context.reader), KeptAnswers(context.reader)

    def first(self, params: QueryParams) -> LiveContent:
        """Verdict, controls and table."""
        return self._first.of(params, lambda: self._made(params))

    def second(self, params: QueryParams, site: str) -> LiveContent:
        """What stands below and takes longer."""
        context, query = self._context, MetricsQuery.from_params(params)
        if query.kind == BENCHMARK:
            return self._second.of(params, lambda: benchmark_below(context, params, site), site)
        if query.kind == SKILL:
            return self._second.of(params, lambda: skill_parts(context, query))
        return activity_part(context, query)  # It tells how long ago something was.

    def _made(self, params: QueryParams) -> LiveContent:
        context, query = self._context, MetricsQuery.from_params(params)
        if query.kind == BENCHMARK:
            return benchmark_tab(context, params)
        if query.kind == SKILL:
            return skill_tab(context, query)
        return metrics_tab(context, query)


def _build(context: Context) -> None:
    place = MetricsPlace(context)

    def first(params: QueryParams, _: gr.Request) -> LiveContent:
        return place.first(params)

    def second(params: QueryParams, request: gr.Request) -> LiveContent:
        return place.second(params, root_of(request.headers))

    live_view(first, skeleton=render("metrics/skeleton.html"), below=second)


PAGE = Page("Metrics", "", 0, _build)
