"""Every published metric over all boards, in the order of the first page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from leaderboard.publication.identities import (
    Identity,
    entries_of_each,
    latest_cells,
    latest_entries,
)
from leaderboard.publication.index import PlainIndex, index_boards, plain_index
from leaderboard.publication.reader import View, headline_cells
from leaderboard.publication.snapshot import Entry
from leaderboard.ranking.cells import Cell


@dataclass(frozen=True)
class Standing:
    """One metric over all boards."""

    entry: Entry  # the latest of its entries
    cells: Mapping[str, Cell]  # benchmark to its headline cell; boards without it are absent
    # mean of (rank - 1/2) / metrics over its boards, 0 (best) to 1 (worst); None where it
    # has no rank
    relative: float | None
    # index over benchmarks with equal weights, and the benchmarks it rests on; None where
    # it has none of them
    index: PlainIndex | None = None
    sent: tuple[Entry, ...] = ()  # all of its entries


def standings(view: View) -> list[Standing]:
    """Every published metric, the best first among those on the same benchmarks of the index.

    Metrics with the most benchmarks of the index come first; without any, those on the same
    boards stand together by their mean relative place. Metrics of different boards were never
    compared, so the order tells nothing between such groups. Without any rank they come last.
    """
    cells: dict[Identity, dict[str, Cell]] = {}
    places: dict[Identity, list[float]] = {}
    for name, board in view.boards.items():
        ranking = headline_cells(board)
        ranked = sum(cell.rank is not None for cell in ranking)
        for who, cell in latest_cells(ranking, view.entries).items():
            cells.setdefault(who, {})[name] = cell
            if cell.rank is not None:
                places.setdefault(who, []).append((cell.rank - 0.5) / ranked)
    sent = entries_of_each(view.entries.values())
    indices = plain_index(index_boards(view)[0])
    found = [
        Standing(
            entry,
            cells.get(who, {}),
            fmean(places[who]) if who in places else None,
            indices.get(who),
            sent[who],
        )
        for who, entry in latest_entries(view.entries.values()).items()
    ]
    return sorted(found, key=lambda row: _order(row, tuple(view.boards)))


_Order = tuple[bool, int, tuple[bool, ...], float, float, str]


def _order(row: Standing, boards: Sequence[str]) -> _Order:
    # With an index its benchmarks make the group, whatever other boards a metric is on.
    group = row.cells if row.index is None else row.index.boards
    return (
        row.relative is None,
        0 if row.index is None else -len(row.index.boards),
        tuple(name not in group for name in boards),
        0.0 if row.index is None else -row.index.value,
        row.relative or 0.0,
        row.entry.metric.casefold(),
    )
