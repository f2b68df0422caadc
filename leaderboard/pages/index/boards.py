"""Boards that take part in the index over benchmarks, with their default weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple, Protocol

from benchmarks.schema import Card, Scale
from leaderboard.pages.reading import BoardIndex
from leaderboard.pages.shown.identities import Identity, latest_cells
from leaderboard.publication.entries import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.index import Interval

INSIDE = {
    "genai_527": "genai_1600",
    "genai_ranking": "genai_1600",
    "evalmuse_ntire": "evalmuse",
}
"""Benchmarks whose items are, but for a few, among those of another: both would count twice."""

NO_RESULTS = "no metric published yet"
NO_SCALE = "its card states no chance level and ceiling"
NO_HEADLINE = "no metric has a value of its headline measure over all skills"
NO_RANKS = "no metric has a rank on its headline measure: too few items, or values undefined"


class BoardsShown(Protocol):
    """What of a view the index looks at."""

    @property
    def boards(self) -> Mapping[str, BoardIndex]:
        """The boards by benchmark."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The entries by id."""


@dataclass(frozen=True)
class IndexBoard:
    """One benchmark of the index.

    Attributes:
        card: the benchmark.
        scale: chance and ceiling of its headline.
        cells: the headline cell of every metric that counts here: those with a rank on the board.
        unfit: metrics that have a headline cell, but no rank on the board, with the reason. They
            lack this benchmark: else a metric could choose the pairs it is compared by.
        weight: to begin with.
        why_weight: why that is not 1; empty where it is.
    """

    card: Card
    scale: Scale
    cells: Mapping[Identity, Cell]
    unfit: Mapping[Identity, str]
    weight: float = 1.0
    why_weight: str = ""


def rescaled(cell: Cell, scale: Scale) -> Interval:
    """(value - chance) / (ceiling - chance) with its interval; not clipped; NaN where undefined."""
    length = scale.ceiling - scale.chance
    given = (cell.value, cell.ci_low, cell.ci_high)
    value, one, other = (math.nan if n is None else (n - scale.chance) / length for n in given)
    # Where lower is better, the lower end becomes the upper one.
    return Interval(value, min(one, other), max(one, other))


def index_boards(view: BoardsShown) -> tuple[dict[str, IndexBoard], dict[str, str]]:
    """The benchmarks of the index, and those left out with the reason.

    Args:
        view: boards that may be compared; see `View.group`.
    """
    boards: dict[str, IndexBoard] = {}
    left_out: dict[str, str] = {}
    for name, board in view.boards.items():
        found = _board(board, view)
        if isinstance(found, str):
            left_out[name] = found
        else:
            boards[name] = found
    return _weighted(boards), left_out


class PlainIndex(NamedTuple):
    """The index of one metric under the starting weights."""

    value: float
    """As `leaderboard.ranking.index` gives it, without the resamples behind its interval."""
    boards: tuple[str, ...]
    """The benchmarks it rests on, in the order of display."""


def plain_index(boards: Mapping[str, IndexBoard]) -> dict[Identity, PlainIndex]:
    """The index of every metric that has a benchmark with a starting weight."""
    values: dict[Identity, dict[str, float]] = {}
    for name, board in boards.items():
        if board.weight:  # it is 1 or 0, so the mean is a plain one
            for who, cell in board.cells.items():
                values.setdefault(who, {})[name] = rescaled(cell, board.scale).value
    return {who: PlainIndex(fmean(own.values()), tuple(own)) for who, own in values.items()}


def _board(board: BoardIndex, view: BoardsShown) -> IndexBoard | str:
    """The benchmark, or why it is left out."""
    if board.empty:
        return NO_RESULTS
    if board.card.headline_scale is None:
        return NO_SCALE
    cells = latest_cells(board.cells(board.card.headline, None), view.entries)
    if not cells:
        return NO_HEADLINE
    able = {who: cell for who, cell in cells.items() if cell.rank is not None}
    unfit = {who: c.note or c.why_unranked for who, c in cells.items() if who not in able}
    return IndexBoard(board.card, board.card.headline_scale, able, unfit) if able else NO_RANKS


def _weighted(boards: Mapping[str, IndexBoard]) -> dict[str, IndexBoard]:
    found = {}
    for name, board in boards.items():
        whole = boards.get(INSIDE.get(name, ""))
        why = ""
        if whole is not None:
            why = f"its prompts are inside {whole.card.title}, and would count twice"
        found[name] = IndexBoard(
            board.card, board.scale, board.cells, board.unfit, 0.0 if why else 1.0, why
        )
    return found
