"""One ranking at a time: benchmark, skill and measure are chosen here or come with the link."""

from __future__ import annotations

from typing import Any

import gradio as gr

from leaderboard.pages.board_query import BoardQuery, Choice, resolve
from leaderboard.pages.board_view import board_view
from leaderboard.pages.measures import skill_title, title, token
from leaderboard.pages.page import Context, Page
from leaderboard.pages.reading import View
from leaderboard.pages.widgets import QUIET, html, on_load

# The path is named, since the page's base address is the root of the site.
_SHOW_LINK = "(query) => { history.replaceState(null, '', location.pathname + query); }"
_COPY_LINK = """async (query) => {
  const address = window.location.origin + window.location.pathname + query;
  const button = document.querySelector('#as-copy');
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(address);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = label; }, 1500);
  } catch {
    window.prompt('Link to this view', address);
  }
}"""


def benchmark_options(view: View) -> list[tuple[str, str]]:
    """Title and value of every benchmark, those with results first."""
    named = [(name, board.card.title, board.empty) for name, board in view.boards.items()]
    full = [(title, name) for name, title, empty in named if not empty]
    return full + [(f"{title} (no results yet)", name) for name, title, empty in named if empty]


def skill_options(choice: Choice) -> list[tuple[str, str]]:
    """Title and value of every skill with results; the empty value means all."""
    card = choice.board.card
    every = [("All skills", "")] if choice.board.selectors(None) or choice.board.empty else []
    return every + [(skill_title(card, skill), skill) for skill in choice.board.skills()]


def measure_options(choice: Choice) -> list[tuple[str, str]]:
    """Title and value of every measure that exists for the chosen skill."""
    card = choice.board.card
    return [(title(card, s, choice.board.every_selector()), token(s)) for s in choice.options]


def _build(context: Context) -> None:
    with gr.Row(elem_classes="as-choosers"):
        names = benchmark_options(context.reader.view())
        first = names[0][1] if names else None
        benchmark = gr.Dropdown(names, value=first, label="Benchmark", scale=3)
        skill = gr.Dropdown([("All skills", "")], value="", label="Skill", scale=2)
        measure = gr.Dropdown([], label="Measure", scale=3)
        copy = gr.Button("Copy link", elem_id="as-copy", size="sm", scale=0, min_width=110)
    link = gr.Textbox(visible="hidden", elem_id="as-link")
    shown = html()

    def show(query: BoardQuery) -> tuple[Any, ...]:
        view = context.reader.view()
        choice = resolve(query, view.boards)
        exact = choice.query
        return (
            gr.update(choices=benchmark_options(view), value=exact.benchmark),
            gr.update(choices=skill_options(choice), value=exact.skill),
            gr.update(choices=measure_options(choice), value=exact.measure or None),
            exact.to_query(),
            board_view(choice, view),
        )

    def open_page(request: gr.Request) -> tuple[Any, ...]:
        return show(BoardQuery.from_params(request.query_params))

    def other_benchmark(name: str) -> tuple[Any, ...]:
        return show(BoardQuery(name))

    def other_slice(name: str, of: str | None, by: str | None) -> tuple[Any, ...]:
        return show(BoardQuery(name, of or "", by or ""))

    outputs = [benchmark, skill, measure, link, shown]
    on_load(open_page, outputs)
    changes = [
        benchmark.input(other_benchmark, benchmark, outputs, **QUIET),
        skill.input(other_slice, [benchmark, skill, measure], outputs, **QUIET),
        measure.input(other_slice, [benchmark, skill, measure], outputs, **QUIET),
    ]
    for change in changes:
        change.then(None, link, js=_SHOW_LINK, api_visibility="private")
    copy.click(None, link, js=_COPY_LINK, api_visibility="private")


PAGE = Page("Boards", "boards", 10, _build)
