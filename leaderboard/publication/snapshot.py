"""The one prebuilt file that every page reads: all boards with ranks and rank ranges.

It is rebuilt in the same commit that publishes a result, so a page never shows half of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from benchmarks.schema import Card
from leaderboard.ledger.editions import is_current
from leaderboard.publication.boards import Board, Snapshot
from leaderboard.publication.entries import EXAMPLES_SHOWN, Entry, entries_of
from leaderboard.publication.published import Published, RowOfRun
from leaderboard.publication.ranked_boards import BoardRun, RunDraws, ranked_board
from leaderboard.publication.snapshot_file import (
    OLD_PATH,
    PATH,
    parse_old_snapshot,
    parse_snapshot,
    read_snapshot,
    snapshot_bytes,
)
from leaderboard.records import RunResult

__all__ = [
    "EXAMPLES_SHOWN",
    "OLD_PATH",
    "PATH",
    "Board",
    "Entry",
    "Published",
    "RowOfRun",
    "Snapshot",
    "build_snapshot",
    "parse_old_snapshot",
    "parse_snapshot",
    "read_snapshot",
    "snapshot_bytes",
]


def build_snapshot(
    runs: Iterable[Published], cards: Mapping[str, Card], built_at: datetime
) -> Snapshot:
    """All boards from all published runs, without regard to any earlier snapshot.

    Runs of a benchmark that has no card here, or of another revision of it, are left out: a
    board never mixes revisions.
    """
    current = [
        run
        for run in runs
        if run.result.benchmark in cards and is_current(run.result, cards[run.result.benchmark])
    ]
    boards = {
        name: ranked_board(
            card, [_on_board(r, card) for r in current if r.result.benchmark == name]
        ).board
        for name, card in cards.items()
    }
    return Snapshot(built_at=built_at, entries=_entries(current), boards=boards)


def _on_board(run: Published, card: Card) -> BoardRun:
    cells, draws = run.cells(), run.draws
    return BoardRun(cells, lambda: None if draws is None else RunDraws.of(draws, cells, card))


def _entries(runs: Sequence[Published]) -> dict[str, Entry]:
    submissions = {run.submission.submission_id: run.submission for run in runs}
    results: dict[str, list[RunResult]] = {}
    for run in runs:
        results.setdefault(run.submission.submission_id, []).append(run.result)
    return {
        entry_id: entry
        for name, submission in submissions.items()
        for entry_id, entry in entries_of(submission, results[name]).items()
    }
