"""Snapshot and queue again from what they are projections of, and where they differ from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benchmarks.schema import Card
from leaderboard.ledger.private_records import events_path
from leaderboard.ledger.queue_file import OLD_QUEUE, QUEUE, Queue, in_order, queue_bytes, read_queue
from leaderboard.publication.model_entries import ModelEntry, entry_of, read_track
from leaderboard.publication.publisher import DrawsCache, Update, changes_of
from leaderboard.publication.results import read_result
from leaderboard.publication.snapshot import Board, Snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import fold
from leaderboard.store.interface import Changes, Repository, Store

TOLERANCE = 1e-9  # Relative; of sums of floats in another order on another machine
_SHOWN_AT_MOST = 200
_FOLDER = "submissions/"


@dataclass(frozen=True)
class Difference:
    """One way in which what is stored is not what follows from events and results."""

    where: str  # the board, the entry or the submission
    what: str  # in words; never empty

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def folded(public: Repository) -> tuple[Status, ...]:
    """Every submission with the state its events add up to, oldest first; no queue is read."""
    ids = [
        path.split("/")[1]
        for path in public.list(_FOLDER)
        if path == events_path(path.split("/")[1])
    ]
    return in_order(_folded(public, name) for name in ids)


def rebuilt(store: Store, cards: Mapping[str, Card], now: datetime) -> Snapshot:
    """The snapshot as events and results alone make it: no queue and no snapshot is read."""
    return _rebuilding(store, cards, now, folded(store.public))[1]


def repaired(store: Store, cards: Mapping[str, Card], now: datetime) -> Changes:
    """What to commit so that queue and snapshot follow from events and results.

    Call it within `transact`: it holds for the version of the store that it has read.
    """
    statuses = folded(store.public)
    update, snapshot = _rebuilding(store, cards, now, statuses)
    changes: dict[str, bytes | None] = {
        **changes_of(store.public, update, snapshot),
        QUEUE: queue_bytes(Queue(statuses)),
    }
    return {**changes, OLD_QUEUE: None} if store.public.has(OLD_QUEUE) else changes


def differences(shown: Snapshot | None, right: Snapshot) -> tuple[Difference, ...]:
    """Where a snapshot is not another; when they were made does not matter."""
    if shown is None:
        return (Difference("snapshot", "there is none"),)
    every = [*_of_records("the boards", shown.entries, right.entries), *_of_boards(shown, right)]
    return _shortened(every)


def queue_differences(store: Store) -> tuple[Difference, ...]:
    """Where the queue is not what all events add up to."""
    public = store.public
    queued = read_queue(public, public.head()).by_id
    right = {status.submission.submission_id: status for status in folded(public)}
    return _shortened(list(_of_records("the queue", queued, right)))


def model_differences(store: Store) -> tuple[Difference, ...]:
    """Where the file of models is not what events and results add up to."""
    right: dict[str, ModelEntry] = {}
    for status in folded(store.public):
        for name in status.submission.benchmarks if status.on_boards else ():
            result = read_result(store, status.submission, name)
            entry = result and entry_of(status.submission, result, status.since)
            if entry:
                right[entry.submission_id] = entry
    shown = read_track(store.public).entries
    return _shortened(list(_of_records("the models", shown, right)))


def _folded(public: Repository, name: str) -> Status:
    record = Submission.model_validate_json(public.read(f"{_FOLDER}{name}/submission.json"))
    lines = public.read(events_path(name)).splitlines()
    return fold(record, [Event.model_validate_json(line) for line in lines])


def _rebuilding(
    store: Store, cards: Mapping[str, Card], now: datetime, statuses: Sequence[Status]
) -> tuple[Update, Snapshot]:
    # A cache of its own: not even draws are taken over from an earlier publication.
    update = Update(store, cards, DrawsCache(store))
    shown = [status for status in statuses if status.on_boards]
    return update, update.snapshot(shown, now, store.public.head())


def _of_records(
    where: str, shown: Mapping[str, Any], right: Mapping[str, Any]
) -> Iterator[Difference]:
    """Differences between records by id, the fields named in which they differ."""
    for name in right:
        if name not in shown:
            yield Difference(name, f"missing from {where}")
    for name, record in shown.items():
        if name not in right:
            yield Difference(name, f"in {where}, though no event put it there")
        elif record != right[name]:
            fields = [
                f
                for f in type(record).model_fields
                if getattr(record, f) != getattr(right[name], f)
            ]
            yield Difference(name, f"in {where} with another {', '.join(fields)}")


def _of_boards(shown: Snapshot, right: Snapshot) -> Iterator[Difference]:
    for name, board in right.boards.items():
        if name not in shown.boards:
            yield Difference(name, "there is no such board")
            continue
        if shown.boards[name].card != board.card:
            yield Difference(name, "shown with another card")
        yield from _of_cells(name, shown.boards[name], board)
    for name in shown.boards:
        if name not in right.boards:
            yield Difference(name, "a board of a benchmark that is not known here")


def _of_cells(name: str, shown: Board, right: Board) -> Iterator[Difference]:
    found = _by_place(shown)
    for place, cell in _by_place(right).items():
        other = found.pop(place, None)
        if other is None:
            yield Difference(name, f"lacks {_label(cell)}")
        elif wrong := [f for f in Cell.model_fields if not _same(other, cell, f)]:
            told = "; ".join(f"{f} {getattr(other, f)} should be {getattr(cell, f)}" for f in wrong)
            yield Difference(name, f"{_label(cell)}: {told}")
    for cell in found.values():
        yield Difference(name, f"has {_label(cell)}, which no result has")


def _by_place(board: Board) -> dict[tuple[object, ...], Cell]:
    """A second cell for one place is another place, so that it is found."""
    found: dict[tuple[object, ...], Cell] = {}
    for cell in board.cells:
        place = (cell.entry_id, cell.measure, cell.variant, cell.split, cell.facet, cell.skill)
        copies = 0
        while (*place, copies) in found:
            copies += 1
        found[*place, copies] = cell
    return found


def _same(one: Cell, other: Cell, name: str) -> bool:
    a, b = getattr(one, name), getattr(other, name)
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (
            math.isnan(a) and math.isnan(b)
        )
    return bool(a == b)


def _label(cell: Cell) -> str:
    of_what = (cell.measure, cell.variant, cell.split, cell.facet, cell.skill)
    return f"{cell.entry_id} by {' '.join(part for part in of_what if part)}"


def _shortened(every: Sequence[Difference]) -> tuple[Difference, ...]:
    if len(every) <= _SHOWN_AT_MOST:
        return tuple(every)
    more = Difference("and more", f"{len(every) - _SHOWN_AT_MOST} further differences")
    return (*every[:_SHOWN_AT_MOST], more)
