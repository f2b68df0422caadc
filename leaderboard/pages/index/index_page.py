"""Page of the index over benchmarks; weights and order are chosen here or by the link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from benchmarks.schema import Card
from leaderboard.pages.index.marks import Strips, strips_of
from leaderboard.pages.index.view import HEADER, how_made, index_view
from leaderboard.pages.page import Context, Page
from leaderboard.pages.shown.markup import page
from leaderboard.pages.shown.widgets import COPY_LINK, QUIET, SHOW_LINK, html, on_load
from leaderboard.publication.index import IndexBase
from leaderboard.views.index import (
    BY_INDEX,
    HEAVIEST,
    ORDERS,
    IndexChoice,
    IndexQuery,
    resolve_index,
)

_STEP = 0.1
_AT_ONCE: dict[str, Any] = {**QUIET, "trigger_mode": "always_last"}
"""While a weight moves, only its newest place is shown: no queue of old ones builds up."""


def order_options(base: IndexBase) -> list[tuple[str, str]]:
    """Title and value of every order."""
    known = [(title, order) for order, title in ORDERS.items()]
    return known + [(board.card.title, name) for name, board in base.boards.items()]


def chosen(
    base: IndexBase, names: Sequence[str], given: Sequence[Any], order: str, ratings: str = ""
) -> IndexChoice:
    """The choice that the controls show.

    Args:
        base: the benchmarks of the index.
        names: benchmark of each weight.
        given: what stands in each control; an emptied field is None and counts as 0.
        order: as in `IndexQuery`.
        ratings: as in `IndexQuery`.
    """
    there = dict(zip(names, given, strict=True))
    parts = (f"{name}:{float(there.get(name) or 0.0):.6f}" for name in base.boards)
    return resolve_index(IndexQuery(",".join(parts), order, ratings), base.boards, base.left_out)


def _build(context: Context) -> None:
    prepared = context.prepared
    html(page([HEADER]))
    cards = context.cards
    names = [name for name, card in cards.items() if card.headline_scale is not None]
    with gr.Row(elem_classes="as-weights"):
        weights = [_slider(cards[name]) for name in names]
    with gr.Row(elem_classes="as-choosers as-i-choosers"):
        order = gr.Dropdown(_options(ORDERS), value=BY_INDEX, label="Order by", scale=1)
        equal = gr.Button("Equal weights", elem_id="as-equal", size="sm", scale=0, min_width=120)
        copy = gr.Button("Copy link", elem_id="as-copy", size="sm", scale=0, min_width=110)
    link = gr.Textbox(visible="hidden", elem_id="as-link")
    group = gr.Textbox(visible="hidden")
    shown = html()
    made = html()

    def of_group(query: IndexQuery) -> tuple[IndexBase, Strips]:
        base = prepared.of(context.reader.view().group(simulated=query.simulated))
        return base, strips_of(base)

    def everything(query: IndexQuery) -> tuple[Any, ...]:
        base, strips = of_group(query)
        choice = resolve_index(query, base.boards, base.left_out)
        controls = [_weight_shown(name, base, choice) for name in names]
        options = gr.update(choices=order_options(base), value=choice.order)
        query_string = choice.to_query(base.boards)
        shown = index_view(base, strips, choice)
        return *controls, options, query_string, query.ratings, shown, how_made(base)

    def open_page(request: gr.Request) -> tuple[Any, ...]:
        return everything(IndexQuery.from_params(request.query_params))

    def start_again(by: str | None, ratings: str) -> tuple[Any, ...]:
        return everything(IndexQuery("", by or "", ratings))

    def changed(by: str | None, ratings: str, *given: Any) -> tuple[str, str]:
        base, strips = of_group(IndexQuery(ratings=ratings))
        choice = chosen(base, names, given, by or "", ratings)
        return choice.to_query(base.boards), index_view(base, strips, choice)

    outputs = [*weights, order, link, group, shown, made]
    on_load(open_page, outputs)
    moves = [order.input, *(weight.input for weight in weights)]
    inputs: list[Any] = [order, group, *weights]
    events = [
        gr.on(moves, changed, inputs, [link, shown], **_AT_ONCE),
        equal.click(start_again, [order, group], outputs, **QUIET),
    ]
    for event in events:
        event.then(None, link, js=SHOW_LINK, api_visibility="private")
    copy.click(None, link, js=COPY_LINK, api_visibility="private")


def _slider(card: Card) -> gr.Slider:
    return gr.Slider(
        0.0,
        HEAVIEST,
        value=1.0,
        step=_STEP,
        label=card.title,
        buttons=[],
        visible=False,
        elem_id=f"as-w-{card.name}",
        elem_classes="as-weight",
        min_width=200,
    )


def _weight_shown(name: str, base: IndexBase, choice: IndexChoice) -> dict[str, Any]:
    board = base.boards.get(name)
    shown: dict[str, Any] = gr.update(visible=False)
    if board is not None:
        why = board.why_weight
        info = f"{why[0].upper()}{why[1:]}." if why else None
        shown = gr.update(visible=True, value=choice.weights[name], info=info)
    return shown


def _options(named: dict[str, str]) -> list[tuple[str, str]]:
    return [(title, value) for value, title in named.items()]


PAGE = Page("Index", "index", 5, _build)
