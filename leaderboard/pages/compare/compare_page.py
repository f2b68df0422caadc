"""Two to four metrics against each other; which, on what board and by what measure is in the link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from leaderboard.pages.compare.agreement import Behind, agreement_view
from leaderboard.pages.compare.view import HEADER, compare_view
from leaderboard.pages.outage import or_unread
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.widgets import QUIET, SHOW_LINK, folded, html
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.measure_names import skill_title, title, token
from leaderboard.publication.reader import View
from leaderboard.text import clean
from leaderboard.views.boards import BETWEEN_SKILLS, BoardQuery, Choice
from leaderboard.views.comparison import (
    ClusterReader,
    CompareQuery,
    Opponents,
    PairScoreReader,
    opponents,
)
from leaderboard.views.examples import lower_is_better

_LONGEST_OPTION = 60


def benchmark_options(view: View) -> list[tuple[str, str]]:
    """Title and value of every benchmark, those with results first."""
    named = [(name, board.card.title, board.empty) for name, board in view.boards.items()]
    full = [(title, name) for name, title, empty in named if not empty]
    return full + [(f"{title} (no results yet)", name) for name, title, empty in named if empty]


def skill_options(choice: Choice) -> list[tuple[str, str]]:
    """Title and value of every skill with results; choosing none means all."""
    return [(skill_title(choice.board.card, skill), skill) for skill in choice.board.skills()]


def measure_options(choice: Choice) -> list[tuple[str, str]]:
    """Title and value of every measure that exists for the chosen skill."""
    card = choice.board.card
    return [(title(card, s, choice.board.every_selector()), token(s)) for s in choice.options]


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


@dataclass(frozen=True)
class _Controls:
    """What a visitor chooses with, and what shows the choice."""

    benchmark: gr.Dropdown
    skills: gr.Dropdown
    measure: gr.Dropdown
    metrics: tuple[gr.Dropdown, ...]
    swap: gr.Button
    link: gr.Textbox
    shown: gr.HTML
    below: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        """In the order of `_asked`."""
        return [self.benchmark, self.skills, self.measure, *self.metrics]

    @property
    def every(self) -> list[Any]:
        """In the order of `_Answers.show`."""
        return [*self.inputs, self.link, self.shown, self.below]


def _controls(context: Context) -> _Controls:
    html(HEADER)
    names = benchmark_options(context.reader.view())
    with gr.Row(elem_classes="as-choosers"):
        benchmark = gr.Dropdown(names, value=names[0][1] if names else None, label="Benchmark",
                                scale=4)  # fmt: skip
        first = [gr.Dropdown([], label=f"Metric {name}", scale=4) for name in "AB"]
        swap = gr.Button("Swap", elem_id="as-swap", size="sm", scale=0, min_width=110)
    folded("Skills, measure, and more metrics")
    with gr.Row(elem_classes=["as-choosers", "as-further"]):
        skills = gr.Dropdown([], value=[], multiselect=True, scale=4,
                             label="Skills (none: all; several: their mean)")  # fmt: skip
        measure = gr.Dropdown([], label="Measure", scale=4)
        more = [gr.Dropdown([], label=f"Metric {name} (optional)", scale=4) for name in "CD"]
    metrics = (*first, *more)
    link = gr.Textbox(visible="hidden", elem_id="as-link")
    return _Controls(benchmark, skills, measure, metrics, swap, link, html(), html())


def _asked(values: Sequence[Any]) -> CompareQuery:
    """What the controls ask for; each may be None while it is being changed."""
    name, skills, by, a, b, *further = values
    board = BoardQuery(name or "", BETWEEN_SKILLS.join(skills or ()), by or "")
    return CompareQuery(board, a or "", b or "", tuple(one for one in further if one))


@dataclass(frozen=True)
class _Answers:
    """What the page answers to each event; the arguments are what the controls hold."""

    context: Context
    behind: Behind

    def show(self, query: CompareQuery) -> tuple[Any, ...]:
        view = self.context.reader.view()
        pair = opponents(query, view)
        exact, options = pair.query.board, metric_options(pair, view)
        third, fourth = (*pair.further, None, None)[:2]
        none = ("None", "")
        return (
            gr.update(choices=benchmark_options(view), value=exact.benchmark),
            gr.update(choices=skill_options(pair.choice), value=list(pair.choice.skills)),
            gr.update(choices=measure_options(pair.choice), value=exact.measure or None),
            gr.update(choices=options, value=pair.a),
            gr.update(choices=options, value=pair.b),
            gr.update(choices=[none, *options], value=third or ""),
            gr.update(choices=[none, *options], value=fourth or ""),
            pair.query.to_query(),
            compare_view(pair, view),
            "",
        )

    def opened(self, request: gr.Request) -> tuple[Any, ...]:
        return self.show(CompareQuery.from_params(request.query_params))

    def other_benchmark(self, *values: Any) -> tuple[Any, ...]:
        # Those who stand on the other board too stay; a board of its own chooses the rest.
        asked = _asked(values)
        board = BoardQuery(benchmark=asked.board.benchmark)
        there = opponents(CompareQuery(board), self.context.reader.view()).options
        a, b = (entry if entry in there else "" for entry in (asked.a, asked.b))
        return self.show(
            CompareQuery(board, a, b, tuple(entry for entry in asked.further if entry in there))
        )

    def other(self, *values: Any) -> tuple[Any, ...]:
        return self.show(_asked(values))

    def swapped(self, *values: Any) -> tuple[Any, ...]:
        asked = _asked(values)
        return self.show(replace(asked, a=asked.b, b=asked.a))

    def beneath(self, link: str) -> str:
        view = self.context.reader.view()
        return agreement_view(opponents(CompareQuery.from_link(link), view), view, self.behind)


def _behind(context: Context) -> Behind:
    public = context.store.public
    return Behind(
        clusters=ClusterReader(public),
        items=context.items or ItemReader(public),
        scores=PairScoreReader(public),
        here=context.cards,
        lower=lambda: lower_is_better(context.reader.statuses()),
    )


def _build(context: Context) -> None:
    controls = _controls(context)
    answers = _Answers(context, _behind(context))
    asked, every = controls.inputs, controls.every
    load = gr.context.Context.root_block.load(
        or_unread(answers.opened, every), outputs=every, **QUIET
    )
    chosen = (controls.skills, controls.measure, *controls.metrics)
    changes = [
        controls.benchmark.input(answers.other_benchmark, asked, every, **QUIET),
        *(one.input(answers.other, asked, every, **QUIET) for one in chosen),
        controls.swap.click(answers.swapped, asked, every, **QUIET),
    ]
    for change in changes:
        change.then(None, controls.link, js=SHOW_LINK, api_visibility="private")
    for change in (load, *changes):
        # The files behind the values take longer to read than the comparison, which need not wait.
        change.then(answers.beneath, controls.link, controls.below, **QUIET)


PAGE = Page("Compare", "compare", 15, _build)
