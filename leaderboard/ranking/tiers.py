"""Tiers of a ranking: its order on a board, and what the tiers rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from leaderboard.ranking.cells import Cell
from leaderboard.ranking.slices import Ranked


@dataclass(frozen=True)
class Basis:
    """What ranks and tiers of a ranking were made from."""

    n_resamples: int = 0  # resamples behind rank ranges and P(best); 0 where none are stored
    n_pairs: int = 0  # pairs of metrics that were tested
    # whether it is of a board that is kept as it was, where only the headline was tested
    kept: bool = False
    n_bounded: int = 0  # pairs whose p-value is an upper bound because too many would be drawn for

    @classmethod
    def of_kept(cls, cells: Sequence[Cell], n_resamples: int) -> Basis:
        """The basis of a ranking that is kept without its draws."""
        tested = sum(cell.tier is not None for cell in cells)
        return cls(n_resamples, tested * (tested - 1) // 2, kept=True)

    @classmethod
    def of(cls, ranked: Ranked) -> Basis:
        """The basis of a ranking."""
        size = len(ranked.cells)
        upper = np.triu_indices(size, 1)
        tests = ranked.ordering.tests
        drawn = np.isfinite(ranked.draws.resamples).any(axis=0)
        return cls(
            n_resamples=int(np.count_nonzero(drawn)),
            n_pairs=int(np.isfinite(ranked.ordering.corrected[upper]).sum()),
            n_bounded=0 if tests is None else int(tests.bounded[upper].sum()),
        )


@dataclass(frozen=True)
class Group:
    """Rows of a ranking that stand together: a tier, those without a rank, or all."""

    tier: int | None  # its number; None for a group that is no tier
    cells: tuple[Cell, ...]  # its cells, best first


def in_tiers(ranked: Ranked) -> Ranked:
    """The ranking with every tier in one piece.

    Board order goes by rank range and tiers by value, so two neighbours may belong to tiers in
    the other order. Entries that were ranked and not tested stay with their neighbour above.
    Where no contributions are stored at all, nothing was tested, whatever was made of that.
    """
    if not ranked.draws.contributions.shape[1]:
        ranked = _untested(ranked)
    places = sorted(range(len(ranked.cells)), key=_levels(ranked.cells).__getitem__)
    order = np.array(places, np.intp)
    cells = tuple(ranked.cells[place] for place in places)
    return Ranked(cells, ranked.ordering.of(order), ranked.draws.of(order))


def kept_in_tiers(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The order of `in_tiers` for cells that are kept without their draws."""
    levels = _levels(cells)
    places = sorted(range(len(cells)), key=levels.__getitem__)
    return tuple(cells[place] for place in places)


def groups(cells: Sequence[Cell]) -> tuple[Group, ...]:
    """Cells, in the order of `in_tiers`, by tier; one group where nothing was tested."""
    if all(cell.tier is None for cell in cells):
        return (Group(None, tuple(cells)),)
    levels = _levels(cells)
    return tuple(
        Group(None if math.isinf(level) else int(level), tuple(cell for _, cell in of))
        for level, of in groupby(zip(levels, cells, strict=True), key=lambda pair: pair[0])
    )


def _untested(ranked: Ranked) -> Ranked:
    size = len(ranked.cells)
    cells = tuple(cell.model_copy(update={"tier": None}) for cell in ranked.cells)
    ordering = replace(
        ranked.ordering, tests=None, corrected=np.full((size, size), np.nan), tiers=(None,) * size
    )
    return Ranked(cells, ordering, ranked.draws)


def _levels(cells: Sequence[Cell]) -> list[float]:
    """Tier of each cell; of the neighbour above for those not tested, infinite for the unranked."""
    known = [cell.tier for cell in cells if cell.tier is not None]
    above = min(known, default=1)
    found: list[float] = []
    for cell in cells:
        above = above if cell.tier is None else cell.tier
        found.append(math.inf if cell.rank is None else above)
    return found
