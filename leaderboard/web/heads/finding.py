"""Choice of a request's head: that of its view, or the page's own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.errors import AssayError
from leaderboard.api.source import Source
from leaderboard.publication.reader import View
from leaderboard.views.changes import VIEWS
from leaderboard.views.compare import PlaceQuery
from leaderboard.views.metrics import (
    BENCHMARK,
    SKILL,
    MetricsQuery,
)
from leaderboard.web.heads.head import Head
from leaderboard.web.heads.of_boards import board_head, compare_head
from leaderboard.web.heads.of_docs import benchmark_head, guide_head
from leaderboard.web.heads.of_metrics import (
    examples_head,
    index_head,
    metric_head,
    moved_head,
    skills_head,
)
from leaderboard.web.heads.of_models import model_head, models_head
from leaderboard.web.heads.own import own_head
from leaderboard.web.page import Page

log = logging.getLogger(__name__)
_Of = Callable[[Mapping[str, str], Source], Head | None]


def _metrics(params: Mapping[str, str], source: Source) -> Head | None:
    """Of the tab that is asked for: a skill, a benchmark, or all metrics."""
    query = MetricsQuery.from_params(params)
    if query.kind == SKILL:
        return skills_head(_of_skill(query), source)
    if query.kind == BENCHMARK:
        describe = moved_head if params.get("view") in VIEWS else board_head
        return describe(params, source.reader.view())
    found = index_head({"w": query.weights, "ratings": query.ratings}, source)
    return found and replace(found, title="Metrics")


def _of_skill(query: MetricsQuery) -> dict[str, str]:
    return {"skill": query.named, "w": query.weights, "ratings": query.ratings, "cost": query.by}


def _compare(params: Mapping[str, str], view: View) -> Head | None:
    of_examples = PlaceQuery.from_params(params).view == "examples"
    return (examples_head if of_examples else compare_head)(params, view)


OF_VIEW: Mapping[str, _Of] = {
    "": _metrics,
    "compare": lambda params, source: _compare(params, source.reader.view()),
    "metric": metric_head,
    "benchmark": benchmark_head,
    "guide": guide_head,
    "models": models_head,
    "model": model_head,
}
"""Path of a page to what says something of a view of it; other pages have one view."""


def head_of(page: Page, params: Mapping[str, str], source: Source | None) -> Head:
    """What a view says of itself; what its page says, where there is no such view."""
    describe = OF_VIEW.get(page.path)
    if source is None or describe is None:
        return own_head(page)
    try:
        return describe(params, source) or own_head(page)
    except AssayError as error:
        # The page itself says what is wrong.
        log.info("No summary of /%s: %s", page.path, error.code)
        return own_head(page)
