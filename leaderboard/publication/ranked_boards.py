"""From the cells of all runs of a benchmark to its board: ranks, ranges and tiers in each slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.schema import Card
from benchmarks.statistics.resampling import seed_of
from leaderboard.publication.boards import Board
from leaderboard.publication.cell_columns import SliceKey, key_of
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws, stacked
from leaderboard.ranking.pairs import Pairs, tests_of
from leaderboard.ranking.slices import Slice, ranked


@dataclass(frozen=True)
class RunDraws:
    """The draws of one run as far as boards need them.

    Attributes:
        resamples: shape (rows, B).
        contributions: row to its contributions, shape (G,), for rows of the headline.
    """

    resamples: NDArray[np.float32]
    contributions: dict[int, FloatArray]

    @classmethod
    def of(cls, draws: Draws, cells: Sequence[Cell], card: Card) -> RunDraws:
        """What a board needs of the draws of a run.

        Args:
            draws: of all its rows, in their order.
            cells: of all its rows, in their order.
            card: the benchmark.
        """
        tested = (cell.row for cell in cells if key_of(cell) == headline(card))
        # In single precision they are published, so in single precision they are ranked by.
        return cls(
            np.asarray(draws.resamples, np.float32),
            {row: draws.contributions[row] for row in tested},
        )

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return self.resamples.nbytes + sum(one.nbytes for one in self.contributions.values())


@dataclass(frozen=True)
class BoardRun:
    """One run on a board.

    Attributes:
        cells: of all its rows, in their order; ranks they may have are not looked at.
        draws: of its rows; called once for each board that is ranked. None: there are none.
    """

    cells: Sequence[Cell]
    draws: Callable[[], RunDraws | None]


def headline(card: Card) -> SliceKey:
    """The slice whose entries are tested against each other for the snapshot.

    What else somebody looks at is tested then: all slices of all boards would take minutes.
    """
    one = card.headline
    return (one.measure, one.variant, one.split, one.facet, None)


@dataclass(frozen=True)
class RankedBoard:
    """A board, and the tests its tiers were made from.

    Attributes:
        board: with every value, ranked within its slice.
        pairs: the tests of its headline; None where it has no entry.
    """

    board: Board
    pairs: Pairs | None


def ranked_board(card: Card, runs: Sequence[BoardRun], known: Pairs | None = None) -> RankedBoard:
    """The board of a benchmark.

    Args:
        card: the benchmark.
        runs: all of its revision, in the order of their submissions.
        known: tests of its headline that are known to hold.
    """
    slices: dict[SliceKey, list[tuple[RunDraws | None, Cell]]] = {}
    for run in runs:
        draws = run.draws()
        for cell in run.cells:
            slices.setdefault(key_of(cell), []).append((draws, cell))
    pairs = None
    cells: list[Cell] = []
    for key, found in slices.items():
        one = _slice(found, tested=key == headline(card))
        if key == headline(card):
            pairs = _tested(one, card, known)
            cells += ranked(one, card, tests=pairs.tests).cells
        else:
            cells += ranked(one, card, tested=False).cells
    return RankedBoard(Board(card, cells), pairs)


def _slice(found: Sequence[tuple[RunDraws | None, Cell]], *, tested: bool) -> Slice:
    draws = Draws(
        resamples=stacked([d.resamples[cell.row] if d else None for d, cell in found]),
        contributions=stacked(
            [d.contributions.get(cell.row) if d and tested else None for d, cell in found]
        ),
    )
    return Slice(tuple(cell for _, cell in found), draws)


def _tested(one: Slice, card: Card, known: Pairs | None) -> Pairs:
    """The tests between the entries of a slice that may rank."""
    fit = np.array([cell.fit and cell.value is not None for cell in one.cells], bool)
    shares = np.where(fit[:, None], one.draws.contributions, np.nan)
    entry_ids = tuple(cell.entry_id for cell in one.cells)
    seed = seed_of(card.name, card.revision)
    return Pairs(card.revision, entry_ids, tests_of(entry_ids, shares, seed, known))
