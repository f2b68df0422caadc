"""Inputs of the index before weights: its benchmarks, metrics and joint resamples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.pages.index.boards import IndexBoard, index_boards, rescaled
from leaderboard.pages.reading import View
from leaderboard.pages.shown.identities import Identity, entries_of_each, latest_entries
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.headlines import Headlines
from leaderboard.ranking.index import Comparison, Interval, Standing

OTHER_PLAN = "its resamples cannot be joined with those of the other benchmarks"
NO_DRAWS = "its resamples are not at hand"


@dataclass(frozen=True)
class Ranked:
    """One metric of the index.

    Attributes:
        who: what tells it from others.
        entry: the latest of its entries.
        standing: under the chosen weights.
    """

    who: Identity
    entry: Entry
    standing: Standing


@dataclass(frozen=True, eq=False)
class IndexBase:
    """Everything the page needs but weights and order.

    Attributes:
        boards: the benchmarks of the index.
        left_out: benchmarks that are not, with the reason.
        titles: of both.
        comparison: weighs them; None where there is no benchmark.
        entries: key of a metric in the comparison to the metric and its latest entry.
        values: benchmark to metric to its rescaled headline and interval.
        unjoined: benchmarks without joint resamples, with the reason; a metric that has one of
            them has no interval.
        sent: metric to all of its entries.
    """

    boards: Mapping[str, IndexBoard]
    left_out: Mapping[str, str]
    titles: Mapping[str, str]
    comparison: Comparison | None
    entries: Mapping[str, tuple[Identity, Entry]]
    values: Mapping[str, Mapping[Identity, Interval]]
    unjoined: Mapping[str, str]
    sent: Mapping[Identity, tuple[Entry, ...]]

    def standings(self, weights: Mapping[str, float]) -> tuple[Ranked, ...]:
        """Every metric that has a benchmark of the index, in the order of `Comparison.standings`.

        Args:
            weights: see there; none is positive: nobody stands anywhere.
        """
        if self.comparison is None or not any(weights.values()):
            return ()
        found = self.comparison.standings(weights)
        return tuple(Ranked(*self.entries[standing.metric], standing) for standing in found)


def index_base(view: View) -> IndexBase:
    """Read the headlines and their draws.

    Args:
        view: what is published; of real and simulated boards, only the former are weighed.
    """
    view = view.group()
    boards, left_out = index_boards(view)
    latest = latest_entries(view.entries.values())
    keys = {who: _key(who) for board in boards.values() for who in board.cells}
    draws = {name: _draws(board, view) for name, board in boards.items()}
    length, unjoined = _joint({name: of.resamples for name, of in draws.items()})
    headlines = [
        _headlines(board, keys, draws[name], length, joined=name not in unjoined)
        for name, board in boards.items()
    ]
    return IndexBase(
        boards=boards,
        left_out=left_out,
        titles={name: board.card.title for name, board in view.boards.items()},
        comparison=Comparison(headlines) if headlines else None,
        entries={key: (who, latest[who]) for who, key in keys.items()},
        values={
            name: {who: rescaled(cell, board.scale) for who, cell in board.cells.items()}
            for name, board in boards.items()
        },
        unjoined=unjoined,
        sent=entries_of_each(view.entries.values()),
    )


def _key(who: Identity) -> str:
    """A name in the comparison that is its own and sorts as people expect."""
    parts = (
        who.metric.casefold(),
        who.metric,
        who.version,
        who.submitter,
        who.kind.value,
        who.account,
    )
    return "\x1f".join(parts)


def _draws(board: IndexBoard, view: View) -> Draws:
    """In the order of the cells of the board."""
    return view.orders.slice(board.card, tuple(board.cells.values())).draws


def _joint(resamples: Mapping[str, NDArray[np.floating]]) -> tuple[int, dict[str, str]]:
    """How many resamples are joined, and the benchmarks that have another number of them."""
    lengths = [of.shape[1] for of in resamples.values() if of.shape[1]]
    length = Counter(lengths).most_common(1)[0][0] if lengths else 0
    unjoined = {
        name: OTHER_PLAN if of.shape[1] else NO_DRAWS
        for name, of in resamples.items()
        if of.shape[1] != length or not length
    }
    return length, unjoined


def _headlines(
    board: IndexBoard, keys: Mapping[Identity, str], draws: Draws, length: int, *, joined: bool
) -> Headlines:
    cells: Sequence[float | None] = [cell.value for cell in board.cells.values()]
    missing = np.full((len(cells), max(length, 1)), np.nan)
    drawn = draws.resamples
    return Headlines(
        benchmark=board.card.name,
        scale=board.scale,
        metrics=tuple(keys[who] for who in board.cells),
        values=np.array([math.nan if value is None else value for value in cells]),
        resamples=np.where(np.isfinite(drawn), drawn, np.nan) if joined else missing,
        contributions=draws.contributions,
    )
