"""Page of the changes between two revisions of a benchmark, chosen by the link."""

from __future__ import annotations

from typing import Any

import gradio as gr

from benchmarks.errors import TransientError
from leaderboard.pages.moved.view import earlier_banner, moved_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import QUIET, SHOW_LINK, html, on_load, run_on_load
from leaderboard.publication.measure_names import skill_title, title, token
from leaderboard.views.changes import (
    Comparison,
    MovedQuery,
    comparison,
    progress_of,
    with_earlier,
)

_NOW = ""
_GO_TO_PLACE = """() => setTimeout(() => {
  if (location.hash === '#earlier') document.getElementById('earlier')?.scrollIntoView();
}, 600)"""


def banner(context: Context, benchmark: str) -> str:
    """What a board says of its earlier revision; empty where there was none."""
    card = context.cards.get(benchmark)
    try:
        tags = context.earlier.tags(card) if card else ()
        found = progress_of(context, benchmark, tags[0]) if tags else None
    except TransientError:
        return ""  # The board of now is shown as it was last read, without this.
    if card is None or found is None:
        return ""
    return earlier_banner(card.title, benchmark, tags[0], found)


def _shown(context: Context, found: Comparison | None) -> str:
    if found is None or found.query.until:
        return moved_view(found, None)
    return moved_view(found, progress_of(context, found.card.name, found.then.tag))


def _controls(context: Context, found: Comparison | None) -> tuple[Any, ...]:
    names = with_earlier(context.reader.view(), context.cards, context.earlier.tags)
    titles = [(context.cards[name].title, name) for name in names]
    if found is None:
        empty = gr.update(choices=[], value=None)
        return gr.update(choices=titles, value=None), empty, empty, empty, empty
    card, exact = found.card, found.query
    skills = [(skill_title(card, skill), skill) for skill in found.skills]
    measures = [(title(card, one, found.options), token(one)) for one in found.options]
    return (
        gr.update(choices=titles, value=exact.benchmark),
        gr.update(choices=list(found.tags), value=exact.since),
        gr.update(choices=[("Now", _NOW), *((t, t) for t in found.tags)], value=exact.until),
        gr.update(choices=[("All skills", ""), *skills], value=exact.skill),
        gr.update(choices=measures, value=exact.measure or None),
    )


def _build(context: Context) -> None:
    with gr.Row(elem_classes="as-choosers"):
        benchmark = gr.Dropdown([], label="Benchmark", scale=3)
        since = gr.Dropdown([], label="From", scale=2)
        until = gr.Dropdown([], label="To", scale=2)
        skill = gr.Dropdown([], label="Skill", scale=2)
        measure = gr.Dropdown([], label="Measure", scale=3)
    link = gr.Textbox(visible="hidden", elem_id="as-link")
    shown = html()

    def show(asked: MovedQuery) -> tuple[Any, ...]:
        found = comparison(context, asked)
        query = found.query.to_query() if found else asked.to_query()
        return (*_controls(context, found), query, _shown(context, found))

    def open_page(request: gr.Request) -> tuple[Any, ...]:
        return show(MovedQuery.from_params(request.query_params))

    def other_benchmark(name: str | None) -> tuple[Any, ...]:
        return show(MovedQuery(name or ""))

    def other(*asked: str | None) -> tuple[Any, ...]:
        return show(MovedQuery(*(value or "" for value in asked)))

    every = [benchmark, since, until, skill, measure]
    outputs = [*every, link, shown]
    on_load(open_page, outputs)
    changes = [
        benchmark.input(other_benchmark, benchmark, outputs, **QUIET),
        *(one.input(other, every, outputs, **QUIET) for one in every[1:]),
    ]
    for change in changes:
        change.then(None, link, js=SHOW_LINK, api_visibility="private")
    run_on_load(_GO_TO_PLACE)


PAGE = Page("What moved", "moved", 55, _build, in_navigation=False)
