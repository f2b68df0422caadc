"""Boards of earlier revisions, as they were kept."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.ledger.editions import (
    OTHER_REVISION,
    Edition,
    History,
    is_past,
    latest,
    read_history,
)
from leaderboard.publication.entries import Entry
from leaderboard.publication.results import old_places
from leaderboard.publication.snapshot import Board, Snapshot, parse_snapshot, snapshot_bytes
from leaderboard.records import Status
from leaderboard.store.interface import NotFoundError, Repository

FOLDER = "boards/"


@dataclass(frozen=True)
class EarlierBoard:
    """A board as it last was in an edition that has passed."""

    tag: str  # of the edition
    board: Board  # its values and ranks
    entries: Mapping[str, Entry]  # the metrics on it, by entry id


@dataclass(frozen=True)
class Progress:
    """How much of an earlier board stands on the current one again."""

    done: int  # metrics of it that do
    of: int  # metrics of it that have not been taken off the boards since
    waiting: int = 0  # of the rest, those that wait for a worker or are in work
    others_must: int = 0  # of the rest, those whose authors have to send scores


def board_path(benchmark: str, tag: str) -> str:
    """Where the last board of an edition is."""
    return f"{FOLDER}{benchmark}/{tag}.parquet"


def archived(
    public: Repository, shown: Snapshot | None, cards: Mapping[str, Card]
) -> dict[str, bytes]:
    """The boards of a snapshot that make way for another edition, as files to keep them."""
    if shown is None:
        return {}
    history: History | None = None
    found: dict[str, bytes] = {}
    for name, board in shown.boards.items():
        card = cards.get(name)
        if card is None or _same(board.card, card):
            continue
        history = read_history(public) if history is None else history
        found |= archived_board(public, shown, name, _edition(board.card, history))
    return found


def cards_to_show(
    public: Repository, shown: Snapshot | None, cards: Mapping[str, Card]
) -> dict[str, Card]:
    """The cards for the next snapshot: what an installation does not know changes no board.

    One that is older turns none back, and one that has fewer benchmarks takes none of the others
    away.
    """
    history = read_history(public)
    before = {name: board.card for name, board in shown.boards.items()} if shown else {}
    known = {
        name: before.get(name, card) if is_past(history, name, Edition.of_card(card)) else card
        for name, card in cards.items()
    }
    return {**before, **known}


def archived_board(
    public: Repository, shown: Snapshot, benchmark: str, edition: Edition
) -> dict[str, bytes]:
    """One board of a snapshot as the file that keeps it; nothing where there is none to keep."""
    board = shown.boards.get(benchmark)
    of_edition = board is not None and (board.card.revision, board.card.protocol) == (
        edition.revision,
        edition.protocol,
    )
    if board is None or not of_edition or not board.keys:
        return {}
    here = {cell.entry_id for cell in board.cells}
    kept = read_board(public, benchmark, edition.tag)
    if kept is not None and len(kept.entries) > len(here):
        return {}
    entries = {key: entry for key, entry in shown.entries.items() if key in here}
    alone = Snapshot(shown.built_at, entries, {benchmark: board}, built_from=shown.built_from)
    return {board_path(benchmark, edition.tag): snapshot_bytes(alone)}


def read_board(public: Repository, benchmark: str, tag: str) -> EarlierBoard | None:
    """The last board of an edition; None where none is kept."""
    try:
        found = parse_snapshot(public.read(board_path(benchmark, tag)))
    except NotFoundError:
        return None
    return EarlierBoard(tag, found.boards[benchmark], found.entries)


def without(earlier: EarlierBoard, submissions: Container[str]) -> EarlierBoard:
    """An earlier board without the metrics of some submissions; ranks stay as they were."""
    kept = {
        entry_id for entry_id in earlier.entries if entry_id.rpartition("/")[0] not in submissions
    }
    if len(kept) == len(earlier.entries):
        return earlier
    cells = [cell for cell in earlier.board.cells if cell.entry_id in kept]
    entries = {key: earlier.entries[key] for key in earlier.entries if key in kept}
    return EarlierBoard(earlier.tag, Board(earlier.board.card, cells), entries)


def earlier_tags(public: Repository, benchmark: str, now: Card | None = None) -> tuple[str, ...]:
    """The tags of the boards that are kept of a benchmark, the latest first."""
    folder = f"{FOLDER}{benchmark}/"
    paths = public.list(folder)
    here = [p.removeprefix(folder).removesuffix(".parquet") for p in paths]
    current = Edition.of_card(now).tag if now else ""
    order = _order(read_history(public) if here else {}, benchmark)
    known = [tag for tag in here if tag != current]
    return tuple(sorted(known, key=lambda tag: (order.get(tag, -1), tag), reverse=True))


def progress(earlier: EarlierBoard, current: Iterable[str], statuses: Iterable[Status]) -> Progress:
    """How far the re-evaluation of a board is."""
    by_id = {status.submission.submission_id: status for status in statuses}
    stands = set(current)
    counted = [
        (entry_id, by_id[entry.submission_id])
        for entry_id, entry in earlier.entries.items()
        if entry.submission_id in by_id and by_id[entry.submission_id].on_boards
    ]
    rest = [status for entry_id, status in counted if entry_id not in stands]
    return Progress(
        done=len(counted) - len(rest),
        of=len(counted),
        waiting=sum(status.unfinished for status in rest),
        others_must=sum(status.code == OTHER_REVISION for status in rest),
    )


def _same(before: Card, after: Card) -> bool:
    return (before.revision, before.protocol) == (after.revision, after.protocol)


def _edition(card: Card, history: History) -> Edition:
    """The edition of a board in a snapshot, whose card does not say the contract."""
    last = latest(history, card.name)
    for edition in (last.edition, last.before) if last else ():
        if edition and (edition.revision, edition.protocol) == (card.revision, card.protocol):
            return edition
    return Edition(revision=card.revision, protocol=card.protocol)


def _order(history: History, benchmark: str) -> dict[str, int]:
    """Tag to its place in time; of an edition that counted twice, the later one."""
    tags: list[str] = []
    for one in history.get(benchmark, ()):
        tags += [edition.tag for edition in (one.before, one.edition) if edition]
    return {tag: place for place, tag in enumerate(tags)}


class EarlierBoards:
    """Keeps what was read until the store moves on."""

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._lock = threading.Lock()
        self._head: str | None = None
        self._tags: dict[str, tuple[str, ...]] = {}
        self._boards: dict[tuple[str, str], EarlierBoard | None] = {}
        self._old: dict[str, dict[str, tuple[str, ...]]] = {}

    def tags(self, card: Card) -> tuple[str, ...]:
        """The editions of a benchmark whose boards are kept, the latest first, but for its own."""
        with self._lock:
            self._refresh()
            if card.name not in self._tags:
                self._tags[card.name] = earlier_tags(self._public, card.name, card)
            return self._tags[card.name]

    def board(self, card: Card, tag: str) -> EarlierBoard | None:
        """The last board of an edition; None where none is kept."""
        if tag not in self.tags(card):
            return None  # A tag comes with a link: only what is listed is ever asked for.
        with self._lock:
            key = card.name, tag
            if key not in self._boards:
                self._boards[key] = read_board(self._public, card.name, tag)
            return self._boards[key]

    def old_results(self, submission_id: str) -> dict[str, tuple[str, ...]]:
        """Tag to the benchmarks of which a submission has old results under it."""
        with self._lock:
            self._refresh()
            if submission_id not in self._old:
                self._old[submission_id] = old_places(self._public, submission_id)
            return self._old[submission_id]

    def _refresh(self) -> None:
        head = self._public.head()
        if head != self._head:
            self._head, self._tags, self._boards, self._old = head, {}, {}, {}
