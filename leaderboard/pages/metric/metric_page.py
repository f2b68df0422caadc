"""Everything about one metric; which one is in the link."""

from __future__ import annotations

import gradio as gr

from leaderboard.pages.metric.absent import gone_view, unknown_view
from leaderboard.pages.metric.copied import Around
from leaderboard.pages.metric.view import metric_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.copying import COPY_AND_GO, root_of
from leaderboard.pages.shown.widgets import html, on_load, run_on_load
from leaderboard.views.addresses import metric_address
from leaderboard.views.changes import moved_address
from leaderboard.views.metric import Gone, MetricQuery, Shown, resolve


def shown_page(context: Context, query: MetricQuery, root: str = "") -> str:
    """The HTML for a query.

    Args:
        context: of the site.
        query: what was asked for.
        root: address of the site as the visitor sees it, with a slash at its end; empty where that
            is not known.
    """
    view, statuses = context.reader.view(), context.reader.statuses()
    found = resolve(query, view, statuses)
    if isinstance(found, Gone):
        return gone_view(found, statuses)
    if not isinstance(found, Shown):
        return unknown_view(found)
    address = metric_address(found.entry.entry_id).removeprefix("./")
    around = Around(statuses, _moved(context, found), f"{root}{address}" if root else "")
    return metric_view(found, view, around)


def _moved(context: Context, found: Shown) -> dict[str, str]:
    """Title of a benchmark of the metric to what moved there, where an earlier board is kept."""
    names = dict.fromkeys(name for entry in found.entries for name in entry.provenance)
    return {
        context.cards[name].title: moved_address(name)
        for name in names
        if name in context.cards and context.earlier.tags(context.cards[name])
    }


def _build(context: Context) -> None:
    shown = html()

    def opened(request: gr.Request) -> str:
        query = MetricQuery.from_params(request.query_params)
        return shown_page(context, query, root_of(request.headers))

    on_load(opened, shown)
    run_on_load(COPY_AND_GO)


PAGE = Page("Metric", "metric", 16, _build, in_navigation=False)
