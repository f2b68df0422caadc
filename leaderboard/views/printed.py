"""Figures as published beside a board."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.published import PublishedCell, published
from benchmarks.schema import Card, Selector
from leaderboard.publication.measure_names import info


def printed_of(card: Card, selector: Selector, skill: str | None) -> tuple[PublishedCell, ...]:
    """The printed figures of one ranking, the best first."""
    cells = _once(
        cell
        for cell in published(card.name)
        if cell.matches(selector.measure, selector.split, skill, selector.variant, selector.facet)
    )
    sign = -1.0 if info(card, selector.measure).higher_is_better else 1.0
    return tuple(sorted(cells, key=lambda cell: (sign * cell.value, cell.metric)))


def all_printed(card: Card) -> tuple[PublishedCell, ...]:
    """All printed figures over all skills, as the papers have them."""
    return tuple(
        cell
        for cell in published(card.name)
        if cell.model is None and cell.skill is None and cell.measure in card.measures
    )


def _once(cells: Iterable[PublishedCell]) -> tuple[PublishedCell, ...]:
    """Papers repeat figures from table to table: one line for each metric and figure."""
    first: dict[tuple[str, str, str], PublishedCell] = {}
    for cell in cells:
        first.setdefault((cell.paper, cell.metric, cell.printed), cell)
    return tuple(first.values())
