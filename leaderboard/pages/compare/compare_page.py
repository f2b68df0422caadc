"""Two metrics against each other; which, on what board and by what measure is in the link."""

from __future__ import annotations

from typing import Any

import gradio as gr

from leaderboard.pages.boards.boards_page import benchmark_options, measure_options, skill_options
from leaderboard.pages.boards.query import BETWEEN_SKILLS, BoardQuery
from leaderboard.pages.compare.query import CompareQuery, Opponents, opponents
from leaderboard.pages.compare.view import compare_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.reading import View
from leaderboard.pages.shown.markup import clean
from leaderboard.pages.shown.widgets import QUIET, SHOW_LINK, html, on_load

_LONGEST_OPTION = 60


def metric_options(pair: Opponents, view: View) -> list[tuple[str, str]]:
    """Name and entry id of every metric of the ranking; equal names get their submission."""
    entries = [view.entries[entry] for entry in pair.options]
    names = [f"{entry.metric} {entry.version}".strip() for entry in entries]
    labels = [
        f"{name} ({entry.submission_id})" if names.count(name) > 1 else name
        for name, entry in zip(names, entries, strict=True)
    ]
    return [
        (clean(label)[:_LONGEST_OPTION], entry.entry_id)
        for label, entry in zip(labels, entries, strict=True)
    ]


def _build(context: Context) -> None:
    with gr.Row(elem_classes="as-choosers"):
        names = benchmark_options(context.reader.view())
        first = names[0][1] if names else None
        benchmark = gr.Dropdown(names, value=first, label="Benchmark", scale=3)
        skills = gr.Dropdown([], value=[], multiselect=True, scale=3,
                             label="Skills (none: all; several: their mean)")  # fmt: skip
        measure = gr.Dropdown([], label="Measure", scale=3)
    with gr.Row(elem_classes="as-choosers"):
        a = gr.Dropdown([], label="Metric A", scale=4)
        b = gr.Dropdown([], label="Metric B", scale=4)
        swap = gr.Button("Swap", elem_id="as-swap", size="sm", scale=0, min_width=110)
    link = gr.Textbox(visible="hidden", elem_id="as-link")
    shown = html()

    def show(query: CompareQuery) -> tuple[Any, ...]:
        view = context.reader.view()
        pair = opponents(query, view)
        exact = pair.query.board
        options = metric_options(pair, view)
        return (
            gr.update(choices=benchmark_options(view), value=exact.benchmark),
            gr.update(choices=skill_options(pair.choice), value=list(pair.choice.skills)),
            gr.update(choices=measure_options(pair.choice), value=exact.measure or None),
            gr.update(choices=options, value=pair.a),
            gr.update(choices=options, value=pair.b),
            pair.query.to_query(),
            compare_view(pair, view),
        )

    def open_page(request: gr.Request) -> tuple[Any, ...]:
        return show(CompareQuery.from_params(request.query_params))

    def asked(name: str, of: list[str] | None, by: str | None) -> BoardQuery:
        return BoardQuery(
            benchmark=name or "", skill=BETWEEN_SKILLS.join(of or ()), measure=by or ""
        )

    def other_benchmark(name: str, one: str | None, other: str | None) -> tuple[Any, ...]:
        # Those who stand on the other board too stay; a board of its own chooses the rest.
        board = BoardQuery(benchmark=name or "")
        there = opponents(CompareQuery(board), context.reader.view()).options
        kept = [entry if entry in there else "" for entry in (one or "", other or "")]
        return show(CompareQuery(board, *kept))

    def other(
        name: str, of: list[str] | None, by: str | None, one: str | None, against: str | None
    ) -> tuple[Any, ...]:
        return show(CompareQuery(asked(name, of, by), one or "", against or ""))

    def swapped(
        name: str, of: list[str] | None, by: str | None, one: str | None, against: str | None
    ) -> tuple[Any, ...]:
        return show(CompareQuery(asked(name, of, by), against or "", one or ""))

    every = [benchmark, skills, measure, a, b]
    outputs = [*every, link, shown]
    on_load(open_page, outputs)
    changes = [
        benchmark.input(other_benchmark, [benchmark, a, b], outputs, **QUIET),
        *(one.input(other, every, outputs, **QUIET) for one in (skills, measure, a, b)),
        swap.click(swapped, every, outputs, **QUIET),
    ]
    for change in changes:
        change.then(None, link, js=SHOW_LINK, api_visibility="private")


PAGE = Page("Compare", "compare", 15, _build)
