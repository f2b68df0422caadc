"""Choice of a request's head: that of its view, or the page's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.errors import AssayError
from leaderboard.api.source import Source
from leaderboard.pages.heads.head import Head
from leaderboard.pages.heads.of_boards import board_head, compare_head
from leaderboard.pages.heads.of_metrics import (
    index_head,
    items_head,
    metric_head,
    moved_head,
    skills_head,
)
from leaderboard.pages.heads.of_models import model_head, models_head, pair_head, prompt_head
from leaderboard.pages.heads.own import own_head
from leaderboard.pages.page import Page
from leaderboard.views.metrics_query import BENCHMARK, SKILL, MetricsQuery

log = logging.getLogger(__name__)
_Of = Callable[[Mapping[str, str], Source], Head | None]


def _metrics(params: Mapping[str, str], source: Source) -> Head | None:
    """Of the tab that is asked for: a skill, a benchmark, or all metrics."""
    query = MetricsQuery.from_params(params)
    if query.kind == SKILL:
        return skills_head(_of_skill(query), source)
    if query.kind == BENCHMARK:
        return board_head({**params, "benchmark": query.named}, source.reader.view())
    found = index_head({"w": query.weights, "ratings": query.ratings}, source)
    return found and replace(found, title="Metrics")


def _of_skill(query: MetricsQuery) -> dict[str, str]:
    return {"skill": query.named, "w": query.weights, "ratings": query.ratings, "cost": query.by}


OF_VIEW: Mapping[str, _Of] = {
    "": _metrics,
    "boards": lambda params, source: board_head(params, source.reader.view()),
    "compare": lambda params, source: compare_head(params, source.reader.view()),
    "metric": metric_head,
    "items": lambda params, source: items_head(params, source.reader.view()),
    "models": models_head,
    "model": model_head,
    "model-pair": pair_head,
    "prompt": prompt_head,
    "moved": lambda params, source: moved_head(params, source.reader.view()),
}
"""Path of a page to what says something of a view of it; other pages have one view."""


def head_of(page: Page, params: Mapping[str, str], source: Source | None) -> Head:
    """What a view says of itself; what its page says, where there is no such view.

    Args:
        page: that was asked for.
        params: of its query; nothing in them is trusted.
        source: where everything is read; None: the page's own.
    """
    describe = OF_VIEW.get(page.path)
    if source is None or describe is None:
        return own_head(page)
    try:
        return describe(params, source) or own_head(page)
    except AssayError as error:
        # The page itself says what is wrong.
        log.info("No summary of /%s: %s", page.path, error.code)
        return own_head(page)
