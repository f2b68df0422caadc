"""Page of one model: its card, its images, its scores by every metric, and their variation."""

from __future__ import annotations

from dataclasses import replace

import gradio as gr

from leaderboard.models.robustness import robustness
from leaderboard.models.seeds import seed_report
from leaderboard.pages.model.facts import runs_section
from leaderboard.pages.model.images import images_section
from leaderboard.pages.model.seeds import seeds_section
from leaderboard.pages.model.view import absent, model_view
from leaderboard.pages.models.models_page import reader_of
from leaderboard.pages.models.robust import change_said
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.copying import COPY_AND_GO
from leaderboard.pages.shown.widgets import html, on_load, run_on_load
from leaderboard.views.models import ModelQuery, board_of, drawn_of, judge_of, resolve


def answer(context: Context, query: ModelQuery) -> str:
    """The page of a query, as HTML.

    Raises:
        TransientError: the store cannot be read.
    """
    view, reader = context.reader.view(), reader_of(context)
    track = reader.track()
    entry = track.entries.get(query.submission_id)
    if entry is None or entry.prompt_set not in reader.prompt_sets:
        return absent(query.submission_id, track.entries.values(), known=entry is not None)
    choice = resolve(replace(query.of, prompt_set=entry.prompt_set, models=()), reader, view)
    if choice is None:
        return absent(query.submission_id, (), known=True)
    query = replace(query, of=choice.query)
    # Of an earlier revision nothing is compared: its prompts may be others.
    # Metrics that were taken off the boards are named nowhere.
    runs = {one: run for one, run in entry.judges.items() if one in view.entries}
    whole = board_of(choice, reader, view, whole=True) if entry in choice.entries else None
    if whole is None:
        return model_view(entry, choice, None, track.entries, [runs_section(runs, choice.judges)])
    judge = judge_of(choice, reader, view)
    every = replace(choice.wanted, split="", words="", judge="", models=(), seed=None, skills=())
    seeds = seed_report(reader, view, replace(every, judge=judge))
    changes = {one.judge.entry_id: change_said(one) for one in robustness(reader, view, every)}
    drawn = drawn_of(reader, entry, judge, choice.prompts, choice.places)
    further = [seeds_section(entry, seeds), images_section(entry, choice, query, judge, drawn)]
    further.append(runs_section(runs, choice.judges, changes))
    return model_view(entry, choice, whole, track.entries, further)


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return answer(context, ModelQuery.from_params(request.query_params))

    on_load(open_page, shown)
    run_on_load(COPY_AND_GO)


PAGE = Page("Model", "model", 17, _build, in_navigation=False)
