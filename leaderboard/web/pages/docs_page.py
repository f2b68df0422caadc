"""Pages of the documentation: guides, one benchmark, methods and errata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import gradio as gr

from benchmarks.errata import Erratum, errata
from benchmarks.errata.entries import KINDS
from benchmarks.pooled import MAX_MISSING
from benchmarks.published import papers
from benchmarks.schema import Card, Kind
from benchmarks.statistics.sign_flips import ALL_DRAWS, ENUMERATED, FIRST_DRAWS
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS
from leaderboard.rendering import render
from leaderboard.states import LEGEND
from leaderboard.text import MISSING, clean, number
from leaderboard.views.addresses import board_address
from leaderboard.views.badges import Tag
from leaderboard.views.citation import benchmark_bibtex
from leaderboard.web.guides import FIRST, guides
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import html, html_on_load, on_load


def _build_docs(context: Context) -> None:
    def index_html() -> str:
        index = guides().get(FIRST)
        return render("pages/docs.html", index=index, cards=tuple(context.cards.values()))

    html_on_load(index_html)


DOCS = Page("Docs", "docs", 36, _build_docs)


def guide_html(name: str) -> str:
    """The guide that an address names, or the first one where there is none of that name."""
    known = guides()
    guide = known.get(name) or known.get(FIRST)
    if guide is None:
        return render("pages/no_guide.html")
    unknown = "" if name in known else clean(name)
    return render("pages/guide.html", guide=guide, unknown=unknown)


def _build_guide(_: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        return guide_html(str(request.query_params.get("name", "")))

    on_load(open_page, shown)


GUIDE = Page("Guide", "guide", 37, _build_guide, in_navigation=False)


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


_LABELS: Mapping[Kind, str] = {
    "alignment": "alignment: whether the image fits the prompt",
    "preference": "preference: which image is preferred",
    "quality": "quality: how good the image is",
}


def _facts(card: Card) -> tuple[tuple[str, str], ...]:
    scale = card.headline_scale
    known = {
        "Labels": _LABELS[card.kind],
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


def _build_benchmark(context: Context) -> None:
    shown = html()

    def open_page(request: gr.Request) -> str:
        name = str(request.query_params.get("name", ""))[:200]
        board = context.reader.view().boards.get(name)
        return benchmark_html(context.cards, name, empty=board is None or board.empty)

    on_load(open_page, shown)


BENCHMARK = Page("Benchmark", "benchmark", 13, _build_benchmark, in_navigation=False)


def methods_view(cards: Iterable[Card]) -> str:
    """The page of methods."""
    return render(
        "pages/methods.html",
        cards=tuple(cards),
        enumerated=ENUMERATED,
        first_draws=FIRST_DRAWS,
        all_draws=ALL_DRAWS,
        min_clusters=MIN_CLUSTERS,
        max_missing=MAX_MISSING,
        missing=MISSING,
        simulated=Tag("simulated ratings", "sim"),
        states=[(str(state), meaning) for state, meaning in LEGEND.items()],
    )


def _build_methods(context: Context) -> None:
    html(methods_view(context.cards.values()))


METHODS = Page("Methods", "about", 40, _build_methods)


def errata_view(entries: Iterable[Erratum]) -> str:
    """The HTML of the page: one section per paper, one article per erratum."""
    by_paper: dict[str, list[Erratum]] = {}
    for entry in entries:
        by_paper.setdefault(entry.paper, []).append(entry)
    return render("pages/errata.html", by_paper=by_paper, papers=papers(), kinds=KINDS)


def _build_errata(context: Context) -> None:
    del context
    html(errata_view(errata()))


ERRATA = Page("Errata", "errata", 50, _build_errata, in_navigation=False)
