"""Page of the order of models over random seeds, and the variation of each."""

from __future__ import annotations

from dataclasses import replace

import gradio as gr

from leaderboard.models.seeds import seed_report
from leaderboard.pages.models.models_page import reader_of
from leaderboard.pages.models.view import nothing_here
from leaderboard.pages.page import Context, Page
from leaderboard.pages.seeds.view import seeds_view
from leaderboard.pages.shown.copying import COPY_AND_GO
from leaderboard.pages.shown.widgets import html, on_load, run_on_load
from leaderboard.views.models import ModelsQuery, judge_of, resolve


def answer(context: Context, query: ModelsQuery) -> str:
    """The page of a query, as HTML.

    Raises:
        TransientError: the store cannot be read.
    """
    view, reader = context.reader.view(), reader_of(context)
    choice = resolve(query, reader, view)
    if choice is None:
        return nothing_here()
    if not (choice.places and choice.entries and choice.judges):
        return seeds_view(choice, None, reader, "")
    skill = choice.query.skill or None
    # By every metric: whether others agree is what the reader wants to see.
    wanted = replace(choice.wanted, skills=(skill,), judge="", seed=None)
    report = seed_report(reader, view, wanted)
    return seeds_view(choice, report, reader, judge_of(choice, reader, view))


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return answer(context, ModelsQuery.from_params(request.query_params))

    on_load(open_page, shown)
    run_on_load(COPY_AND_GO)


PAGE = Page("Models over seeds", "seeds", 19, _build, in_navigation=False)
