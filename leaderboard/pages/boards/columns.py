"""Further columns of a ranking: every other value of the board, and the costs of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.schema import Card, Selector
from leaderboard.pages.reading import BoardIndex
from leaderboard.pages.shown.flops import GIGA
from leaderboard.pages.shown.measures import in_order, info, skill_title, title, token
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.records import Cost

_OF_SKILL = "@"


@dataclass(frozen=True)
class Column:
    """A column beside the ranked one.

    Attributes:
        key: in links.
        title: measure, variant and skill, or the kind of cost.
        meaning: its definition.
        higher_is_better: which way is better.
        selector: the measure; None for a cost.
        skill: of the measure; None: all skills.
    """

    key: str
    title: str
    meaning: str
    higher_is_better: bool
    selector: Selector | None = None
    skill: str | None = None


FLOPS = "cost:gflops_declared"
COSTS = {
    "cost:pairs_per_s": Column(
        "cost:pairs_per_s", "Pairs/s", "Pairs scored in a second of the run here.", True
    ),
    "cost:seconds": Column(
        "cost:seconds", "Seconds", "Time spent in the scorer on this benchmark.", False
    ),
    FLOPS: Column(
        FLOPS,
        "GFLOPs/pair, declared",
        "Floating-point operations of one pair as its author declares them, not measured.",
        False,
    ),
    "cost:memory_gib": Column(
        "cost:memory_gib", "Memory, GiB", "Most memory the scorer held at a time.", False
    ),
}
"""Columns of what a run used, empty for scores that were not computed here; and what is declared."""


def key_of(selector: Selector, skill: str | None) -> str:
    """The key of a measure of a skill. It is compared, never taken apart again."""
    return f"{token(selector)}{_OF_SKILL}{skill}" if skill is not None else token(selector)


def every_key(board: BoardIndex) -> dict[str, tuple[Selector, str | None] | None]:
    """All keys of a board with what they stand for; None: a cost. In the order of the chooser."""
    found: dict[str, tuple[Selector, str | None] | None] = {}
    for skill in (None, *board.skills()):
        for selector in in_order(board.card, board.selectors(skill)):
            found[key_of(selector, skill)] = (selector, skill)
    return {**found, **dict.fromkeys(COSTS)} if found else {}


def columns_of(board: BoardIndex, keys: Iterable[str]) -> tuple[Column, ...]:
    """The columns of some keys, those that exist."""
    known = every_key(board)
    among = board.every_selector()
    return tuple(_column(board.card, key, known[key], among) for key in keys if key in known)


def _column(
    card: Card, key: str, what: tuple[Selector, str | None] | None, among: tuple[Selector, ...]
) -> Column:
    if what is None:
        return COSTS[key]
    selector, skill = what
    measure = info(card, selector.measure)
    name = title(card, selector, among)
    if skill is not None:
        name = f"{name}, {skill_title(card, skill)}"
    return Column(key, name, measure.meaning, measure.higher_is_better, selector, skill)


@dataclass(frozen=True)
class Values:
    """The values of one column for every entry that has one.

    Attributes:
        column: whose.
        cells: entry id to its cell; empty for a cost.
        costs: entry id to its cost; empty for a measure.
    """

    column: Column
    cells: Mapping[str, Cell]
    costs: Mapping[str, float]

    def of(self, entry_id: str) -> float | None:
        """The value of an entry; None where it has none."""
        cell = self.cells.get(entry_id)
        return cell.value if cell is not None else self.costs.get(entry_id)


def values_of(board: BoardIndex, column: Column, entries: Mapping[str, Entry]) -> Values:
    """The values of a column.

    Args:
        board: the board.
        column: one of its columns.
        entries: those of whom costs are read.
    """
    if column.selector is not None:
        cells = board.cells(column.selector, column.skill)
        return Values(column, {cell.entry_id: cell for cell in cells}, {})
    if column.key == FLOPS:
        declared = ((entry_id, entry.flops_per_pair) for entry_id, entry in entries.items())
        return Values(column, {}, {e: flops / GIGA for e, flops in declared if flops is not None})
    known = ((entry_id, entry.cost.get(board.card.name)) for entry_id, entry in entries.items())
    costs = {entry_id: _cost(cost, column.key) for entry_id, cost in known if cost is not None}
    return Values(column, {}, {e: cost for e, cost in costs.items() if cost is not None})


def _cost(cost: Cost, key: str) -> float | None:
    if key == "cost:pairs_per_s":
        return cost.pairs_per_s
    if key == "cost:seconds":
        return cost.seconds
    return cost.peak_memory_bytes / 2**30 if cost.peak_memory_bytes else None
