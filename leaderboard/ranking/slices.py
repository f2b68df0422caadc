"""Ranked slices: cells with what is needed to rank any selection of them anew, and their tiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from benchmarks.schema import Card
from benchmarks.statistics.intervals import acceleration, bca
from benchmarks.statistics.resampling import seed_of
from leaderboard.ranking.cells import Cell, best_first
from leaderboard.ranking.draws import Draws, stacked
from leaderboard.ranking.rank_ranges import Ordering, ordering

ACROSS = "+"  # Joins the keys of several skills whose mean is shown


@dataclass(frozen=True)
class Slice:
    """The cells of one slice of one board and their draws, in the same order."""

    cells: tuple[Cell, ...]
    draws: Draws


@dataclass(frozen=True)
class Ranked:
    """A ranked slice."""

    # with ranks, ranges, shares of the best and, where tests were made, tiers; in the given order
    cells: tuple[Cell, ...]
    ordering: Ordering  # what they were taken from; its arrays are in the same order
    draws: Draws  # of the cells

    def best_first(self, card: Card) -> Ranked:
        """The same in board order."""
        if not self.cells:
            return self
        rises = card.higher_is_better(self.cells[0].measure)
        place = {cell.entry_id: i for i, cell in enumerate(self.cells)}
        in_order = best_first(self.cells, higher_is_better=rises)
        order = np.array([place[cell.entry_id] for cell in in_order], np.intp)
        return Ranked(in_order, self.ordering.of(order), self.draws.of(order))


def ranked(one: Slice, card: Card) -> Ranked:
    """Rank the cells of a slice among themselves.

    Only those that rest on enough clusters, lack few scores and failed no trust check take part;
    the others keep their values and the reason why they have no rank.
    """
    cells = one.cells
    values = np.array([math.nan if c.value is None else c.value for c in cells])
    able = np.array([c.fit for c in cells], bool)
    found = ordering(
        values,
        one.draws.resamples,
        one.draws.contributions,
        able,
        higher_is_better=card.higher_is_better(cells[0].measure) if cells else True,
        seed=seed_of(card.name, card.revision),
    )
    return Ranked(
        tuple(_with_rank(cell, found, place) for place, cell in enumerate(cells)), found, one.draws
    )


def mean_over_skills(slices: Sequence[Slice]) -> Slice:
    """The unweighted mean of one measure over several skills, for entries that have them all.

    Resamples and contributions are joint over the skills of a benchmark, so they are averaged as
    the values are; the interval is BCa again. An entry without one of the skills has no value.
    """
    if not slices:
        raise ValueError("there is no skill to average over")
    if len(slices) == 1:
        return slices[0]
    skill = ACROSS.join(str(one.cells[0].skill) for one in slices if one.cells)
    entries = list(dict.fromkeys(cell.entry_id for one in slices for cell in one.cells))
    places = [{cell.entry_id: i for i, cell in enumerate(one.cells)} for one in slices]
    parts = [
        [(one, place[entry]) for one, place in zip(slices, places, strict=True) if entry in place]
        for entry in entries
    ]
    draws = Draws(
        resamples=stacked([_mean([s.draws.resamples[i] for s, i in part]) for part in parts]),
        contributions=stacked(
            [_mean([s.draws.contributions[i] for s, i in part]) for part in parts]
        ),
    )
    cells = tuple(
        _averaged([one.cells[i] for one, i in part], len(slices), skill) for part in parts
    )
    # Each skill has blocks of its own, so its even share is taken off before averaging.
    influences = stacked(
        [_mean([_influences(s.draws.contributions[i]) for s, i in part]) for part in parts]
    )
    return Slice(_with_intervals(cells, draws, influences), draws)


def _with_rank(cell: Cell, found: Ordering, place: int) -> Cell:
    range_ = found.ranges[place]
    best_share = float(found.best_share[place])
    return cell.model_copy(
        update={
            "rank": range_.rank if range_ else None,
            "rank_low": range_.low if range_ else None,
            "rank_high": range_.high if range_ else None,
            "best_share": None if math.isnan(best_share) else best_share,
            "tier": found.tiers[place],
        }
    )


def _mean(rows: Sequence[np.ndarray]) -> np.ndarray | None:
    """Mean of draws of one length; None where they are of different plans."""
    if len({row.size for row in rows}) != 1:
        return None
    return np.asarray(np.mean(rows, axis=0))


def _averaged(cells: Sequence[Cell], n_skills: int, skill: str) -> Cell:
    values = [cell.value for cell in cells if cell.value is not None]
    whole = len(values) == n_skills
    return cells[0].model_copy(
        update={
            "skill": skill,
            "value": float(np.mean(values)) if whole else None,
            "ci_low": None,
            "ci_high": None,
            "ci_method": None,
            "n_items": sum(cell.n_items for cell in cells),
            # As many as its weakest skill has: a mean is no better founded than its parts.
            "n_clusters": min(cell.n_clusters for cell in cells),
            "n_missing": sum(cell.n_missing for cell in cells),
            "note": "" if whole else f"a value for {len(values)} of {n_skills} skills only",
            "row": -1,
        }
    )


def _influences(shares: np.ndarray) -> np.ndarray:
    """Contributions, shape (G,), less the even share of the value in the blocks of the slice."""
    members = shares != 0.0
    return shares - np.where(members, shares.sum() / max(members.sum(), 1), 0.0)


def _with_intervals(
    cells: tuple[Cell, ...], draws: Draws, influences: np.ndarray
) -> tuple[Cell, ...]:
    values = np.array([math.nan if cell.value is None else cell.value for cell in cells])
    n_clusters = np.array([cell.n_clusters for cell in cells], np.intp)
    found = bca(values, draws.resamples, acceleration(influences), n_clusters=n_clusters)
    return tuple(
        cell
        if cell.value is None or math.isnan(low)
        else cell.model_copy(
            update={
                "ci_low": float(low),
                "ci_high": float(high),
                "ci_method": "bca" if defined else "percentile",
            }
        )
        for cell, low, high, defined in zip(
            cells, found.low, found.high, found.defined, strict=True
        )
    )


@dataclass(frozen=True)
class Basis:
    """What ranks and tiers of a ranking were made from."""

    n_resamples: int = 0  # resamples in which the best are counted; 0 where none are stored
    n_pairs: int = 0  # pairs of metrics that were tested
    # whether it is of a board that is kept as it was, where only the headline was tested
    kept: bool = False

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
        drawn = np.isfinite(ranked.draws.resamples).any(axis=0)
        return cls(
            n_resamples=int(np.count_nonzero(drawn)),
            n_pairs=int(np.isfinite(ranked.ordering.corrected[upper]).sum()),
        )


@dataclass(frozen=True)
class Group:
    """Rows of a ranking that stand together: a tier, those without a rank, or all."""

    tier: int | None  # its number; None for a group that is no tier
    cells: tuple[Cell, ...]  # its cells, best first


def groups(cells: Sequence[Cell]) -> tuple[Group, ...]:
    """Cells in board order by tier; one group where nothing was tested."""
    if all(cell.tier is None for cell in cells):
        return (Group(None, tuple(cells)),)
    levels = _levels(cells)
    return tuple(
        Group(None if math.isinf(level) else int(level), tuple(cell for _, cell in of))
        for level, of in groupby(zip(levels, cells, strict=True), key=lambda pair: pair[0])
    )


def _levels(cells: Sequence[Cell]) -> list[float]:
    """Tier of each cell; of the neighbour above for those not tested, infinite for the unranked."""
    known = [cell.tier for cell in cells if cell.tier is not None]
    above = min(known, default=1)
    found: list[float] = []
    for cell in cells:
        above = above if cell.tier is None else cell.tier
        found.append(math.inf if cell.rank is None else above)
    return found
