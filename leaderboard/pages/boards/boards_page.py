"""Page of one ranking, chosen with its controls or by the link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from leaderboard.pages.boards.view import (
    board_body,
    board_head,
    skills_placeholder,
    skills_view,
)
from leaderboard.pages.moved.moved_page import banner
from leaderboard.pages.outage import or_unread
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.copying import COPY_AND_GO, root_of
from leaderboard.pages.shown.following import followable, followed_to
from leaderboard.pages.shown.widgets import COPY_LINK, QUIET, SHOW_LINK, folded, html, run_on_load
from leaderboard.publication.measure_names import skill_title, title, token
from leaderboard.publication.reader import View
from leaderboard.views.boards import (
    BETWEEN_SKILLS,
    KINDS,
    MOST_COLUMNS,
    MOST_SEARCHED,
    YES,
    Arrangement,
    BoardQuery,
    Choice,
    Filters,
    columns_of,
    every_key,
    resolve,
)


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


def column_options(choice: Choice) -> list[tuple[str, str]]:
    """Title and key of every column that may stand beside the ranked one."""
    ranked = choice.query.measure if not choice.skills else ""
    keys = [key for key in every_key(choice.board) if key != ranked]
    return [(column.title, column.key) for column in columns_of(choice.board, keys)]


@dataclass(frozen=True)
class _Controls:
    """What a visitor chooses with, and what shows the choice."""

    benchmark: gr.Dropdown
    skills: gr.Dropdown
    measure: gr.Dropdown
    search: gr.Textbox
    kind: gr.Dropdown
    untrained: gr.Checkbox
    columns: gr.Dropdown
    reset: gr.Button
    copy: gr.Button
    link: gr.Textbox
    head: gr.HTML
    shown: gr.HTML
    below: gr.HTML

    @property
    def inputs(self) -> list[Any]:
        """In the order of `_asked`."""
        return [
            self.benchmark, self.skills, self.measure, self.search, self.kind, self.untrained,
            self.columns,
        ]  # fmt: skip

    @property
    def results(self) -> list[Any]:
        """In the order of `_results`."""
        return [self.link, self.head, self.shown, self.below]


def _controls(context: Context) -> _Controls:
    names = benchmark_options(context.reader.view())
    head = html()
    with gr.Row(elem_classes="as-choosers"):
        benchmark = gr.Dropdown(names, value=names[0][1] if names else None, label="Benchmark",
                                scale=3)  # fmt: skip
        skills = gr.Dropdown([], value=[], multiselect=True, scale=3,
                             label="Skills (none: all; several: their mean)")  # fmt: skip
        measure = gr.Dropdown([], label="Measure", scale=3)
        copy = gr.Button("Copy link", elem_id="as-copy", size="sm", scale=0, min_width=110)
    folded("Filters and further columns")
    with gr.Row(elem_classes=["as-choosers", "as-filters", "as-further"]):
        search = gr.Textbox(label="Metrics or submitters (any of, by commas)", scale=3,
                            max_length=MOST_SEARCHED, max_lines=1)  # fmt: skip
        every = [
            ("All entries", ""),
            *((name[:1].upper() + name[1:], key) for key, name in KINDS.items()),
        ]
        kind = gr.Dropdown(every, value="", label="Entries", filterable=False, scale=2)
        untrained = gr.Checkbox(label="Hide trained on this benchmark", scale=2, min_width=260)
        reset = gr.Button("Reset", elem_id="as-reset", size="sm", scale=0, min_width=110)
    with gr.Row(elem_classes=["as-choosers", "as-further"]):
        columns = gr.Dropdown([], value=[], multiselect=True, label="Further columns",
                              max_choices=MOST_COLUMNS)  # fmt: skip
    link = gr.Textbox(visible="hidden", elem_id="as-link")
    return _Controls(
        benchmark, skills, measure, search, kind, untrained, columns, reset, copy, link, head,
        followable(), html(),
    )  # fmt: skip


def _asked(link: str, values: Sequence[Any]) -> BoardQuery:
    """What the controls ask for; each may be None while it is being changed.

    Args:
        link: the state before, which has the pins and the sorting.
        values: of the controls.
    """
    benchmark, skills, measure, search, kind, untrained, columns = values
    filters = Filters.from_params(
        {"search": search or "", "kind": kind or "", "untrained": YES if untrained else ""}
    )
    before = BoardQuery.from_link(link).arranged
    arranged = Arrangement(tuple(columns or ())[:MOST_COLUMNS], before.pins, before.sort)
    return BoardQuery(
        benchmark or "", BETWEEN_SKILLS.join(skills or ()), measure or "", filters, arranged
    )


def _results(choice: Choice, view: View, earlier: str) -> tuple[str, str, str, str]:
    return (
        choice.query.to_query(),
        board_head(choice, earlier),
        board_body(choice, view),
        skills_placeholder(choice),
    )


def _everything(choice: Choice, view: View, earlier: str) -> tuple[Any, ...]:
    """All controls set to a choice, and its results."""
    exact, skills = choice.query, skill_options(choice)
    return (
        gr.update(choices=benchmark_options(view), value=exact.benchmark),
        gr.update(choices=skills, value=list(choice.skills), interactive=bool(skills)),
        gr.update(choices=measure_options(choice), value=exact.measure or None),
        exact.filters.search,
        exact.filters.kind,
        exact.filters.untrained,
        gr.update(choices=column_options(choice), value=list(choice.arranged.columns)),
        *_results(choice, view, earlier),
    )


@dataclass(frozen=True)
class _Answers:
    """What the page answers to each event; the arguments are what the controls hold."""

    context: Context

    def opened(self, request: gr.Request) -> tuple[Any, ...]:
        return self._show(BoardQuery.from_params(request.query_params))

    def followed(self, event: gr.EventData) -> tuple[Any, ...]:
        return self._show(BoardQuery.from_link(followed_to(event)))

    def other_benchmark(self, link: str, *asked: Any) -> tuple[Any, ...]:
        query = _asked(link, asked)
        return self._show(BoardQuery(query.benchmark, filters=query.filters))

    def other_slice(self, link: str, *asked: Any) -> tuple[Any, ...]:
        return self._show(_asked(link, asked))

    def other_filter(self, link: str, *asked: Any) -> tuple[str, ...]:
        # The controls stay as they are: somebody may be typing in one of them.
        view = self.context.reader.view()
        choice = resolve(_asked(link, asked), view.boards)
        return _results(choice, view, banner(self.context, choice.query.benchmark))

    def other_search(self, link: str, *asked: Any) -> tuple[Any, ...]:
        # The page itself changes the text too, when it is opened or started again.
        if BoardQuery.from_link(link).filters == _asked(link, asked).filters:
            return gr.skip(), gr.skip(), gr.skip(), gr.skip()
        return self.other_filter(link, *asked)

    def start_again(self, benchmark: str, measure: str | None) -> tuple[Any, ...]:
        # The bare measure: a skill may have had another variant of it than the whole has.
        return self._show(BoardQuery(benchmark, "", (measure or "").partition("~")[0]))

    def by_skill(self, link: str, request: gr.Request) -> str:
        view = self.context.reader.view()
        choice = resolve(BoardQuery.from_link(link), view.boards)
        return skills_view(choice, view, root_of(request.headers), self.context.hub)

    def _show(self, query: BoardQuery) -> tuple[Any, ...]:
        view = self.context.reader.view()
        choice = resolve(query, view.boards)
        return _everything(choice, view, banner(self.context, choice.query.benchmark))


def _build(context: Context) -> None:
    controls, answers = _controls(context), _Answers(context)
    asked, results = controls.inputs, controls.results
    every = [*asked, *results]
    load = gr.context.Context.root_block.load(
        or_unread(answers.opened, every), outputs=every, **QUIET
    )
    # Not `search.input`: Gradio does not fire that when text is pasted, cut or deleted.
    told = [controls.link, *asked]
    searched = controls.search.change(
        answers.other_search, told, results, trigger_mode="always_last", **QUIET
    )
    reset = controls.reset.click(
        answers.start_again, [controls.benchmark, controls.measure], every, **QUIET
    )
    followed = controls.shown.select(answers.followed, None, every, **QUIET)
    changes = [
        controls.benchmark.input(answers.other_benchmark, told, every, **QUIET),
        controls.skills.input(answers.other_slice, told, every, **QUIET),
        controls.measure.input(answers.other_slice, told, every, **QUIET),
        controls.kind.input(answers.other_filter, told, results, **QUIET),
        controls.untrained.input(answers.other_filter, told, results, **QUIET),
        controls.columns.input(answers.other_filter, told, results, **QUIET),
        searched,
        reset,
        followed,
    ]
    for change in changes:
        change.then(None, controls.link, js=SHOW_LINK, api_visibility="private")
    for change in (load, *changes):
        # The heatmap's tests take longer than the ranking, which need not wait for them.
        change.then(answers.by_skill, controls.link, controls.below, **QUIET)
    run_on_load(COPY_AND_GO)
    controls.copy.click(None, controls.link, js=COPY_LINK, api_visibility="private")


PAGE = Page("Boards", "boards", 10, _build)
