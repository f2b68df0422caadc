"""The board of models: skill by skill, by the metrics that earned it."""

from __future__ import annotations

import gradio as gr

from benchmarks.errors import SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.prompt_sets.reference import other_references, references_of
from leaderboard.models.orderings import model_orderings
from leaderboard.models.people import people_boards, rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.models.robustness import robustness
from leaderboard.pages.models.ordering_view import orderings_section
from leaderboard.pages.models.people import people_section
from leaderboard.pages.models.published import published_section
from leaderboard.pages.models.robust import robust_section
from leaderboard.pages.models.view import models_view, nothing_here
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.copying import COPY_AND_GO
from leaderboard.pages.shown.widgets import html, on_load, run_on_load
from leaderboard.views.models import ModelsQuery, board_of, resolve


def reader_of(context: Context) -> ModelReader:
    """What reads the models; without prompt sets where the installation has none."""
    return context.models or ModelReader(context.store, {}, None)


def answer(context: Context, query: ModelsQuery) -> str:
    """The page of a query, as HTML.

    Raises:
        TransientError: the store cannot be read.
    """
    view, reader = context.reader.view(), reader_of(context)
    rated = rated_sets(reader)
    choice = resolve(query, reader, view, rated)
    if choice is None:
        return nothing_here()
    board = board_of(choice, reader, view)
    cards = {name: one.card for name, one in view.boards.items()}
    further = []
    if board is not None:
        changed = robustness(reader, view, choice.wanted)
        records = model_orderings(reader, view, choice.wanted)
        further = [robust_section(changed), orderings_section(records, choice.judges, cards)]
    name = choice.card.name
    further.append(published_section(references_of(name), other_references(), choice.card))
    people = _people(reader.prompt_sets[name], reader)
    return models_view(choice, board, reader, further, cards, people=people, rated=rated)


def _people(prompt_set: PromptSet, reader: ModelReader) -> str:
    """How people rate models on the prompts; why that cannot be shown, where it is so."""
    try:
        return people_section(people_boards(prompt_set, reader.data))
    except SubmitterError as error:
        return people_section((), error)


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return answer(context, ModelsQuery.from_params(request.query_params))

    on_load(open_page, shown)
    run_on_load(COPY_AND_GO)


PAGE = Page("Models", "models", 11, _build)
