"""Results of a metric on every benchmark, gathered from the boards."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.schema import Card, Selector
from leaderboard.pages.index.boards import rescaled
from leaderboard.pages.metric.query import Shown
from leaderboard.pages.overview.over_boards import headline_cells
from leaderboard.pages.reading import BoardIndex, View
from leaderboard.pages.shown.identities import latest_cells
from leaderboard.pages.shown.measures import in_order, nearest, skill_title
from leaderboard.pages.skills.base import scale_of
from leaderboard.pages.skills.names import common_key, common_names
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.index import Interval


@dataclass(frozen=True)
class OnBoard:
    """A metric on one benchmark.

    Attributes:
        board: the benchmark.
        entry_id: whose cells these are: of the entry that was asked for, or of another of the same
            metric where that has none here.
        headline: the cell the board ranks by; None where there is none.
        ranked: metrics with a rank beside it.
        skills: one cell for each skill, by the measure nearest to the headline.
        cells: all, headline and whole before skills, in the card's order.
    """

    board: BoardIndex
    entry_id: str
    headline: Cell | None
    ranked: int
    skills: tuple[Cell, ...]
    cells: tuple[Cell, ...]

    @property
    def card(self) -> Card:
        """The benchmark."""
        return self.board.card


@dataclass(frozen=True)
class ProfileRow:
    """One skill of one benchmark, rescaled: 0 a guess, 1 the ceiling.

    Attributes:
        skill: the common name, or the benchmark's own.
        on: the benchmark.
        cell: of the metric.
        own: its value and interval.
        median: of all metrics with a rank there.
        best: the highest of them.
        n_metrics: how many they are.
        own_scale: whether the scale is of the headline; else of this measure.
    """

    skill: str
    on: Card
    cell: Cell
    own: Interval
    median: float
    best: float
    n_metrics: int
    own_scale: bool


def on_boards(shown: Shown, view: View) -> tuple[OnBoard, ...]:
    """The benchmarks on which a metric stands, in the order of the site."""
    wanted = [entry.entry_id for entry in shown.entries]
    found = []
    for board in view.boards.values():
        cells = () if board.empty else board.of_entries(wanted)
        # Its own before those of its siblings, of which the latest counts.
        order = sorted(shown.others, key=lambda entry: entry.published_at, reverse=True)
        there = {cell.entry_id for cell in cells}
        whose = next((e.entry_id for e in (shown.entry, *order) if e.entry_id in there), None)
        if whose is not None:
            found.append(_on_board(board, whose, [c for c in cells if c.entry_id == whose]))
    return tuple(found)


def profile(found: Iterable[OnBoard], view: View) -> tuple[ProfileRow, ...]:
    """Skills across benchmarks, those under one name together; what has no scale is left out."""
    rows: list[tuple[int, ProfileRow]] = []
    order = list(common_names())
    for one in found:
        for cell in one.skills:
            row = _profile_row(one, cell, view)
            if row is not None:
                key = common_key(one.card, cell.skill or "")
                rows.append((order.index(key) if key else len(order), row))
    return tuple(row for _, row in sorted(rows, key=lambda pair: (pair[0], pair[1].skill)))


def _on_board(board: BoardIndex, entry_id: str, cells: Sequence[Cell]) -> OnBoard:
    ranking = headline_cells(board)
    headline = next((cell for cell in ranking if cell.entry_id == entry_id), None)
    by_key = {(cell.selector, cell.skill): cell for cell in cells}
    skills = []
    for skill in board.skills():
        selectors = [selector for selector, of in by_key if of == skill]
        if selectors:
            skills.append(by_key[nearest(board.card.headline, selectors, board.card), skill])
    return OnBoard(
        board,
        entry_id,
        headline,
        sum(cell.rank is not None for cell in ranking),
        tuple(skills),
        _in_order(board, cells),
    )


def _in_order(board: BoardIndex, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    skills: dict[str | None, int] = {s: place for place, s in enumerate(board.skills())}
    skills[None] = -1
    measures: dict[Selector, int] = {
        selector: place
        for place, selector in enumerate(
            in_order(board.card, tuple(dict.fromkeys(cell.selector for cell in cells)))
        )
    }
    return tuple(sorted(cells, key=lambda c: (skills.get(c.skill, 0), measures[c.selector])))


def _profile_row(one: OnBoard, cell: Cell, view: View) -> ProfileRow | None:
    key = common_key(one.card, cell.skill or "")
    scale, own_scale = scale_of(one.card, cell.measure)
    if scale is None or cell.value is None or (key is None and ":" in (cell.skill or "")):
        return None
    ranking = latest_cells(one.board.cells(cell.selector, cell.skill), view.entries).values()
    values = [rescaled(c, scale).value for c in ranking if c.rank is not None]
    if not values:
        return None
    title = common_names()[key].title if key else skill_title(one.card, cell.skill)
    return ProfileRow(
        skill=title,
        on=one.card,
        cell=cell,
        own=rescaled(cell, scale),
        median=statistics.median(values),
        best=max(values),
        n_metrics=len(values),
        own_scale=own_scale,
    )
