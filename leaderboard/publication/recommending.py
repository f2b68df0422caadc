"""Metrics that may be recommended: significantly above chance, and no template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks.schema import Card
from leaderboard.publication.entries import Entry
from leaderboard.ranking.cells import Cell, beats_chance, cell_beats_chance
from leaderboard.ranking.index import IndexRank

_ABOVE = "is significantly above chance"


def nobody(*, where: str = "", but_templates: bool = False) -> str:
    """What is said in place of a recommendation, without its full stop."""
    who = "No metric but an unchanged template" if but_templates else "No metric"
    return " ".join(filter(None, (who, where, _ABOVE)))


def is_above_chance(standing: IndexRank, among: int) -> bool:
    """Whether the interval of a mean of rescaled values lies wholly above 0, which is chance."""
    index = standing.index
    return beats_chance(index.low, index.high, value=index.value, among=among)


def is_recommended(entry: Entry, standing: IndexRank, among: int) -> bool:
    """Whether a metric may be recommended: ranked, above chance, and no template."""
    ranked = standing.rank is not None
    return ranked and is_above_chance(standing, among) and not entry.template


def leading_cells(
    card: Card, cells: Iterable[Cell], entries: Mapping[str, Entry]
) -> tuple[Cell, ...]:
    """The ranked cells of a board that may be named as leading it, in the order given.

    Where the card states no chance level, all ranked ones may but templates.
    """
    return tuple(one for one in _clear(card, cells) if not entries[one.entry_id].template)


def nobody_leads(card: Card, cells: Iterable[Cell]) -> str:
    """The sentence where no cell of a board may be named; empty where none is ranked at all."""
    cells = tuple(cells)
    if all(cell.rank is None for cell in cells):
        return ""
    return f"{nobody(but_templates=bool(_clear(card, cells)))}."


def _clear(card: Card, cells: Iterable[Cell]) -> list[Cell]:
    """The ranked ones that are not known to be at chance."""
    ranked = [cell for cell in cells if cell.rank is not None]
    return [one for one in ranked if cell_beats_chance(card, one, len(ranked)) is not False]
