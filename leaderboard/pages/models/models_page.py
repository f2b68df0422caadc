"""The board of models: skill by skill, by the metrics that earned it."""

from __future__ import annotations

import gradio as gr

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.reference import ReferenceTable, other_references, references_of
from leaderboard.models.orderings import model_orderings
from leaderboard.models.reading import ModelReader
from leaderboard.models.robustness import robustness
from leaderboard.pages.models.looking import board_of
from leaderboard.pages.models.ordering_view import orderings_section
from leaderboard.pages.models.published import published_section
from leaderboard.pages.models.query import Choice, ModelsQuery, resolve
from leaderboard.pages.models.robust import robust_section
from leaderboard.pages.models.view import models_view, nothing_here
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.copying import COPY_AND_GO
from leaderboard.pages.shown.widgets import html, on_load, run_on_load


def reader_of(context: Context) -> ModelReader:
    """What reads the models; without prompt sets where the installation has none."""
    return context.models or ModelReader(context.store, {}, None)


def answer(context: Context, query: ModelsQuery) -> str:
    """The page of a query, as HTML.

    Raises:
        TransientError: the store cannot be read.
    """
    view, reader = context.reader.view(), reader_of(context)
    choice = resolve(query, reader, view)
    if choice is None:
        return nothing_here()
    board = board_of(choice, reader, view)
    cards = {name: one.card for name, one in view.boards.items()}
    further = []
    if board is not None:
        changed = robustness(reader, view, choice.wanted)
        records = model_orderings(reader, view, choice.wanted)
        further = [robust_section(changed), orderings_section(records, choice.judges, cards)]
    return models_view(choice, board, reader, [*further, _published(choice, reader)], cards)


def _published(choice: Choice, reader: ModelReader) -> str:
    """What papers say of models on the prompts; why it cannot be shown, where that is so."""
    trouble, own = "", tuple[ReferenceTable, ...]()
    try:
        own = references_of(choice.card.name, reader.data)
    except SubmitterError as error:
        trouble = error.message
    return published_section(own, other_references(), choice.card, trouble)


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return answer(context, ModelsQuery.from_params(request.query_params))

    on_load(open_page, shown)
    run_on_load(COPY_AND_GO)


PAGE = Page("Models", "models", 11, _build)
