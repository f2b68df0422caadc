"""Page of errata: printed figures beside correct ones, by paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.errata import Erratum, ErratumCell, errata
from benchmarks.errata.entries import KINDS
from benchmarks.published import papers
from leaderboard.rendering import render
from leaderboard.web.components import Tag
from leaderboard.web.page import Context, Page
from leaderboard.web.widgets import html

_SHOWN_AT_ONCE = 6
_HEADS: dict[str, tuple[str, str]] = {
    "recomputed": ("Printed", "Correct"),
    "inconsistent": ("Printed", "Correct"),
    "code": ("One side", "The other"),
}
"""Heads of the two columns; where paper and code differ, neither need be wrong."""


@dataclass(frozen=True)
class ErratumView:
    """An erratum as it is shown; `more` are the cells that unfold."""

    id: str
    title: str
    where: Tag
    kind: Tag
    why: str
    heads: tuple[str, str]
    cells: Sequence[ErratumCell]
    more: Sequence[ErratumCell]
    command: str


@dataclass(frozen=True)
class PaperView:
    """A paper and its errata."""

    key: str
    name: str
    url: str
    citation: str
    errata: Sequence[ErratumView]


def errata_view(entries: Iterable[Erratum]) -> str:
    """The HTML of the page: one section per paper, one article per erratum."""
    by_paper: dict[str, list[ErratumView]] = {}
    for entry in entries:
        by_paper.setdefault(entry.paper, []).append(_shown(entry))
    known = papers()
    views = [
        PaperView(key, known[key].name, known[key].url, known[key].citation, found)
        for key, found in by_paper.items()
    ]
    return render("pages/errata.html", papers=views)


def _shown(entry: Erratum) -> ErratumView:
    return ErratumView(
        id=entry.id,
        title=entry.title,
        where=Tag(entry.where),
        kind=Tag(KINDS[entry.kind], "warn" if entry.kind == "recomputed" else ""),
        why=entry.why,
        heads=_HEADS[entry.kind],
        cells=entry.cells[:_SHOWN_AT_ONCE],
        more=entry.cells[_SHOWN_AT_ONCE:],
        command=entry.command or "",
    )


def _build(context: Context) -> None:
    del context
    html(errata_view(errata()))


PAGE = Page("Errata", "errata", 50, _build, in_navigation=False)
