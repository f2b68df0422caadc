"""Page of one prompt: its generations by every model, by the score of one metric."""

from __future__ import annotations

from collections.abc import Mapping

import gradio as gr

from leaderboard.pages.models.models_page import reader_of
from leaderboard.pages.models.view import nothing_here
from leaderboard.pages.page import Context, Page
from leaderboard.pages.prompt.view import prompt_view
from leaderboard.pages.shown.widgets import html, on_load
from leaderboard.text import clean
from leaderboard.views.models import Choice, Drawn, ModelsQuery, drawn_of, judge_of, resolve

_LONGEST = 300


def answer(context: Context, params: Mapping[str, str]) -> str:
    """The page of an address, as HTML.

    Raises:
        TransientError: the store cannot be read.
    """
    view, reader = context.reader.view(), reader_of(context)
    choice = resolve(ModelsQuery.from_params(params), reader, view)
    if choice is None:
        return nothing_here()
    place, remarks = prompt_place(choice, str(params.get("id", ""))[:_LONGEST])
    if place is None:
        return prompt_view(choice, None, "", (), remarks)
    judge = judge_of(choice, reader, view)
    wanted = choice.query.models
    drawn: list[Drawn] = []
    for entry in choice.entries:
        if not wanted or entry.submission_id in wanted:
            drawn += drawn_of(reader, entry, judge, choice.prompts, [place])
    return prompt_view(choice, place, judge, drawn, remarks)


def prompt_place(choice: Choice, prompt_id: str) -> tuple[int | None, list[str]]:
    """Place of a prompt in its set, or of the first that the filters keep, and a remark."""
    ids = [one.prompt_id for one in choice.prompts]
    if prompt_id in ids:
        return ids.index(prompt_id), []
    first = next(iter(choice.places), None)
    return first, [f"There is no prompt “{clean(prompt_id)[:60]}” here."] if prompt_id else []


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return answer(context, request.query_params)

    on_load(open_page, shown)


PAGE = Page("Prompt", "prompt", 17, _build, in_navigation=False)
