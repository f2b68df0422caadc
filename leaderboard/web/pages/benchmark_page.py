"""Page of one benchmark: what it is, its measures, its data and how it is cited."""

from __future__ import annotations

from collections.abc import Mapping

import gradio as gr

from benchmarks.schema import Card
from leaderboard.rendering import render
from leaderboard.text import clean, number
from leaderboard.views.addresses import board_address
from leaderboard.views.metric import benchmark_bibtex
from leaderboard.web.components import Tag
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import html, on_load


def benchmark_html(cards: Mapping[str, Card], name: str, *, empty: bool = False) -> str:
    """The page of a benchmark, or a list of all where there is none of that name."""
    card = cards.get(name)
    if card is None:
        return render("pages/no_benchmark.html", asked=clean(name), cards=tuple(cards.values()))
    return render(
        "pages/benchmark.html",
        card=card,
        empty=empty,
        board=board_address(card.name),
        about=_facts(card),
        headline=Tag("headline", "info"),
        supplied=tuple(dict.fromkeys(file.supplied for file in card.files if file.supplied)),
        bibtex=benchmark_bibtex(card),
    )


def _facts(card: Card) -> tuple[tuple[str, str], ...]:
    scale = card.headline_scale
    known = {
        "Revision": card.revision,
        "Protocol": f"{card.family}, version {card.protocol}",
        "Resampled by": card.cluster,
        "Licence": card.licence,
        "Chance": f"{number(scale.chance)} ({scale.source})" if scale else "",
        "Ceiling": f"{number(scale.ceiling)}: {scale.ceiling_is}" if scale else "",
        **{name.replace("_", " ").capitalize(): f"{n:,}" for name, n in card.counts.items()},
        "Scores of pairs": "public" if card.answers_public else "not public",
    }
    return tuple((label, value) for label, value in known.items() if value)


def _build(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        name = str(request.query_params.get("name", ""))[:200]
        board = context.reader.view().boards.get(name)
        return benchmark_html(context.cards, name, empty=board is None or board.empty)

    on_load(open_page, shown)


PAGE = Page("Benchmark", "benchmark", 13, _build, in_navigation=False)
