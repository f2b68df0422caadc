"""Static page of the boards: HTML without a script, as of its snapshot, for when nobody answers.

Equal snapshots make equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.publication.entries import Entry, latest_entries, origin
from leaderboard.publication.index import IndexBase, index_boards, leading_cells, plain_index
from leaderboard.publication.measure_names import info
from leaderboard.publication.reader import BoardIndex, group_of, shown_group
from leaderboard.publication.snapshot import Board, Snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.rendering import render

STATIC_PATH = "index.html"  # Where the page is, beside the snapshot it is made from
MOST_ROWS = 50  # Of each board; the page is to stay small
_INDEX_ROWS = 20


@dataclass(frozen=True)
class _StaticBoard:
    """One board of the page, with its headline in tiers."""

    card: Card
    cells: tuple[Cell, ...]
    measure: str
    higher_is_better: bool
    first: tuple[Entry, ...]


@dataclass(frozen=True)
class _IndexRow:
    """A metric of the index; without ranks and interval where its draws were not read."""

    entry: Entry
    value: float
    low: float | None = None
    high: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None


@dataclass(frozen=True)
class _ShownIndex:
    """The index: its metrics best first, and what it is made of."""

    rows: tuple[_IndexRow, ...]
    titles: tuple[str, ...]
    drawn: bool

    @property
    def tested(self) -> bool:
        return sum(row.tier is not None for row in self.rows) > 1


def static_page(snapshot: Snapshot, base: IndexBase | None = None) -> bytes:
    """The page of a snapshot."""
    html = render(
        "static_page.html",
        at=f"{snapshot.built_at:%Y-%m-%d %H:%M}",
        built_at=snapshot.built_at,
        entries=snapshot.entries,
        index=_plain_index(snapshot) if base is None else _drawn_index(base),
        boards=[
            _static_board(board, snapshot)
            for _, board in sorted(
                snapshot.boards.items(), key=lambda named: (named[1].card.simulated, named[0])
            )
        ],
        origin=origin,
        most_rows=MOST_ROWS,
        index_rows=_INDEX_ROWS,
    )
    return html.strip().encode() + b"\n"


def _static_board(board: Board, snapshot: Snapshot) -> _StaticBoard:
    card = board.card
    cells = board.slice(card.headline, None)
    leading = leading_cells(card, cells, snapshot.entries)
    return _StaticBoard(
        card,
        cells,
        info(card, card.headline.measure).title,
        card.higher_is_better(card.headline.measure),
        tuple(snapshot.entries[cell.entry_id] for cell in leading if cell.rank_low == 1),
    )


def _plain_index(snapshot: Snapshot) -> _ShownIndex:
    entries = dict(snapshot.entries)
    boards = {name: BoardIndex(board) for name, board in snapshot.boards.items()}
    indexed, _ = index_boards(group_of(boards, shown_group(boards, "")), entries)
    weighty = [board for board in indexed.values() if board.weight]
    whole = {
        who: index.value
        for who, index in plain_index(indexed).items()
        if len(index.boards) == len(weighty)
    }
    latest = latest_entries(entries.values())
    best = sorted(whole, key=lambda who: (-whole[who], who.metric.casefold(), who.version))
    rows = tuple(_IndexRow(latest[who], whole[who]) for who in best)
    return _ShownIndex(rows, tuple(board.card.title for board in weighty), drawn=False)


def _drawn_index(base: IndexBase) -> _ShownIndex:
    weights = {name: board.weight for name, board in base.boards.items()}
    rows = [
        _IndexRow(
            one.entry,
            one.standing.index.value,
            one.standing.index.low,
            one.standing.index.high,
            one.standing.rank.low,
            one.standing.rank.high,
            one.standing.tier,
        )
        for one in base.index_ranks(weights)
        if one.standing.rank is not None
    ]
    titles = tuple(board.card.title for board in base.boards.values() if board.weight)
    return _ShownIndex(tuple(rows), titles, drawn=True)
